//! The stage of an agent's step: the work that is due, or the wait before it. An agent is in one stage at a time.
//!
//! The turn of an agent that was ended while tool calls needed approval, and goes on after the answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AskedQuestion};
use crate::approval::PendingApproval;
use crate::evaluation::TransitionProposal;
use crate::graph_execution::{PromptTask, WaitResult};
use crate::id::{AgentId, MessageId};
use crate::join::PendingJoin;

/// The stage of an agent's step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStage {
    /// The work of its state is due: a turn with the state's prompt, or an advance of its graph or program.
    State {
        /// The outcomes of the agents it joined: `{{results}}` of its state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        results: Option<Arc<str>>,
    },
    /// A turn with this task is due instead of one with the state's prompt.
    Task(Box<PromptTask>),
    /// The state's evaluator checks the transition that the agent asked for.
    Evaluation {
        /// The transition it asked for.
        proposal: Box<TransitionProposal>,
        /// The outcomes of the agents it joined before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        results: Option<Arc<str>>,
    },
    /// It waits. No turn is due before that is over.
    Waiting(AgentWait),
    /// Its wait is over, and its graph or the program it serves is to be given the result.
    WaitOver(Box<WaitResult>),
}

/// The wait of an agent for a person or for other agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentWait {
    /// For the answer to its question.
    Answer(Box<AskedQuestion>),
    /// For the end of this agent.
    Agent(AgentId),
    /// For the ends of agents it has forked.
    Join(Box<PendingJoin>),
}

impl Default for StepStage {
    /// Returns the stage at which a step begins.
    fn default() -> Self {
        Self::State { results: None }
    }
}

impl StepStage {
    /// Returns whether a step begins at it.
    pub fn is_first(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first stage of a step, with its task if it has one.
    pub(super) fn first(task: Option<&PromptTask>) -> Self {
        task.map_or_else(Self::default, |task| Self::Task(Box::new(task.clone())))
    }

    /// Returns the wait; `None` if the agent does not wait.
    pub fn wait(&self) -> Option<&AgentWait> {
        match self {
            Self::Waiting(wait) => Some(wait),
            Self::State { .. } | Self::Task(_) | Self::Evaluation { .. } | Self::WaitOver(_) => {
                None
            }
        }
    }

    /// Returns the task; `None` if the turn that is due is about something else.
    pub fn task(&self) -> Option<&PromptTask> {
        match self {
            Self::Task(task) => Some(task),
            Self::State { .. } | Self::Evaluation { .. } | Self::Waiting(_) | Self::WaitOver(_) => {
                None
            }
        }
    }

    /// Returns the transition that the evaluator checks, if it does.
    pub fn proposal(&self) -> Option<&TransitionProposal> {
        match self {
            Self::Evaluation { proposal, .. } => Some(proposal),
            Self::State { .. } | Self::Task(_) | Self::Waiting(_) | Self::WaitOver(_) => None,
        }
    }

    /// Returns the outcomes of the agents that were joined in this step.
    pub fn results(&self) -> Option<&Arc<str>> {
        match self {
            Self::State { results } | Self::Evaluation { results, .. } => results.as_ref(),
            Self::Task(_) | Self::Waiting(_) | Self::WaitOver(_) => None,
        }
    }

    /// Returns the result of the wait that is over.
    pub fn wait_result(&self) -> Option<&WaitResult> {
        match self {
            Self::WaitOver(result) => Some(result),
            Self::State { .. } | Self::Task(_) | Self::Evaluation { .. } | Self::Waiting(_) => None,
        }
    }
}

impl AgentWait {
    /// Returns the question, if it waits for an answer.
    pub fn question(&self) -> Option<&AskedQuestion> {
        match self {
            Self::Answer(asked) => Some(asked),
            Self::Agent(_) | Self::Join(_) => None,
        }
    }

    /// Returns the agent it waits for, if it waits for one.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(other) => Some(other),
            Self::Answer(_) | Self::Join(_) => None,
        }
    }

    /// Returns the join, if it waits for agents it has forked.
    pub fn join(&self) -> Option<&PendingJoin> {
        match self {
            Self::Join(join) => Some(join),
            Self::Answer(_) | Self::Agent(_) => None,
        }
    }
}

impl Agent {
    /// Returns the approvals that wait for an answer: of the turn that runs, or of one that was ended.
    pub fn open_approvals(&self) -> impl Iterator<Item = &PendingApproval> {
        self.approvals.open(self.turn)
    }

    /// Returns whether its next turn waits for the approval of tool calls.
    pub fn awaits_approval(&self) -> bool {
        self.approvals.hold_next_turn()
    }

    /// Ends its turn, which goes on in the next one in the same session. These calls had no answer; if that is `unsure`,
    /// those that were allowed may have run.
    pub(crate) fn suspend_turn(
        &mut self,
        message: Option<MessageId>,
        calls: &[String],
        unsure: bool,
    ) {
        let turn_session = match &mut self.stage {
            StepStage::Evaluation { proposal, .. } => &mut proposal.session,
            StepStage::State { .. }
            | StepStage::Task(_)
            | StepStage::Waiting(_)
            | StepStage::WaitOver(_) => &mut self.session,
        };
        *turn_session = turn_session.after_turn(message);
        self.approvals.suspend(self.turn, calls, unsure);
        self.turn = self.turn.saturating_add(1);
        self.end_timed_hold();
    }

    /// Lets the turn that was ended go on, with the answers in its prompt.
    pub(crate) fn resume_suspended(&mut self) {
        self.reminder = Some(self.approvals.resume());
    }
}
