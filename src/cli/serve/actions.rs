//! The actions of the page, each named as its command, and each in a file of its own; the orders to agents share one.
//!
//! A further action is a file with a function, and a line in the table; the page has an entry in `actions.js` for it, or a script.

mod answer;
mod branch;
mod orders;
mod retry;
mod signal;
mod start;
mod stop;

use serde_json::Value;

use super::local_commands::LocalCommands;
use crate::cli::exit::Error;

/// The code of an action: it takes the body of a request, and returns what its command tells.
pub(super) type PageAction = fn(&LocalCommands, &Value) -> Result<Value, Error>;

/// The actions by their names.
const ACTIONS: [(&str, PageAction); 10] = [
    ("answer", answer::answer),
    ("branch", branch::branch),
    ("hold", orders::hold),
    ("release", orders::release),
    ("retry", retry::retry),
    ("signal", signal::signal),
    ("start", start::start),
    ("stop", stop::stop),
    ("stop-agent", orders::stop_agent),
    ("tell", orders::tell),
];

/// Returns the action of a name.
pub(super) fn named(name: &str) -> Option<PageAction> {
    ACTIONS.iter().find(|(own, _)| *own == name).map(|(_, act)| *act)
}

/// Returns the names of all actions.
pub(super) fn names() -> String {
    ACTIONS.map(|(name, _)| name).join(", ")
}
