//! The origin of a run's records: those that it shares with the runs it branched off, and its own. Pure.

use super::event::{Event, Record};
use super::id::{AgentId, RunId, SessionId};
use super::run::Run;
use super::time::Timestamp;

/// The origin of a run's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLineage {
    /// The first session of the run that the others branched off. Nothing else has it.
    first_session: Option<SessionId>,
    /// The parts of the journal, in order.
    parts: Vec<LineagePart>,
    /// The number of the last record.
    last: u64,
}

/// The records that were written under one id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineagePart {
    run: RunId,
    /// The number and the time of its first record; of the first run the start of its first agent.
    from: u64,
    at: Timestamp,
    /// The number of the last record that is shared with the part before. Later ones that a causal cut has kept are numbered
    /// anew, so they are not.
    shared: u64,
}

impl RunLineage {
    /// Returns the lineage of a run, as it is after its first record.
    pub fn begin(run: &Run) -> Self {
        let main = run.agents.get(&AgentId::main());
        let at = main.map(|agent| agent.since).unwrap_or_default();
        Self {
            first_session: main.map(|agent| agent.turn_session().id.clone()),
            parts: vec![LineagePart { run: run.workflow_id.clone(), from: run.seq, at, shared: 0 }],
            last: run.seq,
        }
    }

    /// Adds a record.
    pub fn see(&mut self, record: &Record) {
        self.last = record.seq;
        if let Event::RunBranched(branched) = &record.event {
            let (origin, shared) = (&branched.origin.run, branched.origin.seq);
            if self.parts.last().is_some_and(|last| last.run != *origin) {
                // It was cut before the record with which that run itself branched off, so nothing tells which of these records
                // are those of the runs before.
                let (run, at) = (origin.clone(), Timestamp::default());
                self.parts.push(LineagePart { run, from: record.seq, at, shared: 0 });
            }
            let run = branched.run.clone();
            self.parts.push(LineagePart { run, from: record.seq, at: record.at, shared });
        }
    }

    /// Returns the ids under which its records were written, the first run's first.
    pub fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.parts.iter().map(|part| &part.run)
    }

    /// Returns the number of the last record.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of records at the beginning that two runs share.
    pub fn shared_with(&self, other: &Self) -> u64 {
        if self.first_session.is_none() || self.first_session != other.first_session {
            return 0;
        }
        let mut shared = 0;
        for (index, (own, others)) in self.parts.iter().zip(&other.parts).enumerate() {
            if own != others {
                break;
            }
            let (end, others_end) = (self.end_of(index), other.end_of(index));
            shared = end.min(others_end);
            if end != others_end {
                break;
            }
        }
        shared
    }

    fn end_of(&self, index: usize) -> u64 {
        self.parts.get(index + 1).map_or(self.last, |next| next.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a lineage of parts with their first records.
    fn lineage(session: &str, parts: &[(&str, u64)], last: u64) -> RunLineage {
        let part = |&(run, from): &(&str, u64)| LineagePart {
            run: RunId::parse(run).expect("an id"),
            from,
            at: Timestamp(from),
            shared: from.saturating_sub(1),
        };
        let first_session = Some(SessionId::new(session));
        RunLineage { first_session, parts: parts.iter().map(part).collect(), last }
    }

    #[test]
    fn branches_share_records_up_to_the_earlier_cut() {
        let source = lineage("s", &[("a", 1)], 50);
        let branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        let later = lineage("s", &[("a", 1), ("c", 31)], 60);
        let of_branch = lineage("s", &[("a", 1), ("b", 21), ("d", 26)], 30);
        for (one, other, shared) in [
            (&source, &source, 50),
            (&source, &branch, 20),
            (&source, &later, 30),
            (&branch, &later, 20),
            (&branch, &of_branch, 25),
            (&source, &of_branch, 20),
            (&later, &of_branch, 20),
        ] {
            assert_eq!((one.shared_with(other), other.shared_with(one)), (shared, shared));
        }
    }

    #[test]
    fn branch_of_the_kept_records_of_another_branch_shares_nothing_for_certain() {
        let source = lineage("s", &[("a", 1)], 50);
        let mut branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        branch.parts[1].shared = 15;
        let mut of_kept = lineage("s", &[("a", 1), ("b", 18), ("c", 18)], 30);
        (of_kept.parts[1].shared, of_kept.parts[2].shared) = (0, 17);
        assert_eq!((source.shared_with(&of_kept), branch.shared_with(&of_kept)), (0, 0));
    }

    #[test]
    fn records_that_a_causal_cut_has_kept_are_not_shared() {
        let source = lineage("s", &[("a", 1)], 50);
        let mut branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        branch.parts[1].shared = 15;
        assert_eq!((source.shared_with(&branch), branch.shared_with(&source)), (15, 15));
    }

    #[test]
    fn runs_of_the_same_id_share_nothing_unless_one_began_the_other() {
        let one = lineage("s", &[("a", 1)], 50);
        assert_eq!(one.shared_with(&lineage("t", &[("a", 1)], 50)), 0);
        let branch = lineage("s", &[("a", 1), ("b", 21)], 40);
        let other = RunLineage {
            parts: vec![
                branch.parts[0].clone(),
                LineagePart { at: Timestamp(99), ..branch.parts[1].clone() },
            ],
            ..branch.clone()
        };
        assert_eq!(branch.shared_with(&other), 20);
    }
}
