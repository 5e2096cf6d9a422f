//! The name of a new command in the inbox of a run.

use uuid::Uuid;

use crate::actor::clock::now;
use crate::domain::time::Timestamp;

/// The digits of the time in a name.
const TIME_DIGITS: usize = 13;

/// Returns a name that no other command has. Commands are taken in the order of their names, so it begins with the time.
#[must_use]
pub fn command_name() -> String {
    format!("{:0TIME_DIGITS$}-{}", now().0, Uuid::new_v4().simple())
}

/// Returns the time at which a command was given; `None` if its name has none.
#[must_use]
pub fn given_at(name: &str) -> Option<Timestamp> {
    let time = name.get(..TIME_DIGITS)?;
    time.parse().ok().map(Timestamp)
}
