//! The runner of turns at other hosts.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::host_calls::HostCalls;
use crate::actor::runner::{LocalFuture, StepRunner, StopLevel, TurnNotice, TurnNoticeHandler};
use crate::domain::host::Home;
use crate::domain::host_work::{HostAnswer, HostWork, TURN};
use crate::domain::id::AgentId;
use crate::domain::session::SessionKeeping;
use crate::domain::settings::{MaxProcs, Settings};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};
use crate::domain::turn_options::ApprovalPolicy;

/// The longest time that hosts are waited for when all processes of the run are to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The runner of turns at other hosts.
pub(in crate::runtime) struct RemoteRunner {
    calls: HostCalls,
    capacity: usize,
    /// The keys of the requests that were sent by an earlier supervisor.
    sent: Vec<String>,
    /// The last call of each agent, and its home.
    last: RefCell<HashMap<AgentId, (String, Home)>>,
    /// The agents of which it was said that their sessions are only at their hosts.
    bound: RefCell<HashSet<AgentId>>,
}

impl RemoteRunner {
    pub(in crate::runtime) fn new(
        calls: HostCalls,
        settings: &Settings,
        sent: Vec<String>,
    ) -> Self {
        let capacity = match settings.max_procs {
            MaxProcs::Auto => usize::MAX / 2,
            MaxProcs::Count(count) => count.max(1),
        };
        Self { calls, capacity, sent, last: RefCell::default(), bound: RefCell::default() }
    }

    /// Notes the next call of an agent. What followed from the one before is recorded by now.
    fn note(&self, agent: &AgentId, key: &str, home: &Home) {
        let next = (key.to_owned(), home.clone());
        if let Some((before, _)) = self.last.borrow_mut().insert(agent.clone(), next)
            && before != key
        {
            self.calls.forget(before);
        }
    }
}

impl RemoteRunner {
    /// Says once of an agent that its session is only at its host.
    fn tell_bound(&self, agent: &AgentId, host: &str, outcome: &TurnOutcome) {
        let TurnOutcome::Replied(reply) = outcome else { return };
        let Some(SessionKeeping::OnlyHere(why)) = &reply.session else { return };
        if self.bound.borrow_mut().insert(agent.clone()) {
            tracing::warn!(agent = %agent, "its session is only on the host {host}, so it cannot continue on another host if that one is lost: {why}");
        }
    }
}

impl StepRunner for RemoteRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move {
            let home = input.working_dir.home.clone();
            if input.options.asks_for_approval() {
                return TurnOutcome::Failed(TurnFailure::new(
                    FailureCause::Workflow,
                    ApprovalPolicy::NOT_AT_HOSTS,
                ));
            }
            let key = self.calls.key(TURN, &input.turn.stem(), &home);
            self.note(&input.turn.agent, &key, &home);
            let agent = input.turn.agent.clone();
            let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
            let work = HostWork::Turn { input: Box::new(input) };
            let failed = |cause, why: &str| {
                TurnOutcome::Failed(TurnFailure::new(cause, format!("host {host}: {why}")))
            };
            let (begun, begins) = oneshot::channel();
            let running = format!("runs on {host}");
            let tell = async {
                if begins.await.is_ok() {
                    notices(TurnNotice::Active(&running));
                }
            };
            let call = self.calls.watched_call(key, &home, &work, Some(begun));
            let (answer, ()) = tokio::join!(call, tell);
            match answer {
                HostAnswer::Turn { outcome } => {
                    self.tell_bound(&agent, &host, &outcome);
                    match *outcome {
                        TurnOutcome::Failed(failure) if failure.cause.is_of_machine() => {
                            let message = format!("host {host}: {}", failure.message);
                            TurnOutcome::Failed(TurnFailure { message, ..failure })
                        }
                        outcome @ (TurnOutcome::Failed(_) | TurnOutcome::Replied(_)) => outcome,
                    }
                }
                HostAnswer::Interrupted => {
                    failed(FailureCause::Interrupted, "the turn was ended, or never begun")
                }
                HostAnswer::Stuck { why } => failed(FailureCause::Storage, &why),
                HostAnswer::Lost { why } => failed(FailureCause::Lost, &why),
                HostAnswer::Refused { why } => failed(FailureCause::Unavailable, &why),
                _ => failed(FailureCause::Output, "its answer is not that of a turn"),
            }
        })
    }

    fn begun_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        let is_sent = |turn: &TurnId| {
            let part = format!("/{TURN}/{}/", turn.stem());
            self.sent.iter().any(|key| key.contains(&part))
        };
        turns.into_iter().filter(is_sent).collect()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn stop(&self, agent: &AgentId) {
        let last = self.last.borrow().get(agent).cloned();
        if let Some((key, home)) = last {
            self.calls.withdraw(&key);
            let stop = self.calls.key("stop", &Uuid::new_v4().simple().to_string(), &home);
            self.calls.tell(stop, &home, &HostWork::Stop { agent: agent.clone() });
        }
    }

    fn stop_all(&self, how: StopLevel) {
        self.calls.withdraw("");
        let now = matches!(how, StopLevel::Now);
        for home in self.calls.asked() {
            let key = self.calls.key("stop", &Uuid::new_v4().simple().to_string(), &home);
            self.calls.tell(key, &home, &HostWork::StopAll { now });
        }
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(async move {
            if !keep.is_empty() {
                return 0;
            }
            let ends = self.calls.asked().into_iter().map(|home| {
                let key = self.calls.key("end", &Uuid::new_v4().simple().to_string(), &home);
                let calls = self.calls.clone();
                tokio::task::spawn_local(async move {
                    let ended = calls.call(key, &home, &HostWork::End);
                    if tokio::time::timeout(END_TIMEOUT, ended).await.is_err() {
                        let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
                        tracing::warn!("host {host} has not said that it ended the processes of the run; it does so once it is back");
                    }
                })
            });
            for end in ends.collect::<Vec<_>>() {
                let _ = end.await;
            }
            0
        })
    }

    fn sweeps_all_processes(&self) -> bool {
        true
    }
}
