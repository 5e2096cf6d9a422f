//! The failed agents of a run, counted by the state they failed in and by cause.
//!
//! A run is completed if each of its failures was taken by an agent that waited for it, such as one that joined its
//! forks and kept their failures. Nevertheless they are failures, and whoever looks at the run is told of them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::id::StateName;
use super::run::{AgentEnding, FinishedAgent, Run};
use super::turn::FailureCause;

/// The number of groups that a line shows.
const MAX_SHOWN_GROUPS: usize = 12;

/// The failed agents of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentFailures {
    /// The number of agents that have ended, well or badly.
    #[serde(skip)]
    pub ended: usize,
    /// The number of failed ones among them. An agent that was no longer needed has not failed.
    #[serde(rename = "failed_agents")]
    pub failed: usize,
    /// The number of failed ones that a waiting agent was notified of.
    #[serde(skip)]
    pub kept: usize,
    /// True if they fail the run: no waiting agent took one of them, or the run is strict.
    #[serde(skip)]
    pub fails_run: bool,
    /// The failed ones by state and cause: the states by name, the most frequent cause of each first.
    #[serde(rename = "failures", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<FailureGroup>,
}

/// The agents that failed in one state for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureGroup {
    /// The state they failed in, if it is known.
    pub state: Option<StateName>,
    /// The kind of failure, if it is known.
    pub cause: Option<FailureCause>,
    /// The number of these agents.
    pub agents: usize,
}

impl AgentFailures {
    /// Counts the failures of a run.
    pub fn of(run: &Run) -> Self {
        let mut counts: BTreeMap<(Option<StateName>, String), FailureGroup> = BTreeMap::new();
        let mut failures = Self { ended: run.finished.len(), ..Self::default() };
        for agent in run.finished.iter().filter(|agent| has_failed(agent)) {
            failures.failed += 1;
            failures.kept += usize::from(agent.parent_notified);
            let state = agent.shown_failed_in().or_else(|| agent.began());
            let key = (state.clone(), word(agent.cause));
            let group = counts.entry(key).or_insert_with(|| FailureGroup {
                state,
                cause: agent.cause,
                agents: 0,
            });
            group.agents += 1;
        }
        failures.fails_run = !failures.are_kept() || fails_strictly(run);
        failures.groups = counts.into_values().collect();
        // The sort is stable, so that causes of equal number stay in the order of their words.
        failures.groups.sort_by(|a, b| a.state.cmp(&b.state).then(b.agents.cmp(&a.agents)));
        failures
    }

    /// Returns whether no agent has failed.
    pub fn is_empty(&self) -> bool {
        self.failed == 0
    }

    /// Returns whether each failure was taken by an agent that waited for it, so that none fails the run.
    pub fn are_kept(&self) -> bool {
        self.kept == self.failed
    }

    /// Returns how a run has ended, as the rest of a sentence that begins with it:
    /// `finished: 48 of 50 agents failed, kept by the join (WORK.md: protocol ×40, timeout ×8)`.
    pub fn outcome(&self) -> String {
        if self.is_empty() {
            return "finished".to_owned();
        }
        let numbers = format!("{} of {} agents failed", self.failed, self.ended);
        let groups = match self.groups.as_slice() {
            [] => String::new(),
            _ => format!(" ({self})"),
        };
        if self.are_kept() {
            format!("finished: {numbers}, kept by the join{groups}")
        } else {
            format!("ended, {numbers}{groups}")
        }
    }
}

/// Shows the groups: `CHECK.md: crash, WORK.md: protocol ×40, timeout ×8`.
impl fmt::Display for AgentFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for group in self.groups.iter().take(MAX_SHOWN_GROUPS) {
            let separator = if before.is_some() { ", " } else { "" };
            f.write_str(separator)?;
            if before != Some(&group.state) {
                match &group.state {
                    Some(state) => write!(f, "{state}: ")?,
                    None => f.write_str("unknown state: ")?,
                }
            }
            f.write_str(&word(group.cause))?;
            if group.agents > 1 {
                write!(f, " ×{}", group.agents)?;
            }
            before = Some(&group.state);
        }
        match self.groups.len().saturating_sub(MAX_SHOWN_GROUPS) {
            0 => Ok(()),
            _ => f.write_str(", …"),
        }
    }
}

/// Returns whether a run whose failures are kept has failed all the same: it is strict, and has lost something, because a
/// tool was refused or an agent failed.
pub fn fails_strictly(run: &Run) -> bool {
    run.settings.strict && (!run.refused_tools.is_empty() || run.finished.iter().any(has_failed))
}

fn word(cause: Option<FailureCause>) -> String {
    cause.map_or_else(|| "unknown cause".to_owned(), |cause| cause.to_string())
}

fn has_failed(agent: &FinishedAgent) -> bool {
    matches!(agent.ending, AgentEnding::Error(_)) && agent.cause != Some(FailureCause::Unneeded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentId;
    use crate::money::Usd;
    use crate::tests::scene::{Scene, state};

    /// Returns a run whose agents began in BEGIN.md and have ended: the state of each then, its cause and whether a join
    /// has kept it.
    fn ended(agents: &[(&str, Option<FailureCause>, bool)]) -> Run {
        let mut run = Scene::begin().run;
        let finished = (1..).zip(agents).map(|(number, (last, cause, kept))| FinishedAgent {
            id: AgentId::main().child(number),
            state: Some(state("BEGIN.md")),
            folder: None,
            failed_in: cause.map(|_| state(last)),
            failed_folder: None,
            ending: match cause {
                Some(cause) => AgentEnding::Error(cause.to_string()),
                None => AgentEnding::Result(String::new()),
            },
            structured: false,
            cause: *cause,
            cost_usd: Usd::ZERO,
            unbilled_turn: None,
            variables: None,
            parent_notified: *kept,
            untold: Vec::new(),
            retryable: None,
        });
        run.finished = finished.collect();
        run
    }

    #[test]
    fn failures_are_counted_by_state_and_cause() {
        use FailureCause::{Crash, Protocol, Timeout, Unneeded};
        let run = ended(&[
            ("WORK.md", Some(Timeout), true),
            ("WORK.md", Some(Protocol), true),
            ("WORK.md", Some(Protocol), false),
            ("WORK.md", Some(Unneeded), true),
            ("WORK.md", None, true),
            ("CHECK.md", Some(Crash), true),
        ]);
        let failures = AgentFailures::of(&run);
        assert_eq!((failures.ended, failures.failed, failures.kept), (6, 4, 3));
        assert_eq!(
            failures.outcome(),
            "ended, 4 of 6 agents failed (CHECK.md: crash, WORK.md: protocol ×2, timeout)"
        );
        let groups = serde_json::json!(failures.groups);
        let expected = serde_json::json!([
            { "state": "CHECK.md", "cause": "crash", "agents": 1 },
            { "state": "WORK.md", "cause": "protocol", "agents": 2 },
            { "state": "WORK.md", "cause": "timeout", "agents": 1 },
        ]);
        assert_eq!(groups, expected);
    }

    #[test]
    fn results_and_unneeded_agents_are_no_failures() {
        let failures = AgentFailures::of(&ended(&[
            ("A.md", None, false),
            ("A.md", Some(FailureCause::Unneeded), true),
        ]));
        assert!(failures.is_empty() && failures.groups.is_empty());
        assert_eq!(failures.outcome(), "finished");
    }

    #[test]
    fn kept_failures_fail_strict_run_only() {
        for (kept, strict, fails) in
            [(true, false, false), (true, true, true), (false, false, true), (false, true, true)]
        {
            let mut run = ended(&[("B.md", Some(FailureCause::Crash), kept)]);
            run.settings.strict = strict;
            assert_eq!(AgentFailures::of(&run).fails_run, fails, "{kept} {strict}");
        }
        let mut run = ended(&[("A.md", None, false)]);
        run.settings.strict = true;
        assert!(!AgentFailures::of(&run).fails_run);
    }

    #[test]
    fn kept_failures_finish_run() {
        let failures = AgentFailures::of(&ended(&[
            ("A.md", None, false),
            ("B.md", Some(FailureCause::UsageLimit), true),
        ]));
        assert_eq!(
            failures.outcome(),
            "finished: 1 of 2 agents failed, kept by the join (B.md: usage limit)"
        );
    }
}
