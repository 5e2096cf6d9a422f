//! Who performs the operations of graphs: the seam between the agents and the world.
//!
//! Performing is idempotent by the operation's name, as far as its class allows.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::runner::Local;
use crate::domain::fact::{FactChange, Facts};
use crate::domain::instance::{Errand, Fetched};
use crate::domain::operation::Operation;
use crate::domain::turn::TurnId;
pub use crate::world::outcome::Performed;

/// Performs operations.
pub trait Performer {
    /// Performs an operation; `name` is the same for the same one after a
    /// crash, and `again` says that it may have been begun before.
    fn perform(self: Rc<Self>, name: String, operation: Operation, again: bool)
    -> Local<Performed>;

    /// Does an errand of a program; the step is the same for the same one after a crash, and `again`
    /// says that it may have been begun before. None: it was ended.
    fn fetch(
        self: Rc<Self>,
        step: TurnId,
        errand: Errand,
        again: bool,
    ) -> Local<Option<Result<Fetched, String>>>;

    /// How the facts with these labels have changed against those that are known.
    fn news(&self, labels: &BTreeSet<String>, known: &Facts) -> Vec<FactChange>;

    /// Ends what runs.
    fn stop(&self);
}
