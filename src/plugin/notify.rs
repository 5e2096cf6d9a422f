//! The actor that notifies people when a run needs them, or has ended.
//!
//! [`notification`] decides which records are notified. Delivery is up to the maker of the actor, behind
//! [`NotificationSink`]. This actor waits for nothing before the run's end.

pub mod desktop;
pub mod notification;

use std::pin::Pin;

use actix::{Actor, Context, Handler, ResponseFuture};

use self::notification::{Notification, NotificationTracker};
use crate::actor::message::{FinishPublishing, Published};

/// The delivery of notifications.
pub trait NotificationSink: Send + 'static {
    /// Takes a notification over, at once.
    fn deliver(&self, notification: Notification);

    /// Completes when all notifications that were taken over have been dealt with.
    fn finished(&self) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The actor.
pub struct NotificationPlugin<D> {
    tracker: NotificationTracker,
    by: D,
}

impl<D: NotificationSink> NotificationPlugin<D> {
    /// Returns an actor for a run as it stands, which delivers by `by`.
    pub fn new(tracker: NotificationTracker, by: D) -> Self {
        Self { tracker, by }
    }
}

impl<D: NotificationSink + Unpin> Actor for NotificationPlugin<D> {
    type Context = Context<Self>;
}

impl<D: NotificationSink + Unpin> Handler<Published> for NotificationPlugin<D> {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        if let Some(notification) = self.tracker.of(&published) {
            self.by.deliver(notification);
        }
    }
}

impl<D: NotificationSink + Unpin> Handler<FinishPublishing> for NotificationPlugin<D> {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, end: FinishPublishing, _: &mut Self::Context) -> Self::Result {
        if let Some(notification) = self.tracker.at_the_end(end.failures.as_deref()) {
            self.by.deliver(notification);
        }
        self.by.finished()
    }
}
