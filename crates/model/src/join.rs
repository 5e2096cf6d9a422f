//! Joins: an agent waits for the agents it has forked.
//!
//! A join takes the agents that were forked since the last one, at the same level of the return stack or a
//! deeper one. A subroutine waits for its own agents, not for its caller's. The agents that it leaves unjoined
//! are passed to its caller. Agents that an earlier join left unjoined are in no later join.
//!
//! A join is met when as many agents as it needs have ended with a result. If failures are kept, it is also met
//! when all have ended. It is missed as soon as it can no longer be met. A permanent agent begins again after
//! its result, so it never ends, and a join for it waits until its timeout.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::StateName;
use super::time::Timestamp;
use crate::id::AgentId;
use crate::transition::Variables;

/// The join that a state waits for before its prompt is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// The number of agents that have to end with a result.
    pub need: JoinCondition,
    /// The timeout, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The fallback if they did not end in time.
    #[serde(default)]
    pub on_timeout: JoinFallback,
    /// The fallback if too many of them failed.
    #[serde(default)]
    pub on_failure: JoinFallback,
    /// The policy for those that still live then.
    #[serde(default)]
    pub rest: UnjoinedPolicy,
}

/// The number of agents that a join needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinCondition {
    /// All agents that were forked.
    All,
    /// One of them.
    Any,
    /// This number of them.
    #[serde(untagged)]
    Count(u32),
}

impl fmt::Display for JoinCondition {
    /// Writes the condition as in frontmatter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Any => f.write_str("any"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// The fallback of a join that is not met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinFallback {
    /// The waiting agent fails.
    #[default]
    Fail,
    /// The agent resumes with the results there are.
    Keep,
    /// The agent resumes in another state, with the results there are.
    State(StateName),
}

/// The policy for the agents that a join leaves unjoined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnjoinedPolicy {
    /// They continue, and no join waits for them.
    #[default]
    Leave,
    /// They are ended, with all agents they have forked.
    Stop,
}

/// The outcome of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinOutcome {
    /// As many as it needs have ended well, or all have ended and failures are kept.
    Met,
    /// It can no longer be met.
    Missed,
    /// It was not met in time.
    Late,
}

/// A join that an agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingJoin {
    pub join: Join,
    /// The time at which the wait began.
    pub since: Timestamp,
}

impl PendingJoin {
    /// Returns how many more agents have to end, at most the number that still live.
    pub fn more(&self, tally: JoinTally) -> u32 {
        let JoinTally { count, done, failed } = tally;
        let live = count.saturating_sub(done).saturating_sub(failed);
        self.join.needs(count).saturating_sub(done).min(live)
    }

    /// Returns the end of the wait; `None` without a timeout.
    pub fn until(&self) -> Option<Timestamp> {
        self.join.timeout_ms.map(|timeout| self.since.plus(timeout))
    }
}

/// The number and status of the agents that one has forked and not joined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnjoinedChildren(Vec<ChildBatch>);

/// Children with consecutive numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ChildBatch {
    /// The number of the first child.
    first: u32,
    /// The number of children.
    count: u32,
    /// The number of pending returns of the agent when it forked them.
    depth: usize,
    /// The number of children that have ended with a result.
    #[serde(default)]
    done: u32,
    /// The number of children that have ended with an error.
    #[serde(default)]
    failed: u32,
}

/// The status of the agents that a join waits for, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinTally {
    /// The number of agents.
    pub count: u32,
    /// The number of agents that have ended with a result.
    pub done: u32,
    /// The number of agents that have ended with an error.
    pub failed: u32,
}

impl UnjoinedChildren {
    /// Returns whether it has no children.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a child that was forked by an agent with `depth` pending returns.
    pub(super) fn add(&mut self, number: u32, depth: usize) {
        match self.0.last_mut() {
            Some(last) if last.depth == depth && last.first + last.count == number => {
                last.count += 1;
            }
            _ => self.0.push(ChildBatch { first: number, count: 1, depth, done: 0, failed: 0 }),
        }
    }

    /// Returns whether that child is among them.
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|batch| batch.contains(number))
    }

    /// Returns the number of pending returns that the agent had when it forked that child, without those that have
    /// returned since; `None` if it is not among them.
    pub(super) fn depth_of(&self, number: u32) -> Option<usize> {
        self.0.iter().find(|batch| batch.contains(number)).map(|batch| batch.depth)
    }

    /// Iterates over the numbers of the children that an agent with `depth` pending returns waits for.
    pub fn numbers(&self, depth: usize) -> impl Iterator<Item = u32> {
        let batches = self.0.iter().filter(move |batch| batch.depth >= depth);
        batches.flat_map(|batch| batch.first..batch.first.saturating_add(batch.count))
    }

    /// Counts the end of a child, with a result if `well`, else with an error.
    pub(super) fn ended(&mut self, number: u32, well: bool) {
        if let Some(batch) = self.0.iter_mut().find(|batch| batch.contains(number)) {
            if well {
                batch.done += 1;
            } else {
                batch.failed += 1;
            }
        }
    }

    /// Recounts the children: `status` returns the ends of those that have ended, with a result if true.
    pub(super) fn recount(&mut self, status: impl Fn(u32) -> Option<bool>) {
        for batch in &mut self.0 {
            let numbers = batch.first..batch.first.saturating_add(batch.count);
            let count =
                |well| numbers.clone().filter(|&number| status(number) == Some(well)).count();
            batch.done = u32::try_from(count(true)).unwrap_or(u32::MAX);
            batch.failed = u32::try_from(count(false)).unwrap_or(u32::MAX);
        }
    }

    /// Counts the children that an agent with `depth` pending returns waits for.
    pub fn tally(&self, depth: usize) -> JoinTally {
        let batches = self.0.iter().filter(|batch| batch.depth >= depth);
        batches.fold(JoinTally::default(), |sum, batch| JoinTally {
            count: sum.count + batch.count,
            done: sum.done + batch.done,
            failed: sum.failed + batch.failed,
        })
    }

    /// Moves the children that a subroutine did not join to its caller, which has `depth` pending returns.
    pub(super) fn hand_to_caller(&mut self, depth: usize) {
        for batch in &mut self.0 {
            batch.depth = batch.depth.min(depth);
        }
    }

    /// Removes and returns the children that an agent with `depth` pending returns waits for.
    pub(super) fn take(&mut self, depth: usize) -> Self {
        let (taken, others) =
            std::mem::take(&mut self.0).into_iter().partition(|batch| batch.depth >= depth);
        self.0 = others;
        Self(taken)
    }
}

impl ChildBatch {
    fn contains(&self, number: u32) -> bool {
        (self.first..self.first.saturating_add(self.count)).contains(&number)
    }
}

impl Join {
    /// Returns the number of results needed from `count` agents.
    pub fn needs(&self, count: u32) -> u32 {
        match self.need {
            JoinCondition::All => count,
            JoinCondition::Any => 1,
            JoinCondition::Count(needed) => needed,
        }
    }

    /// Returns the fallback that an outcome leads to: the agent continues after a join that is met.
    pub fn fallback(&self, outcome: JoinOutcome) -> &JoinFallback {
        match outcome {
            JoinOutcome::Met => &JoinFallback::Keep,
            JoinOutcome::Missed => &self.on_failure,
            JoinOutcome::Late => &self.on_timeout,
        }
    }

    /// Returns the outcome for the agents' present status; `None` while it is open.
    pub fn outcome(&self, tally: JoinTally) -> Option<JoinOutcome> {
        let JoinTally { count, done, failed } = tally;
        let needed = self.needs(count);
        if done >= needed {
            return Some(JoinOutcome::Met);
        }
        if self.on_failure == JoinFallback::Keep {
            return (done + failed == count).then_some(JoinOutcome::Met);
        }
        (count - failed < needed).then_some(JoinOutcome::Missed)
    }
}

// The outcomes of the agents that a join waited for, as the state sees them.

/// The outcome of an awaited agent, as the waiting state sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChildOutcome<'run> {
    /// The agent.
    pub id: &'run AgentId,
    /// The state it started in.
    pub state: &'run StateName,
    /// The end of the agent.
    #[serde(flatten)]
    pub status: ChildStatus<'run>,
    /// The variables it started with.
    pub variables: &'run Variables,
}

/// The end of an awaited agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ChildStatus<'run> {
    /// The agent ended with a result.
    Result {
        /// The payload: a text, or an object if it was checked against a schema.
        result: Value,
    },
    /// The agent ended with an error.
    Error {
        /// The error message.
        error: &'run str,
    },
    /// The agent is still running.
    Running,
    /// The agent was ended because the join was settled without it.
    Stopped,
}

/// The outcomes of the awaited agents, in the order in which they were forked.
#[derive(Debug, Default)]
pub(crate) struct ChildOutcomes<'run>(BTreeMap<u32, ChildOutcome<'run>>);

impl<'run> ChildOutcomes<'run> {
    /// Adds the outcome of an agent.
    pub(crate) fn add(
        &mut self,
        id: &'run AgentId,
        state: &'run StateName,
        status: ChildStatus<'run>,
        variables: &'run Variables,
    ) {
        self.0.insert(id.number(), ChildOutcome { id, state, status, variables });
    }

    /// Returns the list that `{{results}}` stands for.
    pub(crate) fn listed(&self) -> String {
        let list: Vec<_> = self.0.values().collect();
        serde_json::to_string(&list).unwrap_or_else(|_| "[]".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subroutine_children_pass_to_caller_not_to_next_subroutine() {
        let mut forks = UnjoinedChildren::default();
        forks.add(1, 0);
        forks.add(2, 1);
        forks.hand_to_caller(0);
        forks.add(3, 1);
        assert_eq!(forks.numbers(1).collect::<Vec<_>>(), [3]);
        assert_eq!(forks.numbers(0).collect::<Vec<_>>(), [1, 2, 3]);
        forks.ended(2, true);
        assert_eq!(forks.tally(0), JoinTally { count: 3, done: 1, failed: 0 });
        assert_eq!(forks.take(1).numbers(0).collect::<Vec<_>>(), [3]);
        assert_eq!(forks.numbers(1).count(), 0);
    }
}
