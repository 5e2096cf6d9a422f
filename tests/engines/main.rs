//! The engines against real servers on loopback.
//!
//! `suite` has what each engine promises, as functions over the trait. Each engine runs all of it, and beside it has tests
//! of its own: servers that die, stand still or are cut off, and addresses that are wrong. `tests/run` skips and counts
//! the tests whose server is not installed.

#![expect(
    clippy::duplicate_mod,
    reason = "the same tests run over each engine, which stands beside them"
)]
#![expect(clippy::expect_used, reason = "a test says what it expected and stops")]

#[expect(dead_code, unused_imports, reason = "other tests use the rest")]
#[path = "../it/api/mod.rs"]
mod api;
#[macro_use]
mod suite;
mod lost_answers;
mod on_postgres;
mod on_restate;
mod postgres;
mod restate;
mod support;
mod wrong_clock;
