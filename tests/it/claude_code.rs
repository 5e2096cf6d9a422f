//! `raymond` with the real Claude Code, against the [stand-in](crate::api) for the model.
//!
//! The fakes show that raymond does what it should; these tests show that the real program behaves as the
//! fakes do: that sessions resume, fork and start fresh as the protocol needs. The API sees that, because the
//! whole conversation arrives with every request. Two versions are pinned, in `tests/claude-code/oldest` and
//! `tests/claude-code/newest`. `tests/run` installs them and runs this module with each, or skips it where it
//! cannot. `RAYMOND_TEST_CLAUDE` names the folder of the version to use, by default `oldest`. A test holds
//! for every version; where versions differ, it says what each of them does.
//!
//! Each test has a machine of its own: a home, a scope for the prompts, a working directory, an API. The
//! first capitalised word of a prompt (`ALPHA`, `BRAVO`) is the marker that rules match.

mod answers;
mod approvals;
mod attach;
mod background;
mod branches;
mod cases;
mod cassettes;
mod configs;
mod failures;
mod forks;
mod graphs;
mod installed;
mod lean;
mod machine;
mod messages;
mod money;
mod no_answer;
mod nodes;
mod options;
mod output;
mod program;
mod protected;
mod recovery;
mod refused_tools;
mod roles;
mod running;
mod sessions;
mod tool_calls;
mod tools;
mod usage;
mod warm;

/// The answer of a run whose only agent ended with `POSITIVE`.
const POSITIVE: &str = "Agent main terminated with result: POSITIVE\n";
