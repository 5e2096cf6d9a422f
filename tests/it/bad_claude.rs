//! A Claude Code that is missing, dies, prints nothing or nonsense, or does not end.

use std::fs;

use crate::support::{FakeRule, Test, alive, always, wait_until, when};

fn with(rules: impl IntoIterator<Item = FakeRule>) -> Test {
    let test = Test::new().prompt("START.md", "start").prompt("NEXT.md", "next");
    rules.into_iter().fold(test, Test::rule)
}

fn well() -> FakeRule {
    always().reply("<result>well</result>")
}

#[test]
fn missing_claude_is_error_naming_flag_and_variable() {
    let test = with([well()]).env("RAYMOND_CLAUDE", "/nowhere/claude");
    let outcome = test.run(&["START.md"]);
    outcome
        .code(69)
        .stderr_has("/nowhere/claude")
        .stderr_has("RAYMOND_CLAUDE")
        .stderr_has("--claude");
    assert!(test.calls().is_empty());
}

#[test]
fn claude_not_found_in_path_is_error() {
    let test = with([well()]).env("RAYMOND_CLAUDE", "").env("PATH", "/nowhere");
    test.run(&["START.md", "--claude", "claude"]).code(69).stderr_has("claude").stderr_has("PATH");
}

#[test]
fn claude_missing_mid_run_pauses_run() {
    let test = with([when("start").hold_before("go").reply("<goto>NEXT.md</goto>"), well()]);
    let claude = test.own_claude();
    let test = test.env("RAYMOND_CLAUDE", &claude);
    let mut live = test.spawn(&["START.md", "--no-warm"]);
    live.wait_calls(1);
    fs::remove_file(&claude).expect("it was there");
    test.release("go");
    live.wait().code(69).stderr_has("raymond resume t");

    test.own_claude();
    test.resume(&[]).ok().ended("main", "well");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn claude_flag_overrides_environment() {
    let test = with([well()]);
    let claude = test.own_claude();
    let test = test.env("RAYMOND_CLAUDE", "/nowhere/claude");
    test.run(&["START.md", "--claude", claude.to_str().unwrap_or_default()]).ok();
}

#[test]
fn non_executable_claude_is_error() {
    let test = with([well()]).file("claude", b"just text");
    let path = test.flow().join("claude");
    let path = path.to_str().unwrap_or_default();
    test.run(&["START.md", "--claude", path]).code(69).stderr_has(path);
}

#[test]
fn logged_out_claude_pauses_run() {
    let test = with([
        when("start").reply("<goto>NEXT.md</goto>"),
        always().once().not_logged_in(),
        well(),
    ]);
    let outcome = test.run(&["START.md"]);
    outcome.code(69).says("/login").stderr_has("raymond resume t");
    assert_eq!(test.prompts(), ["start", "next"], "it is not tried again by itself");

    test.resume(&[]).ok().ended("main", "well");
    assert_eq!(test.prompts(), ["start", "next", "next"]);
}

#[test]
fn single_turn_failure_of_any_kind_is_retried() {
    let slips = [
        ("exit", always().exit(3).stderr("boom")),
        ("signal", always().signal(9)),
        ("silence", always().silent()),
        ("garbage", always().garbage()),
        ("an error result", always().error(500, "API Error: 500 overloaded")),
    ];
    for (slip, rule) in slips {
        let test = with([rule.once(), well()]);
        let outcome = test.run(&["START.md"]);
        outcome.ok().ended("main", "well");
        outcome.assert(test.calls().len() == 2, &format!("two calls for {slip}"));
        let failed = test.events("turn_failed");
        outcome.assert(failed.len() == 1, &format!("one failed turn for {slip}"));
        outcome.assert(failed[0]["cause"].is_string(), "its cause is told");
    }
}

#[test]
fn repeated_turn_failures_fail_agent_with_cause() {
    let slips = [
        (always().exit(3).stderr("boom: no disk"), &["3", "boom: no disk"][..]),
        (always().signal(9), &["signal", "9"]),
        (always().silent(), &["no result"]),
        (always().garbage(), &["no result"]),
        (always().error(500, "API Error: 500 overloaded"), &["API Error: 500 overloaded"]),
    ];
    for (rule, parts) in slips {
        let test = with([rule]);
        let outcome = test.run(&["START.md"]);
        outcome.code(1).failed("main");
        outcome.assert(test.calls().len() == 4, "a call and three restarts");
        for part in parts {
            outcome.says(part);
        }
        // The path of the whole output.
        outcome.says("steps/main-1-");
    }
}

#[test]
fn max_restarts_limits_retries_of_failing_turn() {
    for (restarts, calls) in [("0", 1), ("1", 2)] {
        let test = with([always().exit(1)]);
        test.run(&["START.md", "--max-restarts", restarts]).code(1);
        assert_eq!(test.calls().len(), calls);
    }
}

#[test]
fn failed_turn_is_retried_without_its_partial_history() {
    let test =
        with([when("start").reply("<goto>NEXT.md</goto>"), when("next").once().exit(1), well()]);
    test.run(&["START.md"]).ok();
    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "next", "next"]);
    calls[2].assert_branches(&calls[0]);
    assert_eq!(calls[2].history, ["start"], "the killed turn is not in the history");
}

#[test]
fn missing_session_fails_agent() {
    let test = with([when("start").hold_before("go").reply("<goto>NEXT.md</goto>"), well()]);
    let mut live = test.spawn(&["START.md", "--max-restarts", "1"]);
    live.wait_calls(1);
    fs::remove_dir_all(test.fake().join("sessions")).expect("sessions were there");
    test.release("go");
    live.wait().code(1).says("No conversation found with session ID");
}

#[test]
fn turn_ends_at_result_though_process_lingers() {
    for how in ["--no-warm", "--idle-timeout=2s"] {
        let test = with([when("start").linger().reply("<goto>NEXT.md</goto>"), well()]);
        test.run(&["START.md", "--shutdown", "100ms", how]).ok();
        assert_eq!(test.prompts(), ["start", "next"], "{how}");
        test.assert_no_survivors();
    }
}

#[test]
fn process_that_ignores_sigterm_is_killed() {
    let rule = when("start").linger().ignore_term().helper().reply("<goto>NEXT.md</goto>");
    let test = with([rule, well()]);
    let options = ["START.md", "--shutdown", "100ms", "--idle-timeout", "2s"];
    test.run(&options).ok().ended("main", "well");
    test.assert_no_survivors();
}

#[test]
fn helper_that_holds_stdout_open_is_killed_with_its_step() {
    let test = with([
        when("start").helper().reply("<goto>NEXT.md</goto>"),
        when("next").hold_before("go").reply("<result>ok</result>"),
    ]);
    let mut live = test.spawn(&["START.md", "--no-warm"]);
    live.wait_calls(2);
    let helpers = test.helpers();
    assert_eq!(helpers.len(), 1);
    wait_until("the helper is gone", || !alive(helpers[0]));
    test.release("go");
    live.wait().ok();
    test.assert_no_survivors();
}

#[test]
fn output_line_over_one_megabyte_is_read() {
    let test = with([always().pad(1_500_000).reply("<result>long</result>")]);
    test.run(&["START.md"]).ok().ended("main", "long");
}

#[test]
fn output_line_over_16_megabytes_is_skipped_unless_it_is_the_result() {
    let test = with([always().pad(17 << 20).reply("<result>short</result>")]);
    test.run(&["START.md", "--max-restarts", "0"]).ok().ended("main", "short");
    assert_eq!(test.calls().len(), 1);
    let too_long = format!("<result>{}</result>", "x".repeat(17 << 20));
    let test = with([always().reply(&too_long)]);
    let outcome = test.run(&["START.md", "--max-restarts", "0"]);
    outcome.code(1).says("16 M").says("line").failed("main");
}

#[test]
fn non_utf8_output_does_not_fail_turn() {
    for kind in ["assistant", "result"] {
        let test = with([always().non_utf8(kind).reply("<result>readable</result>")]);
        test.run(&["START.md"]).ok().stdout_has("readable");
        assert_eq!(test.calls().len(), 1);
    }
}
