//! The sessions whose processes are being ended while their agents go on.
//!
//! A turn that is over is reported before its process has ended, so that both take their time together. Whoever
//! continues the session, or branches from it, waits for that end: the process may still write to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;

use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::domain::id::SessionId;
use crate::domain::session::{Session, SessionOrigin};

/// The sessions, each with a channel that closes when its process has ended.
#[derive(Debug, Default)]
pub struct EndingSessions(RefCell<HashMap<SessionId, watch::Receiver<()>>>);

impl EndingSessions {
    /// Ends the process of a session in a task of its own. It has to be called in a `LocalSet`.
    pub fn end(&self, session: SessionId, end: impl Future<Output = ()> + 'static) {
        let (ends, ended) = watch::channel(());
        let mut sessions = self.0.borrow_mut();
        sessions.retain(|_, ended| ended.has_changed().is_ok());
        sessions.insert(session, ended);
        spawn_local(async move {
            end.await;
            drop(ends);
        });
    }

    /// Waits until the process is gone that may still write to the history that a session has.
    pub async fn ended(&self, session: &Session) {
        let history = match &session.origin {
            SessionOrigin::Fresh => return,
            SessionOrigin::Resumed => &session.id,
            SessionOrigin::Branch { from, .. } => from,
        };
        let ending = self.0.borrow().get(history).cloned();
        if let Some(mut ended) = ending {
            while ended.changed().await.is_ok() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn all_who_need_the_history_wait_for_the_end_of_its_process() {
        let session = Session::resumed(SessionId::new("one"), None);
        let branch = session.branch(SessionId::new("two"));
        let fresh = Session::fresh(SessionId::new("one"));
        let sessions = EndingSessions::default();
        let (end, ended) = oneshot::channel::<()>();
        let test = async {
            sessions.end(SessionId::new("one"), async move { drop(ended.await) });
            sessions.ended(&fresh).await;
            sessions.ended(&Session::resumed(SessionId::new("other"), None)).await;
            for waiting in [&session, &branch] {
                let is_waiting = tokio::select! {
                    biased;
                    () = sessions.ended(waiting) => false,
                    () = tokio::task::yield_now() => true,
                };
                assert!(is_waiting, "{waiting:?}");
            }
            end.send(()).expect("it waits");
            tokio::join!(sessions.ended(&session), sessions.ended(&branch));
            sessions.end(SessionId::new("three"), async {});
            assert_eq!(sessions.0.borrow().len(), 1, "what has ended is forgotten");
        };
        LocalSet::new().run_until(test).await;
    }
}
