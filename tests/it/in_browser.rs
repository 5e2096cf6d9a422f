//! The page in a real browser: headless Chromium, by real clicks.
//!
//! `tests/run` leaves these out where there is no Chromium, and counts them.

mod browser;
mod hostile;
mod large;
mod live;
mod looks;
mod needs;

pub(crate) use browser::Browser;
