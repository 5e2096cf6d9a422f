//! The page in a real browser: headless Chromium, by real clicks.
//!
//! `tests/run` leaves these out where there is no Chromium, and counts them.

mod approvals;
mod browser;
mod hostile;
mod large;
mod live;
mod looks;
mod needs;
mod orders;
mod start;

pub(crate) use browser::Browser;
