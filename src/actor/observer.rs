//! The observers of every record, the plug-ins that may change decisions, and the messages between actors.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::RecipientRequest;
use actix::prelude::SendError;
use actix::{MailboxError, Message, Recipient};
use tokio::time::{Instant, timeout_at};

use super::registry::AgentView;
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::approval::ApprovalRequest;
use crate::domain::consult::{
    ConsultVerdict, Consultation, PluginVerdict, SpendingTotals, StopScope,
};
use crate::domain::decide::TurnReport;
use crate::domain::event::Record;
use crate::domain::graph_execution::WaitResult;
use crate::domain::id::{AgentId, MessageId};
use crate::domain::money::Usd;
use crate::domain::placement::HostSighting;
use crate::domain::restart::AgentFailures;
use crate::domain::settings::DEFAULT_DEADLINE_MS;
use crate::domain::time::{format_duration, millis_of};
use crate::domain::turn::{TurnId, TurnOutcome};
use crate::domain::worktree_snapshot::{WorkingDir, WorktreeSnapshot};
use crate::language::resume::turn::{PreparedTurn, TurnPermit, TurnRules};
use crate::store::log::WriteOutcome;

// Observers of every record: a mailbox each, which can be full or gone.
//
// Sending never waits. A plug-in whose mailbox is full misses records, and learns their number with the next record;
// the journal has them all. Observers of raymond itself miss nothing.

/// An observer of every record.
pub struct Observer {
    name: String,
    recipient: Recipient<Published>,
    kind: ObserverKind,
    missed: u64,
    gone: bool,
}

/// The consequence of a full mailbox for records, and of a closed one for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverKind {
    /// It comes with raymond: it gets every record, however long that takes.
    BuiltIn,
    /// It is a plug-in: it misses records that it has no room for.
    PlugIn {
        /// True if the run pauses when it is gone.
        required: bool,
    },
}

impl Observer {
    /// Returns an observer of that name.
    pub fn new(
        name: impl Into<String>,
        recipient: Recipient<Published>,
        kind: ObserverKind,
    ) -> Self {
        Self { name: name.into(), recipient, kind, missed: 0, gone: false }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends it a record; returns true if the run has to pause because the observer is gone.
    pub fn tell(&mut self, published: &Published) -> bool {
        if self.gone {
            return false;
        }
        let ObserverKind::PlugIn { required } = self.kind else {
            self.recipient.do_send(published.clone());
            return false;
        };
        let published = Published { missed: self.missed, ..published.clone() };
        match self.recipient.try_send(published) {
            Ok(()) => {
                self.missed = 0;
                false
            }
            Err(SendError::Full(_)) => {
                if self.missed == 0 {
                    tracing::warn!(
                        "the plug-in {} is too slow, and misses records until it catches up",
                        self.name
                    );
                }
                self.missed += 1;
                false
            }
            Err(SendError::Closed(_)) => {
                self.gone = true;
                if !required {
                    tracing::warn!(
                        "the plug-in {} has failed: the run continues without it",
                        self.name
                    );
                }
                required
            }
        }
    }
}

// Asks the plug-ins that may change decisions: all at once, each for no longer than its deadline.
//
// A plug-in that does not answer in time is not asked again before it has answered, so it delays a run once and
// not at every turn. Its missing answer counts as "proceed", with a warning. If the plug-in is required, the run
// pauses instead.

/// The default deadline of a plug-in's answer.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(DEFAULT_DEADLINE_MS);

/// The longest deadline that any clock can count, used where a deadline is longer.
const MAX_DEADLINE: Duration = Duration::from_hours(24 * 365 * 30);

/// A plug-in that may change decisions.
#[derive(Clone)]
pub struct PluginInterceptor {
    name: String,
    recipient: Recipient<Consult>,
    deadline: Duration,
    required: bool,
    silent: Rc<Cell<bool>>,
}

impl PluginInterceptor {
    /// Returns a plug-in of that name with this deadline. If it is `required`, the run pauses when it does not
    /// answer.
    pub fn new(
        name: String,
        recipient: Recipient<Consult>,
        deadline: Duration,
        required: bool,
    ) -> Self {
        Self { name, recipient, deadline, required, silent: Rc::default() }
    }

    /// Returns the time at which its deadline is over. A deadline that no clock can count never ends in practice.
    fn until(&self, now: Instant) -> Instant {
        now.checked_add(self.deadline).unwrap_or_else(|| now + MAX_DEADLINE)
    }

    /// Returns its verdict, once it has answered or its deadline is over.
    async fn verdict(&self, asked: Option<ConsultRequest>) -> ConsultVerdict {
        let Some(ConsultRequest { mut request, until }) = asked else {
            return self.without_an_answer("has not answered the last question yet");
        };
        match timeout_at(until, &mut request).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(MailboxError::Closed | MailboxError::Timeout)) => {
                if !self.silent.replace(true) {
                    tracing::warn!(
                        "the plug-in {} has failed and is not asked any more",
                        self.name
                    );
                }
                self.without_an_answer("has failed")
            }
            Err(_) => {
                let deadline = format_duration(millis_of(self.deadline));
                self.silent.set(true);
                if !self.required {
                    tracing::warn!(
                        "the plug-in {} did not answer within {deadline}: the run continues without it until it answers",
                        self.name
                    );
                }
                let silent = Rc::clone(&self.silent);
                actix::spawn(async move {
                    if request.await.is_ok() {
                        silent.set(false);
                    }
                });
                self.without_an_answer(&format!("did not answer within {deadline}"))
            }
        }
    }

    fn without_an_answer(&self, why: &str) -> ConsultVerdict {
        if self.required {
            ConsultVerdict::Stop {
                reason: format!("it is required, and {why}"),
                scope: StopScope::Run,
            }
        } else {
            ConsultVerdict::Proceed
        }
    }
}

/// A question that was asked.
struct ConsultRequest {
    request: Pin<Box<RecipientRequest<Consult>>>,
    until: Instant,
}

/// Asks all plug-ins, and returns their verdicts.
pub async fn consult(
    interceptors: &[PluginInterceptor],
    question: &Consultation,
) -> Vec<PluginVerdict> {
    let ask = |interceptor: &PluginInterceptor| {
        (!interceptor.silent.get()).then(|| ConsultRequest {
            request: Box::pin(interceptor.recipient.send(Consult(question.clone()))),
            until: interceptor.until(Instant::now()),
        })
    };
    let asked: Vec<_> = interceptors.iter().map(ask).collect();
    let mut verdicts = Vec::with_capacity(interceptors.len());
    for (interceptor, asked) in interceptors.iter().zip(asked) {
        let verdict = interceptor.verdict(asked).await;
        verdicts.push(PluginVerdict { by: interceptor.name.clone(), verdict });
    }
    verdicts
}

// The messages between actors. Facts are in the past tense, commands in the imperative.
//
// [`Published`] and [`Consult`] are the messages meant for others: plug-ins see what has been
// committed and are asked before something happens, but never see the plumbing.

/// To observers: a record has been committed.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Published {
    /// The event with its number and time. All observers share it.
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
    /// What to perform: for example an operation of a graph, or a command of a program.
    pub activity: Activity,
    /// True if it may have been begun before: by a runtime that died, or an actor that failed.
    pub may_have_started: bool,
}

/// To an agent: take the transition of a reply that needs no turn. Plug-ins are asked, and the children of a fork are
/// planned.
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
    /// The agent to advance. It may have ended meanwhile.
    pub agent: AgentId,
    /// The permit of its turn; absent if it is to advance without one.
    pub permit: Option<TurnPermit>,
}

/// To the supervisor: the task that a graph has asked for has a result.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct TaskDone {
    /// The report with the cost of the turn.
    pub report: TurnReport,
    /// The value that the task gave, or the reason why it gave none.
    pub result: WaitResult,
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

/// To an agent: it has ended, because it is no longer needed. Of a turn that is not over yet only the cost is reported.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct DiscardTurn;

/// To the supervisor: a tool call of a running turn needs approval.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ApprovalRequested {
    /// The turn that makes the call. It may be over when this message is handled.
    pub turn: TurnId,
    /// The call.
    pub request: Box<ApprovalRequest>,
}

/// To the supervisor: a running turn has read a message.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct MessageRead {
    /// The turn whose process has read it.
    pub turn: TurnId,
    /// The `uuid` of the message in the session.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use actix::{Actor, Arbiter, Context, Handler};

    use super::*;
    use crate::domain::event::{Event, Record, RunCommand};
    use crate::domain::money::Usd;
    use crate::domain::time::Timestamp;

    /// Says that it has a record, deals with it when it is let, and says how many it had missed before it.
    struct Slow {
        received: mpsc::Sender<()>,
        let_on: mpsc::Receiver<()>,
        missed: mpsc::Sender<u64>,
    }

    impl Actor for Slow {
        type Context = Context<Self>;
    }

    impl Handler<Published> for Slow {
        type Result = ();

        fn handle(&mut self, published: Published, _: &mut Self::Context) {
            self.received.send(()).expect("someone listens");
            self.let_on.recv().expect("someone lets it");
            self.missed.send(published.missed).expect("someone listens");
        }
    }

    fn published(seq: u64) -> Published {
        let event = Event::CommandReceived { id: String::new(), command: RunCommand::Stop };
        let record = Arc::new(Record {
            kept_session: None,
            seq,
            at: Timestamp(0),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        });
        Published { record, agent: None, total_cost: Usd::ZERO, missed: 0 }
    }

    #[test]
    fn slow_observer_misses_records_and_is_notified_of_count() {
        let system = actix::System::new();
        system.block_on(async {
            let (let_on, waits) = mpsc::channel();
            let (tell, missed) = mpsc::channel();
            let (received, is_busy) = mpsc::channel();
            let arbiter = Arbiter::new();
            let slow = Slow { received, let_on: waits, missed: tell };
            let address = Slow::start_in_arbiter(&arbiter.handle(), |ctx| {
                ctx.set_mailbox_capacity(1);
                slow
            });
            let kind = ObserverKind::PlugIn { required: true };
            let mut observer = Observer::new("slow", address.recipient(), kind);
            assert!(!observer.tell(&published(1)), "it has begun");
            is_busy.recv().expect("it is at its first record");
            let mut sent = 1;
            while observer.missed < 10 {
                sent += 1;
                assert!(!observer.tell(&published(sent)), "to be slow is not to be gone");
            }
            let taken = sent - 10;
            for _ in 0..taken {
                let_on.send(()).expect("it listens");
            }
            for _ in 0..taken {
                assert_eq!(missed.recv(), Ok(0));
            }
            while observer.missed > 0 {
                observer.tell(&published(sent));
            }
            let_on.send(()).expect("it listens");
            assert!(missed.recv().is_ok_and(|missed| missed >= 10));
            arbiter.stop();
        });
    }
}
