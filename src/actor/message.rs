//! The messages between actors. Facts are in the past tense, commands in the imperative.
//!
//! [`Published`] and [`Consult`] are the messages meant for others: plug-ins see what has been
//! committed and are asked before something happens, but never see the plumbing.

use std::sync::Arc;

use actix::Message;

use super::registry::AgentView;
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::approval::ApprovalRequest;
use crate::domain::consult::{ConsultVerdict, Consultation, SpendingTotals};
use crate::domain::decide::TurnReport;
use crate::domain::event::Record;
use crate::domain::id::{AgentId, MessageId};
use crate::domain::money::Usd;
use crate::domain::placement::HostSighting;
use crate::domain::supervision::AgentFailures;
use crate::domain::turn::{TurnId, TurnOutcome, TurnReply};
use crate::domain::worktree::{WorkingDir, WorktreeSnapshot};
use crate::language::resume::turn::{PreparedTurn, TurnPermit, TurnRules};
use crate::store::writer::WriteOutcome;

/// To observers: a record has been committed.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Published {
    /// The record.
    pub record: Arc<Record>,
    /// The agent it is about, in its current state; absent if the agent has ended, or if the record is about the
    /// run.
    pub agent: Option<AgentView>,
    /// The cost of the run so far.
    pub total_cost: Usd,
    /// The number of earlier records that this observer missed because it did not keep up.
    pub missed: u64,
}

/// To a plug-in that may change decisions: a consultation. Its caller waits for the answer no longer than the deadline.
#[derive(Debug, Clone, Message)]
#[rtype(result = "ConsultVerdict")]
pub struct Consult(pub Consultation);

/// To observers: nothing more will be published. The answer comes when all records are dealt with.
#[derive(Debug, Default, Message)]
#[rtype(result = "()")]
pub struct FinishPublishing {
    /// The failures of the run; `None` if it could not begin, or could not be recorded any longer.
    pub failures: Option<Arc<AgentFailures>>,
}

/// To an agent: take this turn, which is due and has a permit.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct DispatchTurn(pub Box<PreparedTurn>);

/// To an agent: perform the activity that its graph or its program needs. It takes no permit.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct PerformActivity {
    /// The agent's step.
    pub turn: TurnId,
    /// The working directory of the agent.
    pub working_dir: WorkingDir,
    /// The commit that the agent's own worktree begins at, if it has one.
    pub base: Option<String>,
    /// The activity.
    pub activity: Activity,
    /// True if it may have been begun before: by a runtime that died, or an actor that failed.
    pub may_have_begun: bool,
}

/// To an agent: take the transition of an accepted reply. Plug-ins are asked, and the children of a fork are planned.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TakeTransition {
    /// The report of the step.
    pub report: TurnReport,
    /// The rules by which the reply was judged.
    pub rules: Box<TurnRules>,
    /// The spending so far, for the plug-ins that are asked.
    pub spent: SpendingTotals,
}

/// To the supervisor, from itself: advance this agent.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct AdvanceAgent {
    /// The agent.
    pub agent: AgentId,
    /// The permit of its turn; absent if it is to advance without one.
    pub permit: Option<TurnPermit>,
}

/// To the supervisor: a turn has a reply.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TurnReplied {
    /// The report with the cost of the turn.
    pub report: TurnReport,
    /// The rules that the turn was prepared with.
    pub rules: Box<TurnRules>,
    /// The reply.
    pub reply: TurnReply,
}

/// To the supervisor: an activity is done, or was ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ActivityDone {
    /// The agent's step.
    pub turn: TurnId,
    /// The outcome of the activity.
    pub outcome: ActivityOutcome,
    /// The files of the agent's worktree after it, if a snapshot of them was due.
    pub snapshot: Option<Box<WorktreeSnapshot>>,
}

/// To an agent: the run has to pause. The agent does not wait for plug-ins that are being asked about its turn. They
/// are asked again when the run is resumed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct CancelConsult;

/// To the supervisor: a tool call of a running turn needs approval.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ApprovalRequested {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub request: Box<ApprovalRequest>,
}

/// To the supervisor: a running turn has read a message.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct MessageRead {
    /// The turn.
    pub turn: TurnId,
    /// The message.
    pub message: MessageId,
}

/// To the supervisor: the API asks for fewer requests.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ApiThrottled;

/// To an agent: its process has an outcome.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TurnEnded {
    /// The id of the turn.
    pub turn: TurnId,
    /// The outcome of the turn.
    pub outcome: TurnOutcome,
}

/// To the supervisor: a turn is over.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TurnReported(pub TurnReport);

/// To an agent: it has ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TerminateAgent;

/// To the supervisor: an agent's actor is gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct AgentDown {
    /// The agent of the actor.
    pub agent: AgentId,
    /// The turn it was working on.
    pub turn: Option<TurnId>,
    /// It did not stop, it failed.
    pub panicked: bool,
}

/// To the supervisor: the hosts as an engine lists them now, all of them.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct HostsSeen(pub Vec<HostSighting>);

/// To the supervisor: a message of the journal's thread.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct JournalReported(pub WriteOutcome);

/// To the supervisor: end the run. A second one ends it at once.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct InterruptRun;
