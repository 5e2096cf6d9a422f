//! Waiting for the agents one has forked: what a state asks for, and what comes of it.
//!
//! A join takes the agents that were forked since the last one, at the same level of the return stack or a
//! deeper one: a subroutine waits for its own agents, not for its caller's, and what it leaves is its caller's
//! to wait for. Agents that an earlier join went on without are no one's any more.
//!
//! It is met when as many as it needs have ended with a result; where failures are kept, also when all have
//! ended. It is missed as soon as it can no longer be met. A permanent agent begins again after its result,
//! so it never ends, and a join for it waits until its timeout.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{AgentId, StateName};
use super::time::Timestamp;
use super::transition::Variables;

/// What a state waits for before its prompt is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// How many agents have to have ended well.
    pub need: JoinCondition,
    /// How long they are waited for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What follows if they did not end in time.
    #[serde(default)]
    pub on_timeout: JoinFallback,
    /// What follows if too many of them failed.
    #[serde(default)]
    pub on_failure: JoinFallback,
    /// What becomes of those that still live then.
    #[serde(default)]
    pub rest: UnjoinedPolicy,
}

/// How many agents a join needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinCondition {
    /// All that were forked.
    All,
    /// One of them.
    Any,
    /// So many of them.
    #[serde(untagged)]
    Count(u32),
}

impl fmt::Display for JoinCondition {
    /// As frontmatter has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Any => f.write_str("any"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// What follows when a join is not met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinFallback {
    /// The agent that waits fails.
    #[default]
    Fail,
    /// It goes on with what there is.
    Keep,
    /// It goes on in another state, with what there is.
    State(StateName),
}

/// What becomes of the agents that a join goes on without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnjoinedPolicy {
    /// They go on, and nobody waits for them.
    #[default]
    Leave,
    /// They are ended, with all they have forked.
    Stop,
}

/// How a join came out.
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

/// That an agent waits for those it has forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingJoin {
    /// For what.
    pub join: Join,
    /// Since when.
    pub since: Timestamp,
}

impl PendingJoin {
    /// How many more of the agents it waits for have to end, as far as that is open.
    #[must_use]
    pub fn more(&self, tally: JoinTally) -> u32 {
        let JoinTally { count, done, failed } = tally;
        let live = count.saturating_sub(done).saturating_sub(failed);
        self.join.needs(count).saturating_sub(done).min(live)
    }

    /// Until when it waits, if not for ever.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.join.timeout_ms.map(|timeout| self.since.plus(timeout))
    }
}

/// The agents that one has forked and not joined, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnjoinedChildren(Vec<ChildBatch>);

/// Some that follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ChildBatch {
    /// The number of the first.
    first: u32,
    /// How many there are.
    count: u32,
    /// How many pending returns the agent had when it forked them.
    depth: usize,
    /// How many have ended with a result.
    #[serde(default)]
    done: u32,
    /// How many have ended with an error.
    #[serde(default)]
    failed: u32,
}

/// How the agents stand that a join waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinTally {
    /// How many there are.
    pub count: u32,
    /// How many have ended with a result.
    pub done: u32,
    /// How many have ended with an error.
    pub failed: u32,
}

impl UnjoinedChildren {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more, forked by an agent with so many pending returns.
    pub(super) fn add(&mut self, number: u32, depth: usize) {
        match self.0.last_mut() {
            Some(last) if last.depth == depth && last.first + last.count == number => {
                last.count += 1;
            }
            _ => self.0.push(ChildBatch { first: number, count: 1, depth, done: 0, failed: 0 }),
        }
    }

    /// Whether that child is among them.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|batch| batch.contains(number))
    }

    /// The numbers of those that an agent with so many pending returns waits for.
    pub fn numbers(&self, depth: usize) -> impl Iterator<Item = u32> {
        let own = self.0.iter().filter(move |batch| batch.depth >= depth);
        own.flat_map(|batch| batch.first..batch.first.saturating_add(batch.count))
    }

    /// One of them has ended.
    pub(super) fn ended(&mut self, number: u32, well: bool) {
        if let Some(batch) = self.0.iter_mut().find(|batch| batch.contains(number)) {
            if well {
                batch.done += 1;
            } else {
                batch.failed += 1;
            }
        }
    }

    /// How those stand that an agent with so many pending returns waits for.
    #[must_use]
    pub fn tally(&self, depth: usize) -> JoinTally {
        let own = self.0.iter().filter(|batch| batch.depth >= depth);
        own.fold(JoinTally::default(), |sum, batch| JoinTally {
            count: sum.count + batch.count,
            done: sum.done + batch.done,
            failed: sum.failed + batch.failed,
        })
    }

    /// What a subroutine leaves is its caller's, who has so many pending returns.
    pub(super) fn leave(&mut self, depth: usize) {
        for batch in &mut self.0 {
            batch.depth = batch.depth.min(depth);
        }
    }

    /// Takes out those that an agent with so many pending returns waits for.
    pub(super) fn take(&mut self, depth: usize) -> Self {
        let (own, others) =
            std::mem::take(&mut self.0).into_iter().partition(|batch| batch.depth >= depth);
        self.0 = others;
        Self(own)
    }
}

impl ChildBatch {
    fn contains(&self, number: u32) -> bool {
        (self.first..self.first.saturating_add(self.count)).contains(&number)
    }
}

impl Join {
    /// How many it needs of so many.
    #[must_use]
    pub fn needs(&self, count: u32) -> u32 {
        match self.need {
            JoinCondition::All => count,
            JoinCondition::Any => 1,
            JoinCondition::Count(needed) => needed,
        }
    }

    /// What comes of it by how the agents stand; nothing yet, if that is still open.
    #[must_use]
    pub fn verdict(&self, tally: JoinTally) -> Option<JoinOutcome> {
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

/// One of the agents that were waited for, as the state that waited sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChildOutcome<'run> {
    /// The agent.
    pub id: &'run AgentId,
    /// The state it was born in.
    pub state: &'run StateName,
    /// How it ended.
    #[serde(flatten)]
    pub status: ChildStatus<'run>,
    /// What it was born with.
    pub variables: &'run Variables,
}

/// How an agent ended that was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ChildStatus<'run> {
    /// With a result.
    Result {
        /// The payload: a text, or an object if it was checked against a schema.
        result: Value,
    },
    /// With an error.
    Error {
        /// What happened.
        error: &'run str,
    },
    /// It goes on.
    Running,
    /// It was ended because the join went on without it.
    Stopped,
}

/// What came of the agents that were waited for, in the order in which they were forked.
#[derive(Debug, Default)]
pub(super) struct ChildOutcomes<'run>(BTreeMap<u32, ChildOutcome<'run>>);

impl<'run> ChildOutcomes<'run> {
    /// One more.
    pub(super) fn add(
        &mut self,
        id: &'run AgentId,
        state: &'run StateName,
        status: ChildStatus<'run>,
        variables: &'run Variables,
    ) {
        self.0.insert(id.number(), ChildOutcome { id, state, status, variables });
    }

    /// The list that `{{results}}` stands for.
    pub(super) fn listed(&self) -> String {
        let list: Vec<_> = self.0.values().collect();
        serde_json::to_string(&list).unwrap_or_else(|_| "[]".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_subroutine_leaves_is_its_callers_and_not_the_next_ones() {
        let mut forks = UnjoinedChildren::default();
        forks.add(1, 0);
        forks.add(2, 1);
        forks.leave(0);
        forks.add(3, 1);
        assert_eq!(forks.numbers(1).collect::<Vec<_>>(), [3]);
        assert_eq!(forks.numbers(0).collect::<Vec<_>>(), [1, 2, 3]);
        forks.ended(2, true);
        assert_eq!(forks.tally(0), JoinTally { count: 3, done: 1, failed: 0 });
        assert_eq!(forks.take(1).numbers(0).collect::<Vec<_>>(), [3]);
        assert_eq!(forks.numbers(1).count(), 0);
    }
}
