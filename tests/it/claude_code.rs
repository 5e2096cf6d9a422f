//! `raymond` with the real Claude Code, against the [stand-in](crate::api) for the model.
//!
//! The fakes show that raymond does what it believes; these tests show that the belief is true: that
//! sessions resume, fork and start fresh as the protocol needs, seen from the far end, where the
//! whole conversation arrives with every request. The version is pinned in
//! `tests/claude-code/package.json`, `tests/run` installs it; this module is what is skipped when
//! it cannot.
//!
//! Each test has a machine of its own: a home, a scope for the prompts, a working directory, an API.
//! The first capitalised word of a prompt (`ALPHA`, `BRAVO`) is the marker that rules listen for.

mod answers;
mod background;
mod failures;
mod forks;
mod graphs;
mod installed;
mod lean;
mod machine;
mod money;
mod options;
mod program;
mod recovery;
mod roles;
mod running;
mod sessions;
mod tools;
mod usage;
mod warm;

/// The answer of a run whose only agent ended with `POSITIVE`.
const POSITIVE: &str = "Agent main terminated with result: POSITIVE\n";
