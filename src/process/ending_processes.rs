//! The processes that are being ended while their agents go on.
//!
//! A turn that is over is reported before its process has ended, so that both take their time together. The agent's
//! next turn waits for that end, and so does any turn that continues the session of a process that is being ended, or
//! branches from it: the process may still write to it.

use std::cell::RefCell;
use std::future::Future;

use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::domain::id::{AgentId, SessionId};
use crate::domain::session::{Session, SessionOrigin};

/// The processes that are being ended.
#[derive(Debug, Default)]
pub struct EndingProcesses(RefCell<Vec<EndingProcess>>);

#[derive(Debug)]
struct EndingProcess {
    session: SessionId,
    /// The agent whose next turn waits, whatever its session is.
    agent: Option<AgentId>,
    /// A channel that closes when the process has ended.
    ended: watch::Receiver<()>,
}

impl EndingProcesses {
    /// Ends the process of a session in a task of its own. It has to be called in a `LocalSet`.
    pub fn end(
        &self,
        session: SessionId,
        agent: Option<AgentId>,
        end: impl Future<Output = ()> + 'static,
    ) {
        let (ends, ended) = watch::channel(());
        let mut processes = self.0.borrow_mut();
        processes.retain(|process| process.ended.has_changed().is_ok());
        processes.push(EndingProcess { session, agent, ended });
        spawn_local(async move {
            end.await;
            drop(ends);
        });
    }

    /// Waits until all processes are gone that a turn of an agent in a session has to wait for.
    pub async fn ended(&self, session: &Session, agent: &AgentId) {
        let history = match &session.origin {
            SessionOrigin::Fresh | SessionOrigin::Rebuilt => None,
            SessionOrigin::Resumed => Some(&session.id),
            SessionOrigin::Branch { from, .. } => Some(from),
        };
        let is_awaited = |process: &&EndingProcess| {
            history == Some(&process.session) || process.agent.as_ref() == Some(agent)
        };
        let awaited: Vec<watch::Receiver<()>> = {
            let processes = self.0.borrow();
            processes.iter().filter(is_awaited).map(|process| process.ended.clone()).collect()
        };
        for mut ended in awaited {
            while ended.changed().await.is_ok() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;

    fn fresh(id: &str) -> Session {
        Session::fresh(SessionId::new(id))
    }

    #[tokio::test]
    async fn turns_of_the_session_and_of_the_agent_wait_for_the_end_of_the_process() {
        let (one, two) = (AgentId::main().child(1), AgentId::main().child(2));
        let resumed = Session::resumed(SessionId::new("s"), None);
        let branch = resumed.branch(SessionId::new("b"));
        let processes = EndingProcesses::default();
        let [(end, ended), (end_other, other_ended)] =
            [oneshot::channel::<()>(), oneshot::channel::<()>()];
        let test = async {
            processes.end(SessionId::new("s"), Some(one.clone()), async { drop(ended.await) });
            processes.end(SessionId::new("s"), None, async { drop(other_ended.await) });
            processes.ended(&fresh("new"), &two).await;
            processes.ended(&Session::resumed(SessionId::new("other"), None), &two).await;
            let is_waiting = async |session: &Session, agent: &AgentId| {
                tokio::select! {
                    biased;
                    () = processes.ended(session, agent) => false,
                    () = tokio::task::yield_now() => true,
                }
            };
            assert!(is_waiting(&resumed, &two).await && is_waiting(&branch, &two).await);
            assert!(is_waiting(&fresh("new"), &one).await);
            end.send(()).expect("it waits");
            processes.ended(&fresh("new"), &one).await;
            assert!(is_waiting(&resumed, &one).await, "the other process of the session lives");
            end_other.send(()).expect("it waits");
            tokio::join!(processes.ended(&resumed, &one), processes.ended(&branch, &two));
            processes.end(SessionId::new("t"), None, async {});
            assert_eq!(processes.0.borrow().len(), 1, "what has ended is forgotten");
        };
        LocalSet::new().run_until(test).await;
    }
}
