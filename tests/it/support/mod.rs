//! Support for end-to-end tests: a workflow and a script go in, and an outcome with checks comes out.
//!
//! [`Test`] owns a temporary folder with everything in it, [`Rule`] says how the stand-in answers,
//! [`Outcome`] is a finished `raymond`, [`Live`] a running one, [`Screen`] one on a terminal, [`Call`] a
//! start of the stand-in.

mod call;
mod live;
mod outcome;
mod place;
mod rule;
mod scene;
mod screen;

pub(crate) use call::{Call, alive, most_at_once};
pub(crate) use live::{Live, kill, patiently};
pub(crate) use outcome::Outcome;
pub(crate) use place::Test;
pub(crate) use rule::{Rule, always, when};
pub(crate) use scene::{crowd, held, pair};
