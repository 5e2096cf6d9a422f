//! The whole of a run: its status, its live and its finished agents, its spending, its facts and its pauses.
//!
//! Serialized, it is the snapshot `state.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::agents::LiveAgents;
use super::approval::GrantedRule;
use super::branch::BranchOrigin;
use super::budget::{Budget, BudgetShare};
use super::fact::KnownFacts;
use super::graph_execution::{ProgramSource, ProgramWait};
use super::id::{AgentId, Folder, RunId, StateName};
use super::money::Usd;
use super::question::{Answer, Question};
use super::refusal::ToolRefusals;
use super::settings::Settings;
use super::supervision::SupervisionPolicy;
use super::time::Timestamp;
use super::worktree_snapshot::SnapshotOutcome;
use crate::activity::Activity;
use crate::budget::{EndedCall, OpenCalls};
use crate::fact::{Fact, FactChange};
use crate::transition::Variables;
use crate::turn::{FailureCause, TurnId};

/// The version of the snapshot, which is the JSON of a [`Run`]. It changes with the shape of the types in it: a
/// snapshot of an earlier version is not read, and is made again from the journal.
pub const SNAPSHOT_VERSION: u32 = 7;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The [`SNAPSHOT_VERSION`] of the program that wrote it.
    pub version: u32,
    /// The number of the last record in it.
    pub seq: u64,
    /// Its id.
    pub workflow_id: RunId,
    /// The directory of the workflow's files.
    pub scope_dir: String,
    /// The workflow's folder below that directory, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The status of the run.
    pub status: RunStatus,
    /// The reason for the pause, if it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseReason>,
    /// The time before which no turn starts, because the account's usage limit is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Timestamp>,
    /// The cost of all turns.
    pub total_cost_usd: Usd,
    /// The parts of the budget that runs started by its programs were given, or are to be given.
    #[serde(default, skip_serializing_if = "Usd::is_zero")]
    pub given_usd: Usd,
    /// The tools that were refused in all turns.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The most that one turn has cost, by the state it ran in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_turn_costs_usd: BTreeMap<StateName, Usd>,
    /// Limit and spending of every agent that has its own share of the budget.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<AgentId, BudgetShare>,
    /// The shares without live agents. Retried agents spend what is left of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub closed_shares: BTreeMap<AgentId, BudgetShare>,
    /// The calls with a budget whose caller has ended, while agents that were forked in them live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_calls: Vec<EndedCall>,
    /// The settings it was started with.
    pub settings: Settings,
    /// The place where it branched off another run, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchOrigin>,
    /// The number of answers given ahead of time that are used up, by the name they are asked under.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used_answers: BTreeMap<String, u32>,
    /// The number of approvals that were asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub approvals_asked: u32,
    /// The rules that were given with answers to approvals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approval_rules: Vec<GrantedRule>,
    /// The last snapshot of each worktree, by the agent that the worktree belongs to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worktrees: BTreeMap<AgentId, SnapshotOutcome>,
    /// The programs of its program executions, by the checksum of their text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<Arc<str>, ProgramSource>,
    /// The facts its programs look at, as last seen.
    #[serde(default, skip_serializing_if = "KnownFacts::is_empty")]
    pub facts: KnownFacts,
    /// The live agents.
    pub agents: LiveAgents,
    /// The agents that have ended, in the order in which they did.
    pub finished: Vec<FinishedAgent>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It has live agents and continues.
    Running,
    /// It has live agents, and waits to be resumed.
    Paused,
    /// Every agent has ended well.
    Completed,
    /// Every agent has ended, at least one of them with an error of which no waiting agent was notified.
    Failed,
}

/// The reason for a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum PauseReason {
    /// The budget is used up.
    #[error("the budget of {limit} is used up: {spent} spent{}", if .given.is_zero() { String::new() } else { format!(", {given} given to started runs") })]
    Budget {
        /// The amount the run has spent.
        spent: Usd,
        /// The amount the run may spend.
        limit: Usd,
        /// The amount that started runs were given of it.
        #[serde(default, skip_serializing_if = "Usd::is_zero")]
        given: Usd,
    },
    /// More agents would be forked than may live at the same time.
    #[error("{live} agent{} live{}, {more} would be forked, and at most {limit} may live at the same time", if *.live == 1 { "" } else { "s" }, if *.live == 1 { "s" } else { "" })]
    Agents {
        /// The number of live agents.
        live: usize,
        /// The number of agents that would be forked.
        more: usize,
        /// The number of agents that may live.
        limit: u32,
    },
    /// A signal ended the runtime.
    #[error("stopped by an interrupt")]
    Interrupted,
    /// A plug-in stopped the run, or a required one is gone.
    #[error("the plug-in {plugin}: {reason}")]
    Plugin {
        /// The plug-in.
        plugin: String,
        #[serde(rename = "message", alias = "because")]
        reason: String,
    },
    /// Someone asked for the stop.
    #[error("stopped on request")]
    Stopped,
    /// The account's usage limit is reached.
    #[error("the usage limit of the account is reached: {message}")]
    UsageLimit {
        /// The time of the reset, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets: Option<Timestamp>,
        /// The message of Claude Code.
        message: String,
    },
    /// All live agents wait for a person, at least one of them for an answer.
    #[error("{} for an answer: {first}", if *.questions == 1 { "a question waits".to_owned() } else { format!("{} questions wait", .questions) })]
    Asking {
        /// The number of questions.
        questions: usize,
        /// The first question.
        first: String,
    },
    /// All live agents wait, at least one of them for a signal or a time.
    #[error("{} {first}", if *.programs == 1 { "it waits for".to_owned() } else { format!("{} programs wait, the first for", .programs) })]
    Waiting {
        /// The number of programs that wait.
        #[serde(alias = "instances")]
        programs: usize,
        /// The signal or time that the first of them waits for.
        first: String,
    },
    /// All live agents wait for a person.
    #[error("{agents} wait{} for a person: {reason}", if *.agents == 1 { "s" } else { "" }, agents = if *.agents == 1 { "an agent".to_owned() } else { format!("{} agents", .agents) })]
    Parked {
        /// The number of agents.
        agents: usize,
        /// The first agent's reason.
        #[serde(rename = "message", alias = "because")]
        reason: String,
    },
    /// The files of its turns cannot be written.
    #[error("writing failed: {message}")]
    Storage {
        /// The error.
        message: String,
    },
    /// Claude Code is not logged in.
    #[error("Claude Code is not logged in: {message}")]
    Authentication {
        /// The message of Claude Code.
        message: String,
    },
    /// Claude Code cannot be started.
    #[error("no turn can be started: {message}")]
    Unavailable {
        /// The error.
        message: String,
    },
}

impl Run {
    /// Returns `@label` of its programs: its name for people, else its id.
    pub fn label(&self) -> &str {
        self.settings.label.as_deref().unwrap_or(self.workflow_id.as_str())
    }

    /// Returns its budget and its spending.
    pub fn budget(&self) -> Budget<'_> {
        Budget {
            spent: self.committed_usd(),
            limit: self.settings.budget_usd,
            max_turn_costs: &self.max_turn_costs_usd,
            shares: &self.shares,
            calls: OpenCalls::of(&self.agents, &self.ended_calls),
        }
    }

    /// Returns the amount that is gone from its budget: spent by itself, or given to runs that it has started.
    pub fn committed_usd(&self) -> Usd {
        self.total_cost_usd.saturating_add(self.given_usd)
    }

    /// Returns the part of its budget that is left; `None` without a budget.
    pub fn budget_left(&self) -> Option<Usd> {
        Some(self.settings.budget_usd?.saturating_sub(self.committed_usd()))
    }

    /// Returns whether it can be resumed: it has not ended, neither well nor badly.
    pub fn can_resume(&self) -> bool {
        match self.status {
            RunStatus::Running | RunStatus::Paused => true,
            RunStatus::Completed | RunStatus::Failed => false,
        }
    }

    /// Returns the policy that supervises an agent: the run's, overridden by the state the agent started in.
    pub fn supervision_of(&self, agent: &Agent) -> SupervisionPolicy {
        self.settings.supervision.with(&agent.spec.options.supervision)
    }

    /// Returns the time before which no turn may start, if it lies ahead.
    pub fn limited(&self, now: Timestamp) -> Option<Timestamp> {
        self.limited_until.filter(|&until| until > now)
    }

    /// Returns the program that the run began with, if an agent is to begin with it.
    pub fn first_definition(&self, agent: &Agent) -> Option<&ProgramSource> {
        let is_first = agent.id == AgentId::main() && agent.step == 1;
        self.definitions.values().next().filter(|_| is_first)
    }

    /// Returns the recorded text of the program that an agent executes, or is to begin with.
    pub fn kept_program(&self, agent: &Agent) -> Option<&ProgramSource> {
        match agent.program() {
            Some(source) => self.definitions.get(&source.program),
            None => self.first_definition(agent),
        }
    }

    /// Returns the roles of an agent's program that need no process while it waits for an outside event, which may take
    /// days.
    pub fn idle_roles(&self, agent: &Agent) -> Vec<AgentId> {
        if !agent.program_wait().is_some_and(|wait| wait.outside) {
            return Vec::new();
        }
        let waits = |role: &&AgentId| self.agents.get(role).is_some_and(Agent::waits);
        agent.roles().filter(waits).cloned().collect()
    }

    /// Returns the waits of its programs that can be ended from outside.
    pub fn external_waits(&self) -> impl Iterator<Item = &ProgramWait> {
        self.agents.values().filter_map(Agent::program_wait).filter(|wait| wait.outside)
    }

    /// Returns the first of the answers given ahead of time that fits a question, and the number of answers
    /// that are used up then.
    pub fn prepared_answer(&self, question: &Question) -> Option<(Answer, u32)> {
        let given = self.settings.answers.get(&question.node)?;
        let used = self.used_answers.get(&question.node).copied().unwrap_or_default();
        let mut unused = given.iter().zip(1..).skip(used as usize);
        unused.find_map(|(text, count)| Some((question.read(text).ok()?, count)))
    }

    /// Sets the status that follows from which agents live and how the others ended.
    pub(super) fn update_status(&mut self) {
        if self.agents.is_empty() {
            let failed = |ended: &FinishedAgent| {
                matches!(ended.ending, AgentEnding::Error(_)) && !ended.parent_notified
            };
            let failed = self.finished.iter().any(failed);
            self.status = if failed { RunStatus::Failed } else { RunStatus::Completed };
            self.pause = None;
        }
    }
}

// Agents that have ended, and turns that were running when the whole run ended.

/// An agent that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedAgent {
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
    /// The messages of people that it did not receive before it ended.
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

    /// Returns the word for its ending: `finished`, `failed` or `unneeded`.
    pub fn standing(&self) -> &'static str {
        match self.ending {
            AgentEnding::Result(_) => "finished",
            AgentEnding::Error(_) if self.has_failed() => "failed",
            AgentEnding::Error(_) => "unneeded",
        }
    }

    /// Returns whether it has failed; an agent that was only no longer needed has not.
    pub fn has_failed(&self) -> bool {
        matches!(self.ending, AgentEnding::Error(_)) && self.cause != Some(FailureCause::Unneeded)
    }
}

/// A turn that was running when the whole run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbilledTurn {
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt it was about.
    pub state: StateName,
    /// The folder of that prompt below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
}

impl UnbilledTurn {
    /// Returns the pending turn of an agent.
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

// The facts that a run sees as they were where it branched off another.

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

    /// Returns the fact that the program of an agent is to take, if only this run still has that fact.
    pub fn kept_fact_of(&self, agent: &AgentId) -> Option<Fact> {
        let program = self.agents.get(agent)?.program()?;
        self.kept_fact(program.position.activity.as_ref()?)
    }
}

// The pause of a run in which nothing goes on before somebody acts.

impl Run {
    /// Returns the pause of the run if every live agent waits for a person, or for an agent that does.
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
        // An agent that waits for others cannot continue before they do, so the reason names an agent that does not
        // wait.
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
