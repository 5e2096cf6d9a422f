//! What actors tell each other. Facts are in the past tense, commands in the imperative.
//!
//! [`Published`] and [`Consult`] are the messages meant for others: plug-ins see what has been
//! committed and are asked before something happens, but never see the plumbing.

use std::sync::Arc;

use actix::dev::{MessageResponse, OneshotSender};
use actix::{Actor, Message};

use super::performer::ActivityOutcome;
use super::registry::AgentView;
use crate::domain::consult::{ConsultVerdict, Consultation, SpendingTotals};
use crate::domain::decide::TurnReport;
use crate::domain::evaluation::TransitionProposal;
use crate::domain::event::Record;
use crate::domain::graph::{GraphState, OutputFormat, PromptTask, WaitResult};
use crate::domain::home::WorkingDir;
use crate::domain::id::{AgentId, Folder, StateName};
use crate::domain::instance::Activity;
use crate::domain::money::Usd;
use crate::domain::session::Session;
use crate::domain::supervision::TurnTimeouts;
use crate::domain::transition::Variables;
use crate::domain::turn::{StepOutcome, TurnId};
use crate::store::writer::WriteOutcome;

/// To observers: a record has been committed.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Published {
    /// The record.
    pub record: Arc<Record>,
    /// Its line in the journal.
    pub line: Arc<str>,
    /// The agent it is about, as it is now; absent if it has ended, or if it is about the run.
    pub agent: Option<AgentView>,
    /// What the run has spent.
    pub total_cost: Usd,
    /// How many records before this one this observer was not told of, because it did not keep up.
    pub missed: u64,
}

/// To a plug-in that wants a say: what does it say to this? It is not waited for longer than its
/// deadline.
#[derive(Debug, Clone, Message)]
#[rtype(result = "ConsultVerdict")]
pub struct Consult(pub Consultation);

impl<A, M> MessageResponse<A, M> for ConsultVerdict
where
    A: Actor,
    M: Message<Result = ConsultVerdict>,
{
    fn handle(self, _: &mut A::Context, asks: Option<OneshotSender<ConsultVerdict>>) {
        if let Some(asks) = asks {
            let _ = asks.send(self);
        }
    }
}

/// To observers: nothing more will be published. The answer comes when all of it is dealt with.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct FinishPublishing;

/// To an agent: take the turn that is due, for which it has a permit; or, without one, do what is due and
/// needs none.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct DispatchTurn(pub TurnAssignment, pub Option<TurnPermit>);

/// A turn that is due, from the agent's persisted state.
#[derive(Debug, Clone)]
pub struct TurnAssignment {
    /// Which one.
    pub turn: TurnId,
    /// The state it runs in.
    pub state: StateName,
    /// How many turns the agent has had there.
    pub visit: u32,
    /// The session it runs in.
    pub session: Session,
    /// Values for the state's placeholders.
    pub variables: Variables,
    /// How long a turn may take.
    pub limits: TurnTimeouts,
    /// The folder of that state below the scope, if it is not the scope itself.
    pub folder: Option<Folder>,
    /// Where the turn runs.
    pub home: WorkingDir,
    /// The commit its worktree begins at, where that is known.
    pub base: Option<String>,
    /// What came of those it has waited for.
    pub results: Option<Arc<str>>,
    /// What a program has done for it, instead of a turn.
    pub errand: Option<Activity>,
    /// What is asked instead of the state's prompt.
    pub task: Option<Box<PromptTask>>,
    /// Whether a graph is walked instead of a turn that is asked.
    pub walks: bool,
    /// Whether what is due may have been begun before: by a runtime that died, or an actor that failed.
    pub again: bool,
    /// What the nodes of the graph see, if it has been entered.
    pub graph: Option<Arc<GraphState>>,
    /// What it has waited for in the graph, and came.
    pub heard: Option<Box<WaitResult>>,
    /// What the state's evaluator is to look at, if this is its turn.
    pub proposal: Option<Box<TransitionProposal>>,
    /// The reminder to send instead of the state's prompt.
    pub reminder: Option<String>,
}

impl TurnAssignment {
    /// Whether the reply is an answer as it stands, and no tag means anything in it.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.contract == OutputFormat::Reply)
    }
}

/// To the supervisor: an errand of a program is done, or was ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ActivityDone {
    /// The program's step.
    pub turn: TurnId,
    /// What came of it.
    pub outcome: ActivityOutcome,
}

/// That a turn may run.
#[derive(Debug)]
pub struct TurnPermit {
    /// It was begun before the run was taken up again: nobody is asked any more.
    pub begun: bool,
    /// What has been spent, for those who are asked.
    pub spent: SpendingTotals,
    /// What it may spend at the most.
    pub most: Option<Usd>,
}

/// To an agent: the run is to hold still. If plug-ins are being asked about its turn, they are not waited
/// for; they are asked again when the run goes on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct CancelConsult;

/// To the supervisor: the API asks for fewer requests.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ApiThrottled;

/// To an agent: its process has an outcome.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TurnEnded {
    /// Which turn.
    pub turn: TurnId,
    /// What it came to.
    pub outcome: StepOutcome,
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
    /// Whose.
    pub agent: AgentId,
    /// The turn it was at.
    pub turn: Option<TurnId>,
    /// It did not stop, it failed.
    pub panicked: bool,
}

/// To the supervisor: what the journal's thread says.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct JournalReported(pub WriteOutcome);

/// To the supervisor: come to an end. Said a second time: at once.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct InterruptRun;
