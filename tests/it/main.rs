//! End to end: the built `raymond` against the scripted stand-in for Claude Code.
//!
//! These are the promises that only whole processes can keep or break: the files after a kill, the processes
//! that are left running, the texts that people read, the exit codes. What one function can show is tested
//! beside that function, a hundred times faster.

#![expect(clippy::expect_used, reason = "a test says what it expected and stops")]

mod admission;
mod adoption;
mod answers;
mod api;
mod approvals;
mod ask;
mod attacks;
mod bad_claude;
mod bad_input;
mod branch;
mod call_budgets;
mod cases;
mod cassettes;
mod check;
mod claude_code;
mod commands;
mod costs;
mod crash;
mod debug_mode;
mod diff;
mod drawing;
mod dry_run;
mod environment;
mod evaluator;
mod every_event;
mod facts;
mod forks;
mod fuzz;
mod graph;
mod import;
mod in_browser;
mod languages;
mod library;
mod limits;
mod logging;
mod manifest;
mod on_event;
mod options;
mod orders;
mod output;
mod owned;
mod planted;
mod plugins;
mod policy;
mod prestart;
mod printable;
mod programs;
mod protocol;
mod readme;
mod recovery;
mod reference;
mod refused_start;
mod refused_tools;
mod released;
mod retried_results;
mod retry;
mod samples;
mod schema;
mod scopes;
mod scripted;
mod scripts;
mod serve;
mod shares;
mod show;
mod signals;
mod soak;
mod stall;
mod supervision;
mod support;
mod telemetry;
mod terminal;
mod throttle;
mod top;
mod tree;
mod unread_output;
mod usage_limit;
mod version_warning;
mod warm;
mod worktree_snapshots;
mod worktrees;
