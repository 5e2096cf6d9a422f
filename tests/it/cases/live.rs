//! `raymond test --real`, with the stand-in for Claude Code: many runs, money, interrupts, permissions.

use serde_json::json;

use super::{flow, left, test_of};
use crate::support::{FakeRule, Test, when};

const CASE: &str = "name: by A
input: x
replies: { A.md: [<result>scripted</result>] }
expect:
  path: [START.md, A.md]
  result: live
";

/// Returns a workflow whose first state asks for A so many times, and for B from then on.
fn live_flow(case: &str, asked_for_a: u32) -> Test {
    flow(case)
        .rule(turn("Begin.", "<goto>A.md</goto>").times(asked_for_a))
        .rule(turn("Begin.", "<goto>B.md</goto>"))
        .rule(turn("A", "<result>live</result>"))
        .rule(turn("B", "<result>live</result>"))
}

fn turn(part: &str, reply: &str) -> FakeRule {
    when(part).reply(reply).cost(0.01)
}

/// Returns whether a process of the stand-in, or a raymond of a case, is left.
fn has_processes(test: &Test) -> bool {
    let mark = format!("FAKE_CLAUDE={}", test.fake().display());
    let entries = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let environments = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments.into_iter().any(|environment| {
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    })
}

fn with_temporary(test: Test) -> Test {
    std::fs::create_dir(test.root().join("tmp")).expect("made");
    test.env("TMPDIR", "../tmp")
}

#[test]
fn table_has_rate_interval_cost_and_time_of_each_model() {
    let test = with_temporary(live_flow(CASE, 3));
    let words = ["--real", "--models", "haiku,sonnet", "--times", "5", "--jobs", "1"];
    let report = test.root().join("report.xml");
    let junit = ["--budget", "5", "--junit", report.to_str().expect("a path")];
    let outcome = test_of(&test, &[&words[..], &junit].concat());
    outcome.code(1).stdout_has("ok   .: by A [haiku 1/5]").stdout_has("FAIL .: by A [sonnet 2/5]");
    outcome.stdout_has("> B.md   <- expected A.md");
    let row = |model: &str| {
        let start = format!(".: by A  {model}");
        let line = outcome.stdout.lines().find(|line| line.starts_with(&start));
        line.unwrap_or_else(|| panic!("{}", outcome.stdout)).to_owned()
    };
    assert!(row("haiku").contains("2/5") && row("haiku").contains("12–77%"), "{}", row("haiku"));
    assert!(row("sonnet").contains("1/5") && row("sonnet").contains("$0.10"), "{}", row("sonnet"));
    outcome.stdout_has("10 runs: 3 passed, 7 failed").stdout_has("$0.20 of $5.00 spent");
    let xml = std::fs::read_to_string(&report).expect("a report");
    let read = roxmltree::Document::parse(&xml).expect("XML");
    let names = read.descendants().filter(|node| node.has_tag_name("testcase"));
    let names: Vec<_> = names.filter_map(|node| node.attribute("name")).collect();
    assert_eq!(names, ["by A [haiku]", "by A [sonnet]"]);
    let models =
        test.calls().into_iter().filter(|call| call.argv.iter().any(|word| word == "haiku"));
    assert!(models.count() >= 5);
    assert_eq!(left(&test), 0, "no directory of a case is left");
    assert!(!test.dir().exists(), "the user's runs are not touched");
}

#[test]
fn json_tells_each_run_and_what_was_not_run() {
    let test = live_flow(CASE, 9);
    let outcome = test_of(&test, &["--real", "--times", "4", "--budget", "0.07", "--json"]);
    let json = outcome.code(75).json();
    assert_eq!((&json["passed"], &json["not_run"]), (&json!(2), &json!(2)), "{json}");
    assert_eq!((&json["cost_usd"], &json["budget_usd"]), (&json!(0.04), &json!(0.07)));
    let row = &json["live"][0];
    assert_eq!(
        (&row["name"], &row["model"], &row["pass_rate"]),
        (&json!("by A"), &json!(null), &json!(1.0))
    );
    assert_eq!(row["runs"].as_array().map(Vec::len), Some(4));
    assert_eq!(row["runs"][3]["error"], "not run: the budget is used up");
    let printed = test_of(&test, &["--real", "--times", "4", "--budget", "0.07"]);
    printed.code(75).stdout_has("2 not run (the budget is used up)");
}

#[test]
fn run_that_the_budget_ends_is_not_judged() {
    let dear = when("Begin.").reply("<goto>A.md</goto>").cost(0.30);
    let test = flow(CASE).rule(dear).rule(turn("A", "<result>live</result>"));
    let outcome = test_of(&test, &["--real", "--budget", "0.40"]);
    outcome.code(75).stdout_has("cut  .: by A").stdout_has("1 ended by the budget");
    outcome.stdout_has("0/0");
    let own = format!("{CASE}  status: paused\nsettings: {{ budget: 0.10 }}\n")
        .replace("  path: [START.md, A.md]\n  result: live\n", "");
    let test = test.file("tests/ways.yaml", own.as_bytes());
    test_of(&test, &["--real", "--budget", "0.40"]).ok().stdout_has("1/1");
}

#[test]
fn interrupted_live_test_prints_what_was_found_and_leaves_nothing() {
    let test = with_temporary(
        flow(CASE)
            .rule(turn("Begin.", "<goto>A.md</goto>").once())
            .rule(turn("A", "<result>live</result>"))
            .rule(turn("Begin.", "late").hold_before("never")),
    );
    let mut running = test.start(&["test", "--real", "--times", "3", "--jobs", "1"]);
    running.wait_for("the second run", |test| test.calls_with("Begin.").len() == 2).interrupt();
    let outcome = running.wait();
    outcome.code(130).stdout_has("1/1").stdout_has("2 not run (interrupted)");
    assert_eq!(left(&test), 0, "no directory of a case is left");
    assert!(!has_processes(&test), "no process is left");
}

#[test]
fn killed_live_test_ends_its_runs() {
    let test = with_temporary(flow(CASE).rule(turn("Begin.", "late").hold_before("never")));
    let mut running = test.start(&["test", "--real", "--jobs", "1"]);
    running.wait_for("the run", |test| test.calls_with("Begin.").len() == 1);
    running.kill9();
    crate::support::wait_until("the run and its turn are ended", || !has_processes(&test));
    assert_eq!(left(&test), 1, "its directory is left");
    test.script(&[turn("Begin.", "<goto>A.md</goto>"), turn("A", "<result>live</result>")]);
    test_of(&test, &["--real"]).ok();
    assert_eq!(left(&test), 0, "the next test removes it");
}

#[test]
fn case_cannot_permit_anything_in_a_live_run() {
    let asks = |setting: &str| format!("settings: {{ {setting} }}\n{CASE}");
    let test = live_flow(&asks("allow_tools: 'Bash(rm:*)'"), 9);
    let refused = test_of(&test, &["--real"]);
    refused.code(64).stderr_has("tests/ways.yaml:1:").stderr_has("--allow-tool 'Bash(rm:*)'");
    assert!(test.calls().is_empty());
    test_of(&test, &["--real", "--allow-tool", "Bash(rm:*)"]).ok();
    let test = live_flow(&asks("permission_mode: bypassPermissions"), 9);
    test_of(&test, &["--real"]).code(64).stderr_has("--permission-mode 'bypassPermissions'");
}

#[test]
fn live_run_that_cannot_begin_is_tried_once() {
    let test = flow(CASE).env("RAYMOND_CLAUDE", "/nowhere/claude");
    let outcome = test_of(&test, &["--real", "--times", "3"]);
    outcome.code(1).stdout_has("the run did not begin (exit code 69)").stdout_has("3 not run");
    let json = test_of(&test, &["--real", "--times", "3", "--jobs", "1", "--json"]).code(1).json();
    assert_eq!(json["live"][0]["runs"][2]["error"], "not run: its first run did not begin");
}

#[test]
fn live_switches_need_live() {
    for words in [&["--models", "haiku"][..], &["--times", "2"], &["--budget", "1"]] {
        test_of(&flow(CASE), words).code(64).stderr_has("--real");
    }
    for other in ["--update", "--kill-sweep", "--coverage"] {
        test_of(&flow(CASE), &["--real", other]).code(64).stderr_has("cannot be used with");
    }
}
