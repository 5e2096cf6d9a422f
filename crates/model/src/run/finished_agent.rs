//! The record of an agent that has ended.
//!
//! The facts that a run sees as they were where it branched off another.
//!
//! The pause of a run in which nothing goes on before somebody acts.

use serde::{Deserialize, Serialize};

use crate::activity::Activity;
use crate::agent::Agent;
use crate::fact::{Fact, FactChange};
use crate::id::{AgentId, Folder, StateName};
use crate::money::Usd;
use crate::run::{PauseReason, Run};
use crate::transition::Variables;
use crate::turn::{FailureCause, TurnId};

/// An agent that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedAgent {
    /// Its id.
    pub id: AgentId,
    /// The state it began in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The folder of that state below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The state it failed in, if it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<StateName>,
    /// The folder of the state it failed in, if it is another one than the run's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_folder: Option<Folder>,
    /// The agent's ending.
    #[serde(flatten)]
    pub ending: AgentEnding,
    /// True if its result is a JSON object that was checked against a schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub structured: bool,
    /// The kind of failure, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
    /// The cost of its turns.
    pub cost_usd: Usd,
    /// The turn that may have been running when the whole run ended; its cost is still to be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbilled_turn: Option<UnbilledTurn>,
    /// The values it started with, for the agent that forked it and may wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Variables>,
    /// True if a waiting agent was notified; then a bad ending does not fail the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parent_notified: bool,
    /// The messages of people that it was not told before it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// The agent as it was before its last turn, if it can be retried: it has failed, or was a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<Box<Agent>>,
}

impl FinishedAgent {
    /// Returns the state it began in, as people see it.
    pub fn began(&self) -> Option<StateName> {
        Some(self.state.as_ref()?.shown_in(self.folder.as_ref()))
    }

    /// Returns the state it failed in, as people see it, if it has failed in one.
    pub fn shown_failed_in(&self) -> Option<StateName> {
        Some(self.failed_in.as_ref()?.shown_in(self.failed_folder.as_ref()))
    }

    /// Returns whether it has failed; an agent that was only no longer needed has not.
    pub fn has_failed(&self) -> bool {
        matches!(self.ending, AgentEnding::Error(_)) && self.cause != Some(FailureCause::Unneeded)
    }
}

/// A turn that was running when the whole run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbilledTurn {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt it was about.
    pub state: StateName,
    /// The folder of that prompt below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
}

impl UnbilledTurn {
    /// Returns the turn of an agent that is due.
    pub fn of(agent: &Agent) -> Self {
        Self { turn: agent.turn_id(), state: agent.prompt().clone(), folder: agent.folder() }
    }
}

/// An agent's ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentEnding {
    /// With the payload of its last `<result>`.
    Result(String),
    /// With an error.
    Error(String),
}

impl Run {
    /// Returns whether a change of a fact came before the run branched off another and after what both share.
    pub fn hides(&self, change: &FactChange) -> bool {
        self.branch.as_ref().is_some_and(|branch| branch.hides(change, &self.facts))
    }

    /// Returns a fact that held where the run branched off another and is gone since, until an agent of it takes it.
    pub fn kept_fact(&self, activity: &Activity) -> Option<Fact> {
        let Activity::Claim { label, key, seq } = activity else { return None };
        let branch = self.branch.as_ref()?;
        let fact = self.facts.get(label, Some(key)).filter(|fact| fact.seq == *seq)?;
        branch.keeps(&fact).then_some(fact)
    }
}

impl Run {
    /// Returns the pause that is due when every live agent waits for a person or for one that does.
    pub fn waiting(&self) -> Option<PauseReason> {
        let is_still =
            |agent: &Agent| agent.parked_reason().is_some() || agent.is_held() || agent.waits();
        if !self.agents.all(is_still) {
            return None;
        }
        let questions = self.agents.values().filter_map(Agent::question);
        let approvals = self.agents.values().flat_map(Agent::open_approvals);
        let questions = questions.map(|asked| asked.question.text.clone());
        let mut texts = questions.chain(approvals.map(|asked| asked.request.summary()));
        if let Some(first) = texts.next() {
            return Some(PauseReason::Asking { questions: 1 + texts.count(), first });
        }
        let mut waits = self.external_waits();
        if let Some(first) = waits.next() {
            let first = first.awaiting.clone();
            return Some(PauseReason::Waiting { programs: 1 + waits.count(), first });
        }
        let held = |agent: &Agent| {
            let (id, run) = (&agent.id, &self.workflow_id);
            let why = || format!("{id} is held; continue it with `raymond release {run} {id}`");
            agent.is_held().then(why)
        };
        let reason = |agent: &Agent| {
            let reason = agent.parked_reason().map(str::to_owned).or_else(|| held(agent));
            reason.map(|reason| (agent.waits(), reason))
        };
        let mut parked: Vec<(bool, String)> = self.agents.values().filter_map(reason).collect();
        // An agent that waits for others cannot go on before they do, so one that does not is named.
        parked.sort_by_key(|(waits, _)| *waits);
        let agents = parked.len();
        let (_, reason) = parked.into_iter().next()?;
        Some(PauseReason::Parked { agents, reason })
    }
}

#[cfg(test)]
mod waiting_tests {
    use super::*;
    use crate::join::JoinCondition;
    use crate::tests::scene::{Scene, tag};
    use crate::time::Timestamp;
    use crate::transition::TagName;

    #[test]
    fn pause_names_a_held_agent_that_waits_for_no_other() {
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        scene.joins("main", JoinCondition::All);
        for id in ["main", "main.1"] {
            let mut agent = scene.agent(id).clone();
            agent.orders.held_since = Some(Timestamp(1));
            scene.run.agents.insert(agent);
        }
        let Some(PauseReason::Parked { agents, reason }) = scene.run.waiting() else {
            panic!("{:?}", scene.run.waiting())
        };
        assert_eq!(agents, 2);
        assert!(reason.starts_with("main.1 is held"), "{reason}");
    }
}
