//! The events of a run, their records, the commands that people give, and the parts that events have in common.
//!
//! An event has one form: what a decision makes is stored in the journal under these names, and plug-ins and readers of
//! `--json` see it under the same names. They are a promise: another name or another meaning needs another format of
//! the journal and another version of the protocol. What belongs to the journal alone, such as checksums and proofs, is
//! in `store::record`.
//!
//! An event carries every choice that was made when it happened (session ids, costs, delays), so that applying it
//! needs neither a clock nor randomness. One step of an agent is one record.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentOptions};
use crate::approval::PendingApproval;
use crate::branch::{BranchOrigin, BranchedAgent};
pub use crate::event::advance::{
    AdvancePosition, AdvanceView, AdvancedTo, AgentFailed, AgentParked, ApprovalAnswered,
    ApprovalAsked, FinishedTask, GraphAdvanced, GraphEntry, GraphProgress, JoinBegun, JoinFinished,
    LanguageAdvanced, NextAction, ProgramAdvanced, ProgramDefined, ProgramLogged, ProgramProgress,
    ProgramStarted, ProgramStatus, QuestionAnswered, QuestionTimedOut, RoleDelegated,
    RoleRequested, RoleResponded, StoppedChild, TransitionProposed, TurnFailed, TurnHeld,
    TurnRejected, TurnSuspended,
};
use crate::fact::FactChange;
use crate::host::{HostName, PlacedAgent};
use crate::id::{AgentId, Folder, InvalidName, MessageId, RunId, SessionId, StateName};
use crate::money::Usd;
use crate::question::{AnswerCommand, Question};
use crate::retry::{RetriedAgent, RetrySelection};
use crate::run::{PauseReason, Run};
use crate::session::KeptSession;
use crate::settings::{ForkGroup, Settings};
use crate::time::Timestamp;
use crate::transition::{OverruledTransition, Transition, Variables};
use crate::turn::{FailureCause, TurnCost, TurnId};
use crate::worktree_snapshot::WorktreeSnapshot;

mod advance;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Record {
    /// Counted from 1 without a gap.
    pub seq: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The folder of its agent's state below the run's root, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The files of the agent's worktree at the end of the step, if they differ from those of an earlier record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<WorktreeSnapshot>>,
    /// The session of the agent's turn, if an engine keeps it, in a run of several machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_session: Option<Box<KeptSession>>,
    /// The agents that are given a host, in a run of several machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<PlacedAgent>,
    #[serde(flatten)]
    pub event: Event,
}

impl Record {
    /// Returns the record of an event that happens next in a run.
    pub fn next(run: &Run, at: Timestamp, event: Event) -> Self {
        let agent = event.agent().and_then(|id| run.agents.get(id));
        let folder = agent.and_then(Agent::folder);
        Self {
            seq: run.seq + 1,
            at,
            folder,
            snapshot: None,
            kept_session: None,
            placed: Vec::new(),
            event,
        }
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most records are of finished steps")]
pub enum Event {
    /// The run began, with its first agent.
    RunStarted(Box<RunStarted>),
    /// An agent took a transition. A `<fork>` is the parent's next step and the child's creation in one.
    StepFinished(StepFinished),
    /// An agent asked for a transition, and its state's evaluator checks it first.
    TransitionProposed(Box<TransitionProposed>),
    /// An agent executed nodes of a graph, up to the next action that changes the world.
    GraphAdvanced(Box<GraphAdvanced>),
    /// A question has its answer.
    QuestionAnswered(QuestionAnswered),
    /// A question was not answered in time.
    QuestionTimedOut(QuestionTimedOut),
    /// Claude Code asks whether a tool call may run.
    ApprovalAsked(ApprovalAsked),
    /// A tool call has been allowed or denied.
    ApprovalAnswered(ApprovalAnswered),
    /// A turn was ended while tool calls needed approval, and goes on after the answers.
    TurnSuspended(TurnSuspended),
    /// The text of a program is recorded.
    ProgramDefined(Box<ProgramDefined>),
    /// An execution of a program begins.
    ProgramStarted(Box<ProgramStarted>),
    /// An execution has advanced as far as possible.
    ProgramAdvanced(Box<ProgramAdvanced>),
    /// An agent advanced in a state of another language.
    #[serde(rename = "advanced")]
    LanguageAdvanced(Box<LanguageAdvanced>),
    /// An execution logs a line for people.
    ProgramLogged(ProgramLogged),
    /// An execution asks a role something.
    RoleRequested(Box<RoleRequested>),
    /// A role has answered.
    RoleResponded(Box<RoleResponded>),
    /// A role delegates a request to a further agent.
    RoleDelegated(Box<RoleDelegated>),
    /// An agent came to a state that waits for the agents it has forked.
    JoinBegun(Box<JoinBegun>),
    /// An agent no longer waits for those it has forked.
    #[serde(rename = "joined")]
    JoinFinished(Box<JoinFinished>),
    /// Facts have changed that programs of the run read.
    FactsSeen { changes: Vec<FactChange> },
    /// A plug-in holds an agent's next turn back.
    TurnHeld(TurnHeld),
    /// A reply broke the protocol; the agent is reminded in the same session.
    TurnRejected(TurnRejected),
    /// A turn failed and is run again.
    TurnFailed(TurnFailed),
    /// An agent ended with an error.
    AgentFailed(AgentFailed),
    /// The run branches off another, whose records it shares up to here.
    RunBranched(Box<RunBranched>),
    /// Failed agents live again.
    AgentsRetried {
        /// The agents, parents before their children.
        agents: Vec<RetriedAgent>,
    },
    /// Agents are given a host, or another one; `placed` says which.
    AgentsPlaced {
        /// The hosts that were declared lost, and whose agents go on elsewhere.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<HostName>,
    },
    /// A turn that ran when its agent was ended came to its own end.
    CostCounted {
        #[serde(flatten)]
        turn: TurnId,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
    },
    /// An agent has used up its restarts and waits for a person.
    AgentParked(AgentParked),
    /// The account's usage limit is reached: no turn starts before it resets.
    LimitReached {
        /// The time the run resumes by itself.
        until: Timestamp,
        /// The message from Claude Code.
        message: String,
    },
    /// The run is paused until it is resumed.
    RunPaused {
        /// The reason.
        pause: PauseReason,
    },
    /// The run resumes, under these settings.
    RunResumed {
        /// The settings from now on.
        settings: Box<Settings>,
    },
    /// A command from outside was taken from the inbox.
    CommandReceived {
        /// The name of the inbox entry, so that one left behind is not taken twice.
        id: String,
        command: RunCommand,
    },
    /// The messages of people to an agent belong to its turn from now on.
    MessagesTaken {
        #[serde(flatten)]
        turn: TurnId,
        /// The message that the turn has read while it runs; absent for all, before it begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
    },
}

/// The run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// The run's id.
    pub workflow_id: RunId,
    /// The directory of the workflow's files.
    pub scope_dir: String,
    /// The workflow's folder below that directory, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The state the first agent starts in.
    pub entry: StateName,
    /// The session of its first turn.
    pub session: SessionId,
    /// Values for the placeholders of that state.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The program that agent runs, if its state is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<ProgramDefined>>,
    /// The settings of that agent's whole life.
    #[serde(flatten)]
    pub options: AgentOptions,
    /// The settings of the run.
    pub settings: Settings,
}

/// The run branches off another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunBranched {
    /// The id of the new run.
    pub run: RunId,
    /// The place where it branches off.
    pub origin: BranchOrigin,
    /// Its agents, with their new sessions.
    pub agents: Vec<BranchedAgent>,
    /// The settings from now on.
    pub settings: Settings,
}

/// An agent took a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepFinished {
    /// The agent, its step and the last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// The transition that was asked for instead, and the evaluator or plug-in that overruled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruled: Option<Box<OverruledTransition>>,
    /// Claude Code was not asked: a plug-in decided before, or the evaluator's budget was spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_turn: bool,
    /// The evaluator's prompt, if this was its turn; the cost is then the evaluator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluator: Option<StateName>,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The texts that the reply shows to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The id of the session this transition opens: the agent's own, or its child's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
    /// The settings of the child of a plain fork.
    #[serde(flatten)]
    pub options: Box<AgentOptions>,
    /// The children of any other fork.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ForkGroup>,
    /// The budget of the call that the transition makes, if the called state gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_budget_usd: Option<Usd>,
    /// The restart of a permanent agent after its result, in the session that is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted: Option<PermanentRestart>,
}

/// The restart of a permanent agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermanentRestart {
    /// The earliest time of its next turn.
    pub not_before: Timestamp,
}

/// A command to a run from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum RunCommand {
    /// Pause, and save.
    Stop,
    /// Answer a question.
    Answer(AnswerCommand),
    /// Retry failed agents.
    Retry(RetrySelection),
    /// Tell an agent something with its next prompt.
    Tell(AgentMessage),
    /// Let nothing of these agents begin until they are released.
    Hold(AgentHold),
    /// End such a hold.
    Release(AgentHold),
    /// Ask a turn that is due something else.
    Edit(PromptEdit),
    /// Let an agent go on in the session in which a person has spoken with it.
    Attach(AttachedSession),
    /// End an agent.
    StopAgent { agent: AgentId },
}

impl StepFinished {
    /// Returns the prompt that was asked last: the state's, or its evaluator's.
    pub fn prompt(&self) -> &StateName {
        self.evaluator.as_ref().unwrap_or(&self.state)
    }
}

// Commands of people to single agents of a run.

/// A message to an agent, for its next prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentMessage {
    pub agent: AgentId,
    pub text: String,
}

/// A prompt that a person has edited, for one turn that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptEdit {
    /// The turn that was due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The text that it is asked in the place of its prompt.
    pub text: String,
    /// True if the turn had begun when raymond took the command, so that it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}

/// A session in which a person has spoken with the model of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachedSession {
    /// The turn that was due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The session whose history it begins with.
    pub from: SessionId,
    pub session: SessionId,
    /// Its last message, if it is the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// True if the turn had begun when raymond took the command, so that it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}

/// An agent, alone or with all that descend from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFamily {
    pub agent: AgentId,
    /// True for `AGENT.*`: also the agents that descend from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descendants: bool,
}

impl AgentFamily {
    /// Reads `AGENT` or `AGENT.*`.
    ///
    /// # Errors
    /// [`InvalidName::Agent`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let (agent, descendants) = match text.strip_suffix(".*") {
            Some(agent) => (agent, true),
            None => (text, false),
        };
        Ok(Self { agent: AgentId::parse(agent)?, descendants })
    }

    /// Returns whether an agent belongs to it.
    pub fn has(&self, id: &AgentId) -> bool {
        *id == self.agent || (self.descendants && id.is_within(&self.agent))
    }
}

impl fmt::Display for AgentFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.agent, if self.descendants { ".*" } else { "" })
    }
}

/// A hold of agents, or its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentHold {
    /// The agents.
    #[serde(flatten)]
    pub family: AgentFamily,
    /// The name of the visit that holds the agent while it lasts: a person edits its prompt, or speaks with it. `None` for a
    /// hold that lasts until a person releases the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<String>,
}

impl From<AgentFamily> for AgentHold {
    fn from(family: AgentFamily) -> Self {
        Self { family, visit: None }
    }
}

// The parts that events of several kinds have, in one table.
//
// The table names each event, so that the compiler asks for a new one. Observers ask for the parts, and name only the
// events that they treat in a special way.

/// The parts that an event has, of those that several events have.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventFacets<'event> {
    /// The turn that it is about.
    pub turn: Option<&'event TurnId>,
    /// The state of the turn that it ends. `None` if it ends none, or a turn that ran for a graph, for a program, or
    /// for an agent that had already ended.
    pub turn_state: Option<&'event StateName>,
    /// The cost of the turn that it ends.
    pub cost: Option<&'event TurnCost>,
    /// The session that is opened.
    pub new_session: Option<&'event SessionId>,
    /// The texts that it shows to people: those of a graph or a program, and those that a reply prints.
    pub shown: &'event [String],
    /// The tone of the sentence about it.
    pub tone: TextTone,
    /// How much people want to read of it.
    pub prominence: EventProminence,
}

/// The tone of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextTone {
    /// It needs attention.
    Bad,
    /// It may need attention.
    Warning,
    /// It makes progress.
    Good,
    /// It is neutral.
    #[default]
    Plain,
    /// It is incidental.
    Faint,
    /// It stands for what follows.
    Strong,
}

/// How much people want to read of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventProminence {
    /// It needs attention.
    Urgent,
    /// It is worth a line in any case.
    Notable,
    /// It is one of many, unless nothing else shows the progress.
    #[default]
    Progress,
    /// It is reported in another way, or not at all.
    Unseen,
}

impl<'event> EventFacets<'event> {
    /// Returns the facets of an event about a turn that goes on, or is due.
    fn about(turn: &'event TurnId) -> Self {
        Self { turn: Some(turn), ..Self::default() }
    }

    /// Returns the facets of an event that ends a turn.
    fn ending(turn: &'event TurnId, state: &'event StateName, cost: &'event TurnCost) -> Self {
        Self { turn_state: Some(state), cost: Some(cost), ..Self::about(turn) }
    }

    /// Returns the facets of an advance, which ends the turn whose result it took in, if there is one.
    fn advancing(turn: &'event TurnId, task: Option<&'event FinishedTask>) -> Self {
        Self { cost: task.map(|task| &task.cost), ..Self::about(turn) }
    }

    fn opening(self, new_session: Option<&'event SessionId>) -> Self {
        Self { new_session, ..self }
    }

    fn costing(self, cost: &'event TurnCost) -> Self {
        Self { cost: Some(cost), ..self }
    }

    fn showing(self, shown: &'event [String]) -> Self {
        Self { shown, ..self }
    }

    fn noted(self, tone: TextTone, prominence: EventProminence) -> Self {
        Self { tone, prominence, ..self }
    }
}

impl Event {
    /// Returns the parts that this event has.
    pub fn facets(&self) -> EventFacets<'_> {
        use EventProminence::{Notable, Progress, Unseen, Urgent};
        use TextTone::{Bad, Faint, Good, Plain, Strong, Warning};

        let run = EventFacets::default();
        match self {
            Self::StepFinished(event) => {
                let (tone, prominence) = match event.transition {
                    _ if event.overruled.is_some() => (Warning, Notable),
                    Transition::Result { .. } => (Good, Progress),
                    _ => (Plain, Progress),
                };
                EventFacets::ending(&event.turn, &event.state, &event.cost)
                    .opening(event.new_session.as_ref())
                    .showing(&event.shown)
                    .noted(tone, prominence)
            }
            Self::TransitionProposed(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost)
                    .opening(Some(&event.new_session))
                    .showing(&event.shown)
            }
            Self::TurnRejected(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost).noted(Warning, Notable)
            }
            Self::TurnFailed(event) => {
                // The run pauses, or waits for the limit, and that is reported.
                let is_of_run =
                    event.cause.is_of_machine() || event.cause == FailureCause::UsageLimit;
                EventFacets::ending(&event.turn, &event.state, &event.cost)
                    .noted(Warning, if is_of_run { Unseen } else { Notable })
            }
            Self::TurnSuspended(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost)
            }
            Self::AgentFailed(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost).noted(Bad, Urgent)
            }
            Self::GraphAdvanced(event) => {
                EventFacets::advancing(&event.turn, event.task.as_deref())
                    .opening(event.new_session.as_ref())
                    .showing(&event.shown)
            }
            Self::ProgramAdvanced(event) => {
                EventFacets::advancing(&event.turn, event.task.as_deref())
                    .opening(event.new_session.as_ref())
                    .showing(&event.shown)
            }
            Self::LanguageAdvanced(event) => {
                EventFacets::advancing(&event.turn, event.task.as_deref())
                    .opening(event.new_session.as_ref())
                    .showing(&event.shown)
            }
            Self::RoleRequested(event) => {
                EventFacets::about(&event.turn).opening(event.new_session.as_ref())
            }
            Self::RoleResponded(event) => EventFacets::about(&event.turn).costing(&event.cost),
            Self::RoleDelegated(event) => {
                EventFacets::about(&event.turn).opening(Some(&event.new_session))
            }
            Self::CostCounted { turn, cost } => {
                EventFacets::about(turn).costing(cost).noted(Faint, Unseen)
            }
            Self::QuestionAnswered(event) => EventFacets::about(&event.turn).noted(Plain, Notable),
            Self::QuestionTimedOut(event) => {
                EventFacets::about(&event.turn).noted(Warning, Notable)
            }
            Self::ApprovalAsked(event) => {
                let prominence = if event.grant.is_none() { Notable } else { Progress };
                EventFacets::about(&event.turn).noted(Warning, prominence)
            }
            Self::ApprovalAnswered(event) => EventFacets::about(&event.turn).noted(Plain, Notable),
            Self::ProgramStarted(event) => EventFacets::about(&event.turn),
            Self::ProgramLogged(event) if event.warning => {
                EventFacets::about(&event.turn).noted(Warning, Notable)
            }
            Self::ProgramLogged(event) => EventFacets::about(&event.turn),
            Self::JoinBegun(event) => EventFacets::about(&event.turn),
            Self::JoinFinished(event) => EventFacets::about(&event.turn),
            Self::TurnHeld(event) => EventFacets::about(&event.turn).noted(Warning, Notable),
            Self::AgentParked(event) => EventFacets::about(&event.turn).noted(Warning, Urgent),
            Self::MessagesTaken { turn, .. } => EventFacets::about(turn).noted(Faint, Progress),
            Self::RunStarted(_)
            | Self::RunResumed { .. }
            | Self::RunBranched(_)
            | Self::AgentsRetried { .. } => run.noted(Strong, Notable),
            Self::AgentsPlaced { lost } => {
                run.noted(Strong, if lost.is_empty() { Unseen } else { Notable })
            }
            Self::ProgramDefined(_) => run.noted(Plain, Unseen),
            Self::FactsSeen { .. } | Self::CommandReceived { .. } => run.noted(Faint, Progress),
            Self::LimitReached { .. } => run.noted(Warning, Urgent),
            // The end of the run reports the reason.
            Self::RunPaused { .. } => run.noted(Warning, Unseen),
        }
    }

    /// Returns the session that is opened, if any.
    pub fn new_session(&self) -> Option<&SessionId> {
        self.facets().new_session
    }

    /// Returns the turn the event is about, if any.
    pub fn turn(&self) -> Option<&TurnId> {
        self.facets().turn
    }

    /// Returns the agent of the turn that the event is about; `None` if it is about none, as a command to an agent.
    pub fn agent(&self) -> Option<&AgentId> {
        self.turn().map(|turn| &turn.agent)
    }

    /// Returns the cost of the turn that the event ends; `None` if it ends none.
    pub fn cost(&self) -> Option<&TurnCost> {
        self.facets().cost
    }

    /// Returns the state of the turn that the event ends; see [`EventFacets::turn_state`].
    pub fn turn_state(&self) -> Option<&StateName> {
        self.facets().turn_state
    }

    /// Returns the question that the event asks a person, if any.
    pub fn question(&self) -> Option<Question> {
        match self {
            Self::StepFinished(event) => {
                Question::of(&event.transition).map(|(question, _)| question)
            }
            Self::ApprovalAsked(event) if event.grant.is_none() => {
                Some(event.request.question(&PendingApproval::name_of(event.number)))
            }
            other => match &*other.advance()?.next_action {
                NextAction::Question(question) => Some((**question).clone()),
                _ => None,
            },
        }
    }

    /// Returns whether the event ends agents that it is not about: with the whole run, or because a join does not need
    /// them.
    pub fn ends_others(&self) -> bool {
        self.ends_run() || !self.stopped_children().is_empty()
    }

    /// Returns whether the event ends an agent that it is not about.
    pub fn ends_other(&self, agent: &AgentId) -> bool {
        let is_stopped = || self.stopped_children().iter().any(|child| child.agent == *agent);
        (self.ends_run() && self.agent() != Some(agent)) || is_stopped()
    }

    /// Returns whether the event is a failure that ends all agents.
    pub fn ends_run(&self) -> bool {
        matches!(self, Self::AgentFailed(failure) if failure.ends_run)
    }

    /// Returns the agents that the event ends because a join does not need them.
    pub fn stopped_children(&self) -> &[StoppedChild] {
        if let Self::JoinFinished(event) = self { &event.stopped } else { &[] }
    }
}

#[cfg(test)]
mod person_command_tests {
    use super::*;

    #[test]
    fn family_is_one_agent_or_it_with_all_below_it() {
        let of = |text: &str| {
            let family = AgentFamily::parse(text).expect("a family");
            assert_eq!(family.to_string(), text);
            let ids = ["main", "main.1", "main.1.2", "main.10"];
            let agent = |id: &str| AgentId::parse(id).expect("an agent");
            ids.into_iter().filter(|id| family.has(&agent(id))).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("main.1"), "main.1");
        assert_eq!(of("main.1.*"), "main.1 main.1.2");
        assert_eq!(of("main.*"), "main main.1 main.1.2 main.10");
        for wrong in ["", "*", ".*", "main.x", "main*"] {
            assert!(AgentFamily::parse(wrong).is_err(), "{wrong}");
        }
    }
}
