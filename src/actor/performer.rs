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

/// What came of an errand.
#[derive(Debug)]
pub enum Errands {
    /// What was fetched, or why the program cannot have it.
    Done(Result<Fetched, String>),
    /// It was ended, and is still due.
    Ended,
    /// The disk does not do what it should, and it is still due.
    Stuck(String),
}

/// Performs operations.
pub trait Performer {
    /// Performs an operation; `name` is the same for the same one after a
    /// crash, and `again` says that it may have been begun before.
    fn perform(self: Rc<Self>, name: String, operation: Operation, again: bool)
    -> Local<Performed>;

    /// Does an errand of a program; the step is the same for the same one after a crash, and `again`
    /// says that it may have been begun before.
    fn fetch(self: Rc<Self>, step: TurnId, errand: Errand, again: bool) -> Local<Errands>;

    /// How the facts with these labels have changed against those that are known.
    ///
    /// # Errors
    /// Why they cannot be seen.
    fn news(&self, labels: &BTreeSet<String>, known: &Facts) -> Result<Vec<FactChange>, String>;

    /// Ends what runs.
    fn stop(&self);
}
