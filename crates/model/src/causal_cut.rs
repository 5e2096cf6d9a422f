//! A causal cut: an agent is cut before a step, and only what follows from that is left out of a run's records.
//!
//! The cut is a fold over the records. A record follows from the cut if it is about an agent that is cut, or if it takes
//! in something of one: the end of an agent that was waited for, an answer, a fact. The agents that such a record
//! changes are cut from there on, too, and the agents that it creates do not exist. Records that were written together
//! stay together. All other records stay, so that their turns are not paid again.
//!
//! Agents that share a worktree see each other's files. Once its files have changed after an agent in it was cut, nobody
//! can tell which of the changes follow from the cut, so the others in it are cut there, too. Agents that only read stay.
//!
//! Where the dependence cannot be told, the record follows from the cut: a run that had branched off another is cut as
//! a whole at that record, and facts that a program of a cut agent can match are not seen.

mod dependence;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::dependence::HiddenLabels;
use self::dependence::{RecordDependence, RunPart};
use super::agent::Agent;
use super::event::{Event, Record};
use super::fact::FactChange;
use super::id::AgentId;
use super::run::Run;

/// A place before which an agent is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutSeed {
    /// A step of one agent.
    Step {
        /// The agent.
        agent: AgentId,
        /// The number of the step, from 1.
        step: u64,
    },
    /// The first step in a state.
    State {
        /// The agent; `None` for each.
        agent: Option<AgentId>,
        /// The name of the state, as people see it.
        state: String,
    },
}

/// The fold.
#[derive(Debug)]
pub struct CausalCut {
    seeds: Vec<CutSeed>,
    /// The parts of the run that are other than they were.
    lost: BTreeSet<RunPart>,
    /// The owners of the worktrees in which agents that are cut work.
    trees: BTreeSet<AgentId>,
    hidden: HiddenLabels,
    /// The labels of facts of which a change was left out.
    missed: BTreeSet<String>,
    is_whole: bool,
    is_reached: bool,
    batch: PendingBatch,
}

/// The records that were written together, as far as they were seen.
#[derive(Debug, Default)]
struct PendingBatch {
    is_left_out: bool,
    changes: Vec<RunPart>,
    /// The owners of the worktrees in which the agents work that it changes.
    trees: Vec<AgentId>,
    /// The labels of the facts that its programs can match.
    labels: HiddenLabels,
    /// The labels of its changes of facts.
    facts: BTreeSet<String>,
}

impl CausalCut {
    /// Begins the fold after the record that starts the run.
    pub fn begin(seeds: Vec<CutSeed>, run: &Run) -> Self {
        let mut cut = Self {
            seeds,
            lost: BTreeSet::new(),
            trees: BTreeSet::new(),
            hidden: HiddenLabels::default(),
            missed: BTreeSet::new(),
            is_whole: false,
            is_reached: false,
            batch: PendingBatch::default(),
        };
        cut.cut_at_seeds(run, run.agents.keys().cloned().map(RunPart::Agent).collect());
        cut
    }

    /// Returns whether an agent has come to one of the places.
    pub fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Returns whether an agent is cut.
    pub fn is_cut(&self, agent: &AgentId) -> bool {
        self.lost.contains(&RunPart::Agent(agent.clone()))
    }

    /// Sees the next record of a batch; `before` is the run before it.
    pub fn see(&mut self, before: &Run, record: &Record) {
        if !self.is_reached {
            // Nothing is cut yet, so only the agents that may come to a place matter.
            self.batch.changes.extend(RecordDependence::of(before, record).changes);
            return;
        }
        let own = RecordDependence::of(before, record);
        let is_left_out = self.is_whole
            || own.is_of_whole_run
            || (own.ends_all_agents && !self.lost.is_empty())
            || own.needs.iter().any(|part| self.lost.contains(part))
            || self.is_cut_fact(before, own.facts)
            || own.changed_tree.is_some_and(|tree| self.trees.contains(tree))
            || self.reads_missed_facts(before, own.program);
        self.is_whole |= own.is_of_whole_run;
        self.batch.is_left_out |= is_left_out;
        for part in own.changes {
            if let RunPart::Agent(id) = &part
                && let Some(agent) = before.agents.get(id)
            {
                self.batch.labels.add_of(before, agent);
                self.batch.trees.extend(agent.spec.working_dir.tree.clone());
            }
            self.batch.changes.push(part);
        }
        self.batch.labels.extend(own.labels);
        self.batch.facts.extend(own.facts.iter().map(|change| change.label().to_owned()));
    }

    /// Ends a batch; `after` is the run after it. Returns the records that stay: none if one of them is left out. A retry
    /// loses the agents that are cut.
    pub fn settle(&mut self, after: &Run, records: Vec<Record>) -> Vec<Record> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_left_out {
            self.lost.extend(batch.changes);
            self.trees.extend(batch.trees);
            self.hidden.extend(batch.labels);
            self.missed.extend(batch.facts);
            return Vec::new();
        }
        let kept =
            records.into_iter().filter_map(|record| self.without_cut_agents(record)).collect();
        self.cut_at_seeds(after, batch.changes);
        kept
    }

    /// Cuts the agents that a batch has brought to one of the places.
    fn cut_at_seeds(&mut self, run: &Run, changed: Vec<RunPart>) {
        for part in changed {
            let RunPart::Agent(id) = &part else { continue };
            let Some(agent) = run.agents.get(id) else { continue };
            if !self.lost.contains(&part) && self.seeds.iter().any(|seed| seed.is_at(agent)) {
                self.is_reached = true;
                self.hidden.add_of(run, agent);
                self.trees.extend(agent.spec.working_dir.tree.clone());
                self.lost.insert(part);
            }
        }
    }

    /// Returns whether a change of a fact may follow from the cut, or comes later than what a cut program sees.
    fn is_cut_fact(&self, before: &Run, changes: &[FactChange]) -> bool {
        let is_by_cut_agent = |source: &str| {
            let agent = source.strip_prefix(before.workflow_id.as_str())?.strip_prefix('/')?;
            Some(self.is_cut(&AgentId::parse(agent).ok()?))
        };
        changes.iter().any(|change| {
            self.hidden.has(change.label())
                || match change {
                    FactChange::Asserted(fact) => is_by_cut_agent(&fact.source) == Some(true),
                    // Nobody knows who has taken a fact.
                    FactChange::Retracted { .. } => true,
                }
        })
    }

    /// Returns whether a program can match facts of which a change was left out.
    fn reads_missed_facts(&self, before: &Run, program: Option<&Arc<str>>) -> bool {
        let definition = program.and_then(|program| before.definitions.get(program));
        definition.is_some_and(|own| own.labels.iter().any(|label| self.missed.contains(label)))
    }

    /// Returns what stays of a record that stays: agents that are cut have not ended, so they do not live again.
    fn without_cut_agents(&self, mut record: Record) -> Option<Record> {
        if let Event::AgentsRetried { agents } = &mut record.event {
            agents.retain(|one| !self.is_cut(&one.agent));
            return (!agents.is_empty()).then_some(record);
        }
        Some(record)
    }
}

impl CutSeed {
    /// Returns whether an agent is at the place.
    fn is_at(&self, own: &Agent) -> bool {
        match self {
            Self::Step { agent, step } => own.id == *agent && own.step == *step,
            Self::State { agent, state } => {
                agent.as_ref().is_none_or(|agent| own.id == *agent)
                    && own.shown_state().as_str() == state
            }
        }
    }
}

#[cfg(test)]
mod tests;
