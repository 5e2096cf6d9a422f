//! Support for end-to-end tests: a workflow and a script go in, and an outcome with checks comes out.
//!
//! [`Test`] owns a temporary folder with everything in it, [`FakeRule`] says how the stand-in answers,
//! [`RaymondOutcome`] is a finished `raymond`, [`RunningRaymond`] a running one, [`TerminalScreen`] one on a
//! terminal, and [`FakeCall`] a start of the stand-in.

mod call;
mod live;
mod outcome;
mod place;
mod rule;
mod scene;
mod screen;

pub(crate) use call::{FakeCall, alive, most_at_once};
pub(crate) use live::{RunningRaymond, kill, wait_until};
pub(crate) use outcome::RaymondOutcome;
pub(crate) use place::Test;
pub(crate) use rule::{FakeRule, always, when};
pub(crate) use scene::{crowd, held, pair};
