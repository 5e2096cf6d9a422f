//! A Claude Code that is older than supported or newer than tested is reported once, and used.

use crate::support::{RaymondOutcome, Test, when};

/// Runs two steps, in a process each, with a program of this version.
fn run_with(version: &str) -> RaymondOutcome {
    Test::new()
        .prompt("START.md", "begin")
        .prompt("NEXT.md", "end")
        .rule(when("begin").reply("<goto>NEXT.md</goto>"))
        .rule(when("end").reply("<result>done</result>"))
        .env("FAKE_CLAUDE_VERSION", version)
        .run(&["START.md", "--no-warm"])
}

fn warnings(outcome: &RaymondOutcome) -> Vec<&str> {
    outcome.stderr.lines().filter(|line| line.starts_with("warning: Claude Code")).collect()
}

#[test]
fn version_out_of_range_warns_once_per_run() {
    for (version, relation) in [("9.0.1", "newer than"), ("2.0.14", "older than")] {
        let outcome = run_with(version);
        outcome.ok().ended("main", "done");
        let warnings = warnings(&outcome);
        let [warning] = warnings.as_slice() else { panic!("{version}: {outcome:?}") };
        assert!(warning.contains(version) && warning.contains(relation), "{warning}");
    }
}

#[test]
fn version_in_range_or_unreadable_does_not_warn() {
    for version in ["2.1.197", "2.1.332", "2.1.250 (nightly)", "tomorrow", ""] {
        let outcome = run_with(version);
        outcome.ok().ended("main", "done");
        assert!(warnings(&outcome).is_empty(), "{version}: {outcome:?}");
    }
}
