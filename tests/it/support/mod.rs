//! Support for end-to-end tests: a workflow and a script go in, and an outcome with checks comes out.
//!
//! [`Test`] owns a temporary folder with everything in it, [`FakeRule`] says how the stand-in answers,
//! [`RaymondOutcome`] is a finished `raymond`, [`RunningRaymond`] a running one, [`TerminalScreen`] one on a
//! terminal, and [`FakeCall`] a start of the stand-in.

mod call;
mod faulty;
mod live;
mod outcome;
mod rule;
mod screen;
mod test_folder;
mod workflows;

pub(crate) use call::{FakeCall, alive, most_at_once};
pub(crate) use faulty::FAULTY;
pub(crate) use live::{RunningRaymond, kill, wait_until};
pub(crate) use outcome::RaymondOutcome;
pub(crate) use rule::{FakeRule, always, when};
pub(crate) use screen::TerminalScreen;
pub(crate) use test_folder::Test;
pub(crate) use workflows::{crowd, held, pair};
