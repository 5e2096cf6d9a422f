//! Who performs the operations of graphs: the seam between the agents and the world.
//!
//! Performing is idempotent by the operation's name, as far as its class allows.

use std::rc::Rc;

use super::runner::Local;
use crate::domain::operation::Operation;
pub use crate::world::outcome::Performed;

/// Performs operations.
pub trait Performer {
    /// Performs an operation; `name` is the same for the same one after a
    /// crash, and `again` says that it may have been begun before.
    fn perform(self: Rc<Self>, name: String, operation: Operation, again: bool)
    -> Local<Performed>;

    /// Ends what runs.
    fn stop(&self);
}
