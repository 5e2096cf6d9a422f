//! Who performs the operations of graphs: the seam between the agents and the world.
//!
//! Performing is idempotent by the operation's name, as far as its class allows.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::runner::Local;
use crate::domain::fact::{FactChange, Facts};
use crate::domain::home::Home;
use crate::domain::id::AgentId;
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

/// What came of looking at an agent's directory, or of making it.
#[derive(Debug)]
pub enum Found<T> {
    /// It is there, or why it is not, and what to do.
    Done(Result<T, String>),
    /// It was ended, and is still due.
    Ended,
}

/// Performs operations, each in the home of its agent.
pub trait Performer {
    /// Performs an operation; `name` is the same for the same one after a
    /// crash, and `again` says that it may have been begun before.
    fn perform(
        self: Rc<Self>,
        name: String,
        home: Home,
        operation: Operation,
        again: bool,
    ) -> Local<Performed>;

    /// Does an errand of a program; the step is the same for the same one after a crash, and `again`
    /// says that it may have been begun before.
    fn fetch(
        self: Rc<Self>,
        step: TurnId,
        home: Home,
        errand: Errand,
        again: bool,
    ) -> Local<Errands>;

    /// The text of a file in an agent's home, of no more than so many bytes.
    fn text(self: Rc<Self>, home: Home, file: String, most: u64) -> Local<Found<String>>;

    /// Whether there is such a directory.
    fn directory(self: Rc<Self>, home: Home) -> Local<Found<()>>;

    /// The commit an agent's home is at, where the worktrees of its children begin.
    fn commit(self: Rc<Self>, name: String, home: Home) -> Local<Found<String>>;

    /// Sees to it that an agent's worktree is there. It is made at `base`, or else at the commit that
    /// the agent's parent is at.
    fn worktree(self: Rc<Self>, agent: AgentId, base: Option<String>) -> Local<Found<()>>;

    /// The path of an agent's home, for a graph that asks where it is.
    fn whereabouts(&self, _home: &Home) -> Option<String> {
        None
    }

    /// How the facts with these labels have changed against those that are known.
    ///
    /// # Errors
    /// Why they cannot be seen.
    fn news(&self, labels: &BTreeSet<String>, known: &Facts) -> Result<Vec<FactChange>, String>;

    /// Ends what runs.
    fn stop(&self);
}
