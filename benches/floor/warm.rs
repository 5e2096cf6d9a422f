//! A chain of gotos with the real Claude Code, warm against one process a step.
//!
//! The real program has to be installed for it, and a stand-in for its API; it is not measured yet.

use crate::Fallible;
use crate::goals::{Bound, Goals};
use crate::place::Place;
use crate::scale::Scale;
use crate::table::Table;

#[expect(clippy::unnecessary_wraps, reason = "other figures can fail as a whole")]
pub(crate) fn figure(_: &Place, _: &Scale, goals: &mut Goals) -> Fallible<Vec<Table>> {
    let what = "20 gotos with the real Claude Code: overhead, cold over warm";
    goals.missing(what, Bound::AtLeast(10.0), " times");
    Ok(Vec::new())
}
