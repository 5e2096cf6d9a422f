//! The precedence of settings: the frontmatter, then the command line, then the manifest, then the default.
//! Each setting is also seen to take effect, because a recorded setting might be ignored.

use serde_json::{Value, json};

use super::born;
use crate::support::{FakeRule, RaymondOutcome, Test, always, when};

/// Returns a workflow of one state with this supervision block, whose manifest has the other.
fn alone(frontmatter: &str, manifest: &str, rules: impl IntoIterator<Item = FakeRule>) -> Test {
    let manifest = format!("supervision: {{ {manifest} }}\n");
    let test = Test::new()
        .prompt("START.md", &born(frontmatter, "start"))
        .file("raymond.yaml", manifest.as_bytes());
    rules.into_iter().fold(test, Test::rule)
}

fn well() -> FakeRule {
    always().reply("<result>well</result>")
}

/// Checks an outcome twice: with the command line against the manifest, and with the frontmatter against
/// both.
#[track_caller]
fn assert_nearest(
    options: &[&str],
    far: &str,
    near: &str,
    rule: &FakeRule,
    holds: fn(&Test, RaymondOutcome),
) {
    let tests = [
        // First on the command line, against the manifest; then in the frontmatter, against both.
        (alone("", far, [rule.clone(), well()]), options),
        (alone(near, far, [rule.clone(), well()]), &[][..]),
    ];
    for (test, given) in tests {
        holds(&test, test.run(&[&["START.md"], given].concat()));
    }
}

/// Returns the values by key: the default, the manifest's, the command line's, the frontmatter's.
fn layers() -> Value {
    json!({
        "restart": ["transient", "permanent", "temporary", "transient"],
        "max_restarts": [3, 4, 5, 6],
        "period_ms": [600_000, 1_000, 120_000, 3_600_000],
        "backoff_min_ms": [1000, 2, 3, 4],
        "backoff_max_ms": [300_000, 20, 30, 40],
        "timeout_ms": [1_800_000, 11_000, 12_000, 13_000],
        "idle_timeout_ms": [600_000, 21_000, 22_000, 23_000],
        "shutdown_ms": [20_000, 0, 31_000, 32_000],
        "on_exhausted": ["fail-agent", "fail-run", "wait", "fail-agent"],
    })
}

#[test]
fn each_supervision_key_is_taken_from_nearest_layer() {
    const MANIFEST: &str = "restart: permanent, max_restarts: 4/1s, backoff: { min: 2ms, max: 20ms }, timeout: 11s, idle_timeout: 21s, shutdown: 0s, on_exhausted: fail-run";
    const FLAGS: [&str; 14] = [
        "--restart",
        "temporary",
        "--max-restarts",
        "5/2m",
        "--backoff",
        "3ms..30ms",
        "--timeout",
        "12",
        "--idle-timeout",
        "22s",
        "--shutdown",
        "31s",
        "--on-exhausted",
        "wait",
    ];
    const FRONTMATTER: &str = "restart: transient, max_restarts: 6, period: 1h, backoff: { min: 4ms, max: 40ms }, timeout: 13s, idle_timeout: 23s, shutdown: 32s, on_exhausted: fail-agent";
    for layer in 0..4 {
        let manifest = if layer > 0 { MANIFEST } else { "" };
        let frontmatter = if layer > 2 { FRONTMATTER } else { "" };
        let test = alone(frontmatter, manifest, [well()]);
        let mut arguments = vec!["run", "--id", "t", "START.md"];
        arguments.extend(if layer > 1 { &FLAGS[..] } else { &[] });
        test.raymond(&arguments).code_in(&[0, 1]);
        let started = &test.events("run_started")[0];
        for (key, values) in layers().as_object().expect("an object") {
            let own = started["supervision"].get(key);
            let found = own.unwrap_or(&started["settings"]["supervision"][key]);
            assert_eq!(*found, values[layer], "{key} in layer {layer}: {started}");
        }
    }
}

#[test]
fn max_restarts_is_taken_from_nearest_layer() {
    let crash = when("start").exit(1);
    let options = ["--max-restarts", "1/2h"];
    assert_nearest(&options, "max_restarts: 3", "max_restarts: 1/2h", &crash, |test, outcome| {
        outcome.code(1).failed("main");
        outcome.says("restarted once within 2h");
        assert_eq!(test.calls().len(), 2);
    });
}

#[test]
fn restart_policy_is_taken_from_nearest_layer() {
    let crash = when("start").once().exit(1);
    let options = ["--restart", "temporary"];
    let (far, near) = ("restart: permanent", "restart: temporary");
    assert_nearest(&options, far, near, &crash, |test, outcome| {
        outcome.code(1).failed("main");
        assert_eq!(test.calls().len(), 1);
        assert_eq!(test.events("agent_failed")[0]["cause"], "crash");
    });
}

#[test]
fn turn_timeout_is_taken_from_nearest_layer() {
    let hang = when("start").once().hang();
    let options = ["--timeout", "1s"];
    assert_nearest(&options, "timeout: 1h", "timeout: 1s", &hang, |test, outcome| {
        outcome.ok();
        let failed = &test.events("turn_failed")[0];
        assert_eq!(failed["cause"], "timeout", "{failed}");
        assert!(failed["message"].as_str().unwrap_or_default().contains("1s"), "{failed}");
    });
}

#[test]
fn idle_timeout_is_taken_from_nearest_layer() {
    let hang = when("start").once().hang();
    let options = ["--idle-timeout", "1s"];
    let (far, near) = ("idle_timeout: 1h", "idle_timeout: 1s");
    assert_nearest(&options, far, near, &hang, |test, outcome| {
        outcome.ok();
        assert_eq!(test.events("turn_failed")[0]["cause"], "stall");
    });
}

#[test]
fn on_exhausted_is_taken_from_nearest_layer() {
    let crash = when("start").once().exit(1);
    let options = ["--on-exhausted", "wait", "--max-restarts", "0"];
    let near = "on_exhausted: wait, max_restarts: 0";
    assert_nearest(&options, "on_exhausted: fail-run", near, &crash, |test, outcome| {
        outcome.code(2);
        assert_eq!(test.events("agent_parked").len(), 1);
    });
}

#[test]
fn restart_backoff_is_taken_from_nearest_layer() {
    // A wait of an hour would be noticed.
    let rules = || [when("start").times(2).exit(1), well()];
    let (hours, moments) = ("backoff: { min: 1h, max: 2h }", "backoff: { min: 1ms, max: 5ms }");
    alone("", hours, rules()).run(&["START.md"]).ok();
    alone(moments, "", rules()).run(&["START.md", "--backoff", "1h..2h"]).ok();
    let test = alone(hours, moments, rules());
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("turn_failed", 1);
    let failed = &test.events("turn_failed")[0];
    let moment = |key: &str| -> jiff::Timestamp {
        failed[key].as_str().and_then(|at| at.parse().ok()).expect("a time")
    };
    let wait = moment("not_before").as_millisecond() - moment("at").as_millisecond();
    assert!(wait > 2_400_000, "an hour, a fifth more or less: {failed}");
    live.interrupt();
    live.wait().code(130);
}

#[test]
fn shutdown_grace_period_is_taken_from_nearest_layer() {
    // A grace of ten minutes would be noticed, too.
    let tests = [
        (alone("", "shutdown: 10m", [when("start").hang()]), "100ms"),
        (alone("shutdown: 100ms", "", [when("start").hang()]), "10m"),
    ];
    for (test, shutdown) in tests {
        let mut live = test.spawn(&["START.md", "--shutdown", shutdown]);
        live.wait_calls(1);
        live.interrupt();
        live.wait().code(130);
        test.assert_no_survivors();
    }
}
