//! The whole of a run: its live agents, those that have ended, what it has spent.
//!
//! Its JSON is the state file: the shape of the seed's, and what recovery needs besides.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::agents::LiveAgents;
use super::budget::{Budget, BudgetShare};
use super::fact::KnownFacts;
use super::id::{AgentId, RunId, StateName};
use super::instance::{ProgramSource, ProgramWait};
use super::money::Usd;
use super::question::{Answer, Question};
use super::refusal::ToolRefusals;
use super::settings::Settings;
use super::supervision::SupervisionPolicy;
use super::time::Timestamp;
use super::transition::Variables;
use super::turn::{FailureCause, TurnId};

/// The version of the state file and the journal.
pub const STATE_VERSION: u32 = 1;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// [`STATE_VERSION`] of the program that wrote it.
    pub version: u32,
    /// The number of the last record in it.
    pub seq: u64,
    /// Its id.
    pub workflow_id: RunId,
    /// The directory of the workflow's files.
    pub scope_dir: String,
    /// Whether it goes on.
    pub status: RunStatus,
    /// Why it does not, if it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseReason>,
    /// Before this time no turn starts, because the account's usage limit is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Timestamp>,
    /// What all turns have cost.
    pub total_cost_usd: Usd,
    /// The tools that were refused in all turns.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The most that one turn has cost, by the state it ran in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub turn_costs_usd: BTreeMap<StateName, Usd>,
    /// What its agents may spend of the budget that have a share of their own, and have spent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<AgentId, BudgetShare>,
    /// What it was told when it was started.
    pub settings: Settings,
    /// How many of the answers given ahead of time are used up, by the name they are asked under.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answered: BTreeMap<String, u32>,
    /// The programs of its instances, by the checksum of their text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<Arc<str>, ProgramSource>,
    /// What it has seen of the facts its programs look at.
    #[serde(default, skip_serializing_if = "KnownFacts::is_empty")]
    pub facts: KnownFacts,
    /// The live agents.
    pub agents: LiveAgents,
    /// The agents that have ended, in the order in which they did.
    pub finished: Vec<FinishedAgent>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It has live agents that go on.
    Running,
    /// It has live agents, and waits to be told to go on.
    Paused,
    /// Every agent has ended well.
    Completed,
    /// Every agent has ended, at least one of them badly, and nobody was told who waited for it.
    Failed,
}

/// Why a run is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum PauseReason {
    /// What it may spend is spent.
    #[error("the budget of {limit} is used up: {spent} spent")]
    Budget {
        /// What it has spent.
        spent: Usd,
        /// What it may spend.
        limit: Usd,
    },
    /// More agents would be born than may live at the same time.
    #[error("{live} agent{} live{}, {more} would be born, and no more than {limit} may live at the same time", if *.live == 1 { "" } else { "s" }, if *.live == 1 { "s" } else { "" })]
    Agents {
        /// How many live.
        live: usize,
        /// How many more would be born.
        more: usize,
        /// How many may live.
        limit: u32,
    },
    /// A signal ended the runtime.
    #[error("interrupted")]
    Interrupted,
    /// A plug-in stopped it, or one that it needs is gone.
    #[error("the plug-in {plugin}: {because}")]
    Plugin {
        /// Which plug-in.
        plugin: String,
        /// Why.
        because: String,
    },
    /// Someone asked for it.
    #[error("stopped on request")]
    Stopped,
    /// The account's usage limit is reached.
    #[error("the usage limit of the account is reached: {message}")]
    UsageLimit {
        /// When it resets, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets: Option<Timestamp>,
        /// What Claude Code said.
        message: String,
    },
    /// All agents that live wait for someone, at least one of them for an answer.
    #[error("{} for an answer: {first}", if *.questions == 1 { "a question waits".to_owned() } else { format!("{} questions wait", .questions) })]
    Asking {
        /// How many.
        questions: usize,
        /// The first question.
        first: String,
    },
    /// All agents that live wait, at least one of them for a signal or a time.
    #[error("{} {first}", if *.instances == 1 { "it waits for".to_owned() } else { format!("{} programs wait, the first for", .instances) })]
    Waiting {
        /// How many programs do.
        instances: usize,
        /// What the first of them waits for.
        first: String,
    },
    /// All agents that live wait for a person.
    #[error("{agents} wait{} for someone: {because}", if *.agents == 1 { "s" } else { "" }, agents = if *.agents == 1 { "an agent".to_owned() } else { format!("{} agents", .agents) })]
    Parked {
        /// How many.
        agents: usize,
        /// Why the first of them does.
        because: String,
    },
    /// What its turns need on disk cannot be written.
    #[error("nothing can be written: {message}")]
    Storage {
        /// What went wrong.
        message: String,
    },
    /// Claude Code is not logged in.
    #[error("Claude Code is not logged in: {message}")]
    Authentication {
        /// What it said.
        message: String,
    },
    /// Claude Code cannot be started.
    #[error("Claude Code cannot be started: {message}")]
    Unavailable {
        /// What went wrong.
        message: String,
    },
}

/// An agent that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedAgent {
    /// Its id.
    pub id: AgentId,
    /// The state it began in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// How it ended.
    #[serde(flatten)]
    pub ending: AgentEnding,
    /// Whether its result is a JSON object that was checked against a schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub structured: bool,
    /// The kind of failure, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
    /// What its turns have cost.
    pub cost_usd: Usd,
    /// The turn it may have been at when the whole run ended, whose cost is still to be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owes: Option<UnbilledTurn>,
    /// The values it was born with, for the agent that has forked it and may wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Variables>,
    /// Whether another agent waited for it and was told: then it is that one's matter how it ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// A turn that was running when the whole run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbilledTurn {
    /// Which one.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt it was about.
    pub state: StateName,
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentEnding {
    /// With the payload of its last `<result>`.
    Result(String),
    /// With an error.
    Error(String),
}

impl Run {
    /// What it has spent and may spend.
    #[must_use]
    pub fn purse(&self) -> Budget<'_> {
        Budget {
            spent: self.total_cost_usd,
            limit: self.settings.budget_usd,
            known: &self.turn_costs_usd,
            shares: &self.shares,
        }
    }

    /// How an agent is supervised: as the run, but for what the state it was born in says.
    #[must_use]
    pub fn supervision_of(&self, agent: &Agent) -> SupervisionPolicy {
        self.settings.supervision.with(&agent.birth.terms.supervision)
    }

    /// The time before which no turn may start, if it lies ahead.
    #[must_use]
    pub fn limited(&self, now: Timestamp) -> Option<Timestamp> {
        self.limited_until.filter(|&until| until > now)
    }

    /// The pause that is due when every live agent waits for a person, or for one that does.
    #[must_use]
    pub fn waiting(&self) -> Option<PauseReason> {
        if !self.agents.all(|agent| agent.parked.is_some() || agent.waits()) {
            return None;
        }
        let questions = self.agents.values().filter_map(|agent| agent.asked.as_ref());
        let texts: Vec<&String> = questions.map(|asked| &asked.question.text).collect();
        if let Some(first) = texts.first() {
            return Some(PauseReason::Asking { questions: texts.len(), first: (*first).clone() });
        }
        let mut outside = self.outside();
        if let Some(first) = outside.next() {
            let first = first.awaiting.clone();
            return Some(PauseReason::Waiting { instances: 1 + outside.count(), first });
        }
        let mut parked = self.agents.values().filter_map(|agent| agent.parked.clone());
        let because = parked.next()?;
        Some(PauseReason::Parked { agents: 1 + parked.count(), because })
    }

    /// The program that the run began with, if an agent is to begin with it.
    #[must_use]
    pub fn first_definition(&self, agent: &Agent) -> Option<&ProgramSource> {
        let is_first = agent.id == AgentId::main() && agent.step == 1;
        self.definitions.values().next().filter(|_| is_first)
    }

    /// What its programs wait for that may come from outside.
    pub fn outside(&self) -> impl Iterator<Item = &ProgramWait> {
        let instances = self.agents.values().filter_map(|agent| agent.program.as_ref());
        let waits = instances.filter_map(|instance| instance.stand.wait.as_ref());
        waits.filter(|wait| wait.outside)
    }

    /// The first of the answers given ahead of time that fits a question, and how many of them are used
    /// up then.
    #[must_use]
    pub fn ahead(&self, question: &Question) -> Option<(Answer, u32)> {
        let given = self.settings.answers.get(&question.node)?;
        let used = self.answered.get(&question.node).copied().unwrap_or_default();
        let mut unused = given.iter().zip(1..).skip(used as usize);
        unused.find_map(|(text, count)| Some((question.read(text).ok()?, count)))
    }

    /// Sets the status that follows from which agents live and how the others ended.
    pub(super) fn settle(&mut self) {
        if self.agents.is_empty() {
            let failed =
                |one: &FinishedAgent| matches!(one.ending, AgentEnding::Error(_)) && !one.told;
            let failed = self.finished.iter().any(failed);
            self.status = if failed { RunStatus::Failed } else { RunStatus::Completed };
            self.pause = None;
        }
    }
}
