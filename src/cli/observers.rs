//! The observers of a run, on a thread of their own: a slow one holds up only the others.

use actix::{Actor, Addr, Arbiter, Context, Handler, Recipient};

use crate::actor::message::{Finish, Published};

/// The observers of a run.
pub(super) struct Observers {
    arbiter: Arbiter,
    published: Vec<Recipient<Published>>,
    finish: Vec<Recipient<Finish>>,
}

impl Observers {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { arbiter: Arbiter::new(), published: Vec::new(), finish: Vec::new() }
    }

    /// One more.
    pub(super) fn add<A>(&mut self, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<Finish> + Send,
    {
        let address: Addr<A> = A::start_in_arbiter(&self.arbiter.handle(), |_| actor);
        self.published.push(address.clone().recipient());
        self.finish.push(address.recipient());
    }

    /// Who is to be told of every record.
    pub(super) fn published(&self) -> Vec<Recipient<Published>> {
        self.published.clone()
    }

    /// Waits until all have dealt with everything; one that has failed is not waited for.
    pub(super) async fn finish(self) {
        for observer in &self.finish {
            let _ = observer.send(Finish).await;
        }
        self.arbiter.stop();
    }
}
