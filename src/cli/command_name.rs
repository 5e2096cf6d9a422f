//! The name of a new command in the inbox of a run.

use uuid::Uuid;

use crate::actor::clock::now;

/// Returns a name that no other command has. Commands are taken in the order of their names, so it begins with the time.
pub(super) fn command_name() -> String {
    format!("{:013}-{}", now().0, Uuid::new_v4().simple())
}
