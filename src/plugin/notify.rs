//! The actor that has people told when a run needs them, or has ended.
//!
//! What is worth a word is decided in [`occasion`]; how it reaches someone is the business of whoever
//! made the actor, and behind [`NotificationSink`]. Nothing here waits before the run's end.

pub mod occasion;

use std::pin::Pin;

use actix::{Actor, Context, Handler, ResponseFuture};

use self::occasion::{Notification, NotificationTracker};
use crate::actor::message::{FinishPublishing, Published};

/// How a notification reaches someone.
pub trait NotificationSink: Send + 'static {
    /// Takes a notification over, at once.
    fn deliver(&self, notification: Notification);

    /// Comes to pass when everything that was taken over has been dealt with.
    fn finished(&self) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The actor.
pub struct NotificationPlugin<D> {
    occasions: NotificationTracker,
    by: D,
}

impl<D: NotificationSink> NotificationPlugin<D> {
    /// Tells of a run, as it stands, by these means.
    #[must_use]
    pub fn new(occasions: NotificationTracker, by: D) -> Self {
        Self { occasions, by }
    }
}

impl<D: NotificationSink + Unpin> Actor for NotificationPlugin<D> {
    type Context = Context<Self>;
}

impl<D: NotificationSink + Unpin> Handler<Published> for NotificationPlugin<D> {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        if let Some(notification) = self.occasions.of(&published) {
            self.by.deliver(notification);
        }
    }
}

impl<D: NotificationSink + Unpin> Handler<FinishPublishing> for NotificationPlugin<D> {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) -> Self::Result {
        if let Some(notification) = self.occasions.at_the_end() {
            self.by.deliver(notification);
        }
        self.by.finished()
    }
}
