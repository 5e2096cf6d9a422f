//! Joins whose workers fail: the outcome of the join, and the agents that fail with it.

use serde_json::{Value, json};

use super::{answering, each, error, joins, outcomes, payload, place, play, spawn, wait_end};
use crate::support::{Test, always, when};

/// Returns a workflow of three workers, of which so many fail.
fn three(join: &str, failing: usize) -> Test {
    let items: Vec<Value> =
        (0..3).map(|item| json!(if item < failing { "BAD.md" } else { "GOOD.md" })).collect();
    let others = json!({
        "WORKER.md": ["<goto>{{item}}</goto>"],
        "GOOD.md": ["<result>good</result>"],
        "BAD.md": ["no tag"],
        "FALLBACK.md": ["<result>{{results}}</result>"],
    });
    let test = answering(place(join), &each(&json!(items).to_string()), &others);
    ["GOOD.md", "BAD.md"]
        .into_iter()
        .fold(test, |test, name| test.prompt(name, "go"))
        .prompt("FALLBACK.md", "---\njoin: all\n---\nfall back on {{results}}")
}

#[test]
fn join_is_met_by_required_number_of_results() {
    let table = [
        ("all", 0, "met 3 3 0", 0),
        ("2", 1, "met 3 2 1", 0),
        ("any", 2, "met 3 1 2", 0),
        ("any", 3, "missed 3 0 3", 1),
        ("1", 3, "missed 3 0 3", 1),
    ];
    for (need, failing, verdict, code) in table {
        let test = three(&format!("join: {need}\ntimeout: 1h"), failing);
        let ended = play(&test, &["--max-procs", "1"]);
        let seen = joins(&test);
        assert_eq!(seen.len(), 1, "{need} {failing}: {seen:?}");
        if need == "all" || failing == 3 {
            assert_eq!(seen[0], format!("main {verdict}"), "{need} {failing}");
        } else {
            assert!(seen[0].starts_with("main met 3 "), "{need} {failing}: {seen:?}");
        }
        // A failure after the decision of the join does not change the join, but may come before the end of
        // the run.
        let late = failing > 0 && code == 0;
        ended.code_in(if late {
            &[0, 1]
        } else if code == 0 {
            &[0]
        } else {
            &[1]
        });
    }
}

#[test]
fn missed_join_fails_agent_and_names_failed_workers() {
    let test = three("join: all", 3);
    let ended = play(&test, &[]);
    ended.code(1);
    let why = error(&test, "main");
    assert!(why.starts_with("in JOIN.md: "), "{why}");
    assert!(why.contains("of the 3 agents it waited for failed (join: all): main."), "{why}");
    assert!(why.ends_with("; on_failure: keep continues without them"), "{why}");
    let reason = "in BAD.md: the reply has no transition tag";
    let failed = test.events("agent_failed").len() - 1;
    assert_eq!(ended.stdout.matches(reason).count(), failed, "each reason stands once");
    assert!(
        test.events("agent_failed")
            .iter()
            .any(|failed| failed["agent"] == "main" && failed["cause"] == "join")
    );
}

#[test]
fn on_failure_keep_passes_failures_on_as_results() {
    for failing in [1, 3] {
        let test = three("join: all\non_failure: keep", failing);
        let ended = play(&test, &[]);
        let results = payload(ended.ok(), "main");
        let outcomes = outcomes(&results);
        assert_eq!(outcomes.len(), 3);
        assert!(
            outcomes[0].starts_with("main.1 error in BAD.md: the reply has no"),
            "{outcomes:?}"
        );
        assert_eq!(outcomes[2].starts_with("main.3 result good"), failing == 1);
        ended.failed("main.1");
        assert_eq!(test.status()["status"], "completed");
        assert_eq!(joins(&test), [format!("main met 3 {} {failing}", 3 - failing)]);
    }
}

#[test]
fn failures_that_join_kept_are_counted_wherever_run_is_shown() {
    let test = three("join: all\non_failure: keep", 2);
    let outcome = "finished: 2 of 4 agents failed, kept by the join (BAD.md: protocol ×2)";
    play(&test, &[]).ok().stderr_has(&format!("run t {outcome}, $"));
    let groups = json!([{ "state": "BAD.md", "cause": "protocol", "agents": 2 }]);
    for command in [&["status", "t"][..], &["tree", "t"], &["list"]] {
        let shown = test.raymond(command);
        shown.ok().stdout_has("BAD.md: protocol ×2");
        let json = test.raymond(&[command, &["--json"]].concat()).ok().json();
        let run = if json.is_array() { &json[0] } else { &json };
        assert_eq!(run["failed_agents"], 2, "{command:?}");
        assert_eq!(run["failures"], groups, "{command:?}");
    }
    test.raymond(&["status", "t"]).stdout_has(outcome);
    test.raymond(&["list"]).stdout_has("2 finished, 2 failed");
    test.resume(&[]).ok().stderr_has(outcome);
}

#[test]
fn strict_run_fails_if_join_kept_failures() {
    let test = three("join: all\non_failure: keep", 1);
    let ended = play(&test, &["--strict"]);
    ended.code(1).stderr_has("kept by the join (BAD.md: protocol)");
    ended.stderr_has("that fails the run (--strict)");
    assert_eq!(test.status()["status"], "failed");
    test.raymond(&["list", "--status", "failed"]).ok().stdout_has("t    failed");
    test.resume(&[]).code(1).stderr_has("that fails the run (--strict)");
    play(&three("join: all\non_failure: keep", 0), &["--strict"]).ok().stderr_lacks("--strict");
}

#[test]
fn missed_join_enters_fallback_state_with_results() {
    let test = three("join: all\non_failure: FALLBACK.md\nrest: stop", 3);
    let ended = play(&test, &[]);
    let results = payload(ended.ok(), "main");
    assert!(outcomes(&results)[0].contains("main.1 "), "{results}");
    let [joined] = &test.events("joined")[..] else { panic!("one join") };
    assert_eq!((&joined["outcome"], &joined["enters"]), (&json!("missed"), &json!("FALLBACK.md")));
    assert_eq!(
        test.events("step_finished").last().map(|step| step["state"].clone()),
        Some(json!("FALLBACK.md"))
    );
}

#[test]
fn join_fails_as_soon_as_it_cannot_be_met() {
    let test = place("join: all")
        .rule(when("start").reply(&each("[\"a\", \"b\"]")))
        .rule(when("work on a").hold_before("go").reply("<result>did a</result>"))
        .rule(when("work on b").reply("no tag"));
    let mut live = spawn(&test, &[]);
    wait_end(&mut live, "main");
    test.release("go");
    let ended = live.wait();
    ended.code(1).ended("main.1", "did a");
    assert_eq!(joins(&test), ["main missed 2 0 1"]);
}

#[test]
fn restarted_worker_counts_once_in_join() {
    let test = place("join: all")
        .rule(when("start").reply(&each("[\"a\", \"b\"]")))
        .rule(when("work on a").times(2).exit(3))
        .rule(when("work").reply("<result>did it</result>"))
        .rule(always().reply("<result>merged</result>"));
    spawn(&test, &[]).wait().ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 2 2 0"]);
    assert_eq!(test.calls_with("work on a").len(), 3);
}

#[test]
fn failed_worker_without_join_fails_run() {
    let others = json!({"NEXT.md": ["<result>led</result>"], "WORKER.md": ["no tag"]});
    for start in [
        r#"<fork next="NEXT.md">WORKER.md</fork>"#.to_owned(),
        each("[1, 2]").replace("JOIN", "NEXT"),
    ] {
        let test = answering(place("join: all"), &start, &others).prompt("NEXT.md", "next");
        play(&test, &[]).code(1).ended("main", "led").failed("main.1");
        assert!(test.events("join_begun").is_empty());
    }
}
