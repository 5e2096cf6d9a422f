//! `raymond retry`: what failed lives again, and nothing that ended well is asked again.

use serde_json::json;

use crate::support::{Test, always, when};

/// Returns a workflow that forks five workers and joins them; two of them fail twice.
fn five_workers(join: &str) -> Test {
    Test::new()
        .prompt("START.md", "distribute")
        .prompt("GATHER.md", &format!("---\njoin: {join}\n---\ngather {{{{results}}}}"))
        .prompt("W.md", "work on {{item}}")
        .rule(when("distribute").reply(
            r#"<fork next="GATHER.md" each='["a", "b", "c", "d", "e"]' as="item">W.md</fork>"#,
        ))
        .rule(when("work on b").times(2).exit(1))
        .rule(when("work on d").times(2).exit(1))
        .rule(when("work on").reply("<result>done</result>"))
        .rule(always().reply("<result>gathered</result>"))
}

const ONE_RESTART: [&str; 5] = ["START.md", "--max-restarts", "1", "--stagger", "0s"];

#[test]
fn two_failed_of_five_cost_two_agents_and_join_receives_them() {
    let test = five_workers("all");
    let outcome = test.run(&ONE_RESTART);
    outcome.code(1).failed("main");
    assert_eq!(test.calls_with("work on").len(), 7);

    let plan = test.raymond(&["retry", "t", "--dry-run"]);
    plan.ok().stdout_has("main continues at GATHER.md (join)").stdout_lacks("main.1 ");
    plan.stdout_has("main.2 continues at W.md (crash)").stdout_has("3 agents continue in t");
    assert_eq!(test.status()["status"], "failed", "nothing is changed");

    let retried = test.raymond(&["retry", "t"]);
    retried.ok().ended("main", "gathered");
    assert_eq!(test.calls_with("work on").len(), 9, "two turns more");
    let gathered = test.calls_with("gather").pop().expect("gathered");
    assert_eq!(gathered.prompt.matches("\"status\":\"result\"").count(), 5, "{}", gathered.prompt);
    let event = test.events("agents_retried").pop().expect("recorded");
    assert_eq!(event["agents"].as_array().map(Vec::len), Some(3));
    assert_eq!(test.status()["status"], "completed");
    test.assert_no_survivors();
}

#[test]
fn finished_join_is_reported_and_not_asked_again() {
    let test = five_workers("all\non_failure: keep");
    test.run(&ONE_RESTART).ok().ended("main", "gathered");
    let plan = test.raymond(&["retry", "t", "--dry-run", "--json"]).json();
    assert_eq!(
        plan["continued"],
        json!([
            { "parent": "main", "child": "main.2", "state": null },
            { "parent": "main", "child": "main.4", "state": null },
        ])
    );
    let retried = test.raymond(&["retry", "t", "--agent", "main.4"]);
    retried.ok().ended("main.4", "done");
    retried.stderr_has("main continued after the failure of main.4 and has ended");
    assert_eq!(test.calls_with("gather").len(), 1, "{:?}", test.prompts());
    assert_eq!(test.calls_with("work on b").len(), 2, "the other one was not chosen");
}

#[test]
fn wrong_selections_by_state_and_cause_are_named() {
    let test = five_workers("all\non_failure: keep");
    test.run(&ONE_RESTART).ok();
    let retry = |more: &[&str]| test.raymond(&[&["retry", "t", "--dry-run"], more].concat());
    retry(&["--state", "W.md", "--cause", "crash"]).ok().stdout_has("2 agents continue");
    retry(&["--state", "GATHER.md"]).code(64).stderr_has(
        "no failed agent fits the selection; failed are main.2 in W.md (crash), main.4",
    );
    retry(&["--cause", "crush"])
        .code(64)
        .stderr_has("did you mean crash?")
        .stderr_has("usage_limit");
    retry(&["--input", "x"]).code(64).stderr_has("unexpected argument").stderr_lacks("as a value");
    retry(&["--agent", "main.1"]).code(64).stderr_has("main.1 has not failed: it ended well");
    retry(&["--agent", "main.77"]).code(64).stderr_has("the run has no agent main.77");
    test.raymond(&["retry", "x"]).code(64);
    test.raymond(&["retry", "t"]).ok();
    retry(&[]).code(64).stderr_has("no agent of the run has failed");
}

#[test]
fn edited_prompt_is_taken_up_on_request() {
    let test = Test::new()
        .prompt("START.md", "begin")
        .prompt("WORK.md", "wrong words")
        .rule(when("begin").reply("<goto>WORK.md</goto>"))
        .rule(when("right words").reply("<result>fixed</result>"))
        .rule(always().reply("I do not know how to end"));
    test.run(&["START.md"]).code(1).failed("main");
    let calls = test.calls().len();
    test.raymond(&["retry", "t"]).code(1).failed("main");
    let dry = ["retry", "t", "--prompts", "--dry-run"];
    test.raymond(&dry).ok().stdout_has("the workflow's files are those of the run");
    let test = test.prompt("WORK.md", "right words");
    test.raymond(&dry).ok().stdout_has("WORK.md: ").stdout_has("+right words");
    let edited = &test.raymond(&[&dry[..], &["--json"]].concat()).json()["edited"];
    assert!(edited[0].as_str().is_some_and(|text| text.contains("-wrong words")), "{edited}");
    let retried = test.raymond(&["retry", "t", "--prompts"]);
    retried.ok().ended("main", "fixed").stderr_has("+right words");
    assert_eq!(test.calls_with("begin").len(), 1);
    assert!(test.calls().len() > calls);
}

#[test]
fn edited_prompt_that_leads_to_an_error_is_not_taken_up() {
    let test = Test::new()
        .prompt("START.md", "begin")
        .prompt("WORK.md", "wrong words")
        .rule(when("begin").reply("<goto>WORK.md</goto>"))
        .rule(always().reply("I do not know how to end"));
    test.run(&["START.md"]).code(1).failed("main");
    let calls = test.calls().len();
    let leads_nowhere = "---\nallowed_transitions: [{ tag: goto, target: NOPE.md }]\n---\nwords";
    let test = test.prompt("WORK.md", leads_nowhere);
    for arguments in [&["--prompts"][..], &["--prompts", "--dry-run"], &["--migrate"]] {
        let refused = test.raymond(&[&["retry", "t"], arguments].concat());
        refused
            .code(65)
            .stderr_has("WORK.md")
            .stderr_has("NOPE.md")
            .stderr_lacks("agent continues");
    }
    assert_eq!(test.calls().len(), calls);
    test.raymond(&["retry", "t", "--dry-run"]).ok();
}

#[test]
fn script_that_was_added_needs_trust_to_be_retried() {
    let test = Test::new()
        .prompt("START.md", "begin")
        .env("RAYMOND_TRUST", "false")
        .rule(when("begin").times(1).exit(1))
        .rule(always().reply("<goto>ADDED.sh</goto>"));
    test.run(&["START.md", "--max-restarts", "0"]).code(1);
    let test = test.file("ADDED.sh", b"#!/bin/sh\ntouch ran\necho '<result>ran</result>'\n");
    let told = "start, resume or retry it with --trust";
    test.raymond(&["retry", "t", "--prompts"]).code(1).stderr_has(told);
    test.raymond(&["retry", "t"]).code(1).stderr_has(told);
    assert!(!test.flow().join("ran").exists());
    test.raymond(&["retry", "t", "--prompts", "--trust"]).ok().stdout_has("ran");
}

#[test]
fn running_run_takes_up_a_retry() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(when("work").times(1).exit(1))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(always().hold_before("go").reply("<result>led</result>"));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0"]);
    live.wait_event("agent_failed", 1);
    for files in ["--prompts", "--migrate"] {
        test.raymond(&["retry", "t", files]).code(64).stderr_has("t is running, with its files");
    }
    test.raymond(&["retry", "t"]).ok().stdout_has("t is running, and retries them");
    live.wait_event("agents_retried", 1);
    test.release("go");
    live.wait().ok().ended("main.1", "worked").ended("main", "led");
}

#[test]
fn retried_run_that_is_killed_resumes_without_a_second_retry() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").times(1).exit(1))
        .rule(when("start").hold_before("go").reply("<result>ok</result>"));
    test.run(&["START.md", "--max-restarts", "0"]).code(1);
    let mut live = test.start(&["retry", "t"]);
    live.wait_calls(2);
    live.kill9();
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!((test.calls().len(), test.events("agents_retried").len()), (2, 1));
    test.raymond(&["retry", "t"]).code(64).stderr_has("no agent of the run has failed");
}

#[test]
fn two_failed_of_a_hundred_and_two_cost_two_turns() {
    let items: Vec<String> = (1..=101).map(|item| format!("\"{item}.\"")).collect();
    let fork =
        format!("<fork next=\"GATHER.md\" each='[{}]' as=\"item\">W.md</fork>", items.join(", "));
    let test = Test::new()
        .prompt("START.md", "distribute")
        .prompt("GATHER.md", "---\njoin: all\non_failure: keep\n---\ngather")
        .prompt("W.md", "work on {{item}}")
        .rule(when("distribute").reply(&fork))
        .rule(when("work on 7.").times(1).exit(1))
        .rule(when("work on 70.").times(1).exit(1))
        .rule(when("work on").cost(0.01).reply("<result>done</result>"))
        .rule(always().reply("<result>gathered</result>"));
    test.run(&["START.md", "--max-restarts", "0", "--stagger", "0s"]).ok();
    assert_eq!((test.calls().len(), test.status()["total_cost_usd"].as_f64()), (103, Some(0.99)));
    test.raymond(&["retry", "t"]).ok();
    assert_eq!((test.calls().len(), test.status()["total_cost_usd"].as_f64()), (105, Some(1.01)));
}
