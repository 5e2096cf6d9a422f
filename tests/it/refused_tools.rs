//! Tools that Claude Code refuses: in the records, in the texts for people, and in exit codes.

use serde_json::json;

use crate::support::{FakeRule, Test, always, when};

const ASKED: &str = "This command requires approval";
const ADVICE: &str = "--allow-tool 'Bash(curl:*)' --allow-tool 'WebFetch(domain:example.org)'";

/// Refuses a command twice and a page once.
fn refusing(rule: FakeRule) -> FakeRule {
    let curl = || json!({ "command": "curl -s http://a", "description": "fetch it" });
    let why = "Claude requested permissions to use WebFetch, but you haven't granted it yet.";
    rule.refused("Bash", &curl(), ASKED).refused("Bash", &curl(), ASKED).refused(
        "WebFetch",
        &json!({ "url": "https://example.org/x", "prompt": "?" }),
        why,
    )
}

fn two_steps(head: &str) -> Test {
    Test::new()
        .prompt("START.md", &format!("{head}start"))
        .prompt("NEXT.md", "next")
        .rule(refusing(when("start")).reply("<goto>NEXT.md</goto>").cost(0.25))
        .rule(when("next").reply("<result>ok</result>"))
}

#[test]
fn refused_tools_are_recorded_and_shown_by_run_log_status_and_show() {
    let test = two_steps("");
    let said = test.run(&["START.md"]);
    let headline =
        "3 tools were refused: Bash `curl -s http://a` (2), WebFetch `https://example.org/x`";
    said.ok().ended("main", "ok").stderr_has(&format!("{headline}; allow them with: {ADVICE}"));

    let first = &test.events("step_finished")[0]["refused_tools"]["calls"];
    let expected = json!([
        { "tool": "Bash", "input": "curl -s http://a", "why": ASKED, "allow": ["Bash(curl:*)"], "times": 2 },
        {
            "tool": "WebFetch",
            "input": "https://example.org/x",
            "why": "Claude requested permissions to use WebFetch, but you haven't granted it yet.",
            "allow": ["WebFetch(domain:example.org)"],
        },
    ]);
    assert_eq!(*first, expected);
    assert!(test.events("step_finished")[1].get("refused_tools").is_none());
    assert_eq!(test.status()["refused_tools"]["calls"], expected);

    test.raymond(&["log", "t"]).ok().stdout_has(&format!("({headline})"));
    test.raymond(&["status", "t"]).ok().stdout_has(ADVICE);
    let shown = test.raymond(&["show", "t", "main"]);
    shown.ok().stdout_has(&format!("Bash  curl -s http://a  refused: {ASKED}"));
    shown.stdout_lacks("refused: Bash");
    shown.stdout_has(&format!("allowed with: {ADVICE}"));
    let shown = test.raymond(&["show", "t", "main", "--json"]).json();
    assert_eq!(shown["steps"][0]["turns"][0]["refused_tools"]["calls"], expected);
}

#[test]
fn refusals_are_shown_live_for_each_stream_format_of_claude_code() {
    let rules = [refusing(always()), refusing(always()).told_at_once()];
    for rule in rules {
        let test = Test::new()
            .prompt("START.md", "start")
            .rule(rule.hold_before("go").reply("<result>ok</result>"));
        let mut live = test.spawn(&["START.md"]);
        live.wait_stderr("refused: WebFetch `https://example.org/x`");
        let mut screen = test.on_screen(&["top"], (24, 100));
        screen.wait_for(&["t  running", "refused: WebFetch"]);
        test.release("go");
        live.wait().ok();
        screen.wait_for(&["t  completed", "3 tools refused"]);
        screen.keys("q");
        assert_eq!(screen.wait_for_exit(), Some(0));
    }
}

#[test]
fn failed_turn_records_its_refused_tools() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(refusing(always()).told_at_once().once().signal(9))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md", "--backoff", "1ms..1ms"]).ok().stderr_has("3 tools were refused");
    let failed = &test.events("turn_failed")[0];
    assert_eq!(
        (&failed["cause"], &failed["refused_tools"]["calls"][0]["times"]),
        (&json!("crash"), &json!(2))
    );
}

#[test]
fn on_denied_fail_fails_the_agent_and_keeps_the_cost_of_its_turn() {
    let test = two_steps("---\non_denied: fail\n---\n");
    let said = test.run(&["START.md"]);
    said.code(1).stderr_has("3 tools were refused").stderr_has(ADVICE);
    assert!(said.failed("main").contains("(on_denied: fail)"), "{}", said.failed("main"));
    let failed = &test.events("agent_failed")[0];
    assert_eq!((&failed["cause"], &failed["cost_usd"]), (&json!("tool_refused"), &json!(0.25)));
    assert_eq!(failed["refused_tools"]["calls"].as_array().map(Vec::len), Some(2));
    assert_eq!(test.prompts(), ["start"]);
}

#[test]
fn on_denied_of_the_frontmatter_overrides_the_manifest() {
    let all_fail = |test: Test| test.file("raymond.yaml", b"on_denied: fail\n");
    all_fail(two_steps("")).run(&["START.md"]).code(1);
    all_fail(two_steps("---\non_denied: continue\n---\n")).run(&["START.md"]).ok();
    let wrong = two_steps("---\non_denied: stop\n---\n");
    wrong.run(&["START.md"]).code(65).stderr_has("START.md:2:12: RF002 unknown value `stop`");
}

#[test]
fn strict_run_with_refused_tools_fails_even_when_resumed() {
    let test = two_steps("");
    let said = test.run(&["START.md", "--strict"]);
    said.code(1).ended("main", "ok").stderr_has("that fails the run (--strict)");

    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(refusing(when("start")).reply("<goto>NEXT.md</goto>").cost(0.06))
        .rule(when("next").reply("<result>ok</result>"));
    test.run(&["START.md", "--strict", "--budget", "0.05"]).code(75);
    test.resume(&["--budget", "1"]).code(1).ended("main", "ok").stderr_has("--strict");
    test.resume(&[]).code(1).stderr_has("3 tools were refused");

    let test = two_steps("");
    test.run(&["START.md"]).ok();
    test.resume(&["--strict"]).code(1).stderr_has("--strict");

    let clean = Test::new().prompt("START.md", "x").rule(always().reply("<result>ok</result>"));
    clean.run(&["START.md", "--strict"]).ok().stderr_lacks("refused");
}
