//! Runs that tests play: `scene` moves one by hand, `plausible` by chance.

#![allow(
    clippy::expect_used,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    missing_debug_implementations,
    reason = "only tests use it"
)]

pub mod plausible;
pub mod scene;
