//! Supervision end to end: the time after the last restart, permanent agents, and the policy of a child.
//! `nearest` shows which setting counts.

mod nearest;

use crate::support::{Test, always, when};

/// Returns a prompt whose frontmatter has this supervision block.
fn born(supervision: &str, body: &str) -> String {
    format!("---\nsupervision: {{ {supervision} }}\n---\n{body}")
}

#[test]
fn child_keeps_the_policy_of_its_first_state_after_a_goto() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", &born("max_restarts: 1, timeout: 1s", "work"))
        .prompt("X.md", &born("max_restarts: 9, timeout: 1h", "toil"))
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(when("work").reply("<goto>X.md</goto>"))
        .rule(when("toil").hang())
        .rule(when("next").times(2).exit(1))
        .rule(when("next").reply("<result>led</result>"));
    let outcome = test.run(&["START.md", "--max-restarts", "2", "--timeout", "1h"]);
    outcome.code(1).ended("main", "led");
    let message = outcome.failed("main.1");
    outcome.assert(message.starts_with("in X.md"), "the state in the message");
    outcome.says("gave no result within 1s").says("restarted once");
    assert_eq!(test.calls_with("toil").len(), 2);
}

#[test]
fn parked_agent_lets_others_finish_and_continues_on_resume() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", &born("on_exhausted: wait, max_restarts: 1", "work"))
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(when("work").times(2).exit(1).stderr("no disk"))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("next").hold_before("go").reply("<result>led</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("agent_parked", 1);
    live.wait_stderr("main.1  waits for a person");
    test.release("go");
    let outcome = live.wait();
    outcome.code(2).ended("main", "led").stderr_has("no disk").stderr_has("raymond resume t");
    assert_eq!((test.calls().len(), test.status()["status"].as_str()), (4, Some("paused")));
    let status = test.status();
    let waits = &status["agents"][0]["waits_for"];
    assert_eq!(waits["kind"], "person");
    assert!(waits["reason"].as_str().is_some_and(|why| why.contains("no disk")), "{status}");
    assert_eq!(status["agents"][0]["hold"]["person"]["reason"], waits["reason"]);
    test.raymond(&["status", "t"]).ok().stdout_has("wait").stdout_has("no disk");
    test.raymond(&["recover"]).ok().stdout_has("t ");

    test.resume(&[]).ok().ended("main.1", "worked");
    assert_eq!(test.calls_with("work").len(), 3);
    assert_eq!(test.calls_with("next").len(), 1);
}

#[test]
fn resumed_agent_is_parked_again_if_it_still_fails() {
    let test = Test::new().prompt("START.md", "start").rule(always().exit(1));
    let options = ["START.md", "--on-exhausted", "wait", "--max-restarts", "1"];
    test.run(&options).code(2);
    test.resume(&[]).code(2);
    assert_eq!(test.calls().len(), 4, "each time a turn and a restart");
    test.resume(&["--on-exhausted", "fail-agent"]).code(1).failed("main");
}

#[test]
fn agent_parked_at_a_kill_continues_on_resume() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", &born("on_exhausted: wait, max_restarts: 0", "work"))
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(when("work").once().exit(1))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("next").hold_before("go").reply("<result>led</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("agent_parked", 1);
    live.wait_for("next", |test| test.calls_with("next").len() == 1);
    live.kill9();
    test.release("go");
    test.resume(&[]).ok().ended("main.1", "worked").ended("main", "led");
    assert_eq!(test.calls_with("next").len(), 1);
}

#[test]
fn on_exhausted_fail_run_fails_all_other_agents() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", "work")
        .rule(when("start").times(3).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("work").helper().ignore_term().hang())
        .rule(when("next").hold_before("go").exit(1));
    let options = ["START.md", "--on-exhausted", "fail-run", "--max-restarts", "0"];
    let mut live = test.spawn(&[&options[..], &["--max-procs", "8"]].concat());
    live.wait_for("3 workers and main", |test| {
        test.helpers().len() == 3 && test.calls_with("next").len() == 1
    });
    test.release("go");
    let outcome = live.wait();
    outcome.code(1).failed("main");
    for worker in ["main.1", "main.2", "main.3"] {
        let message = outcome.failed(worker);
        outcome.assert(message.contains("because main failed"), "the reason");
    }
    test.assert_no_survivors();
    assert_eq!(test.status()["status"], "failed");

    let why = "$0.00 spent; `raymond show t main` shows why; when the cause is fixed: raymond retry t --prompts";
    outcome.stderr_has(why);
    let again = test.resume(&[]);
    again.code(1).stderr_has("nothing to do: run t ended, 4 of 4 agents failed").stderr_has(why);
    assert_eq!(test.calls_with("work").len(), 3);
}

#[test]
fn permanent_agent_is_restarted_until_restarts_are_used_up() {
    let test = Test::new()
        .prompt("START.md", "start on {{input}}")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.01))
        .rule(when("next").reply("<result>round</result>").cost(0.01));
    let options = ["START.md", "--restart", "permanent", "--max-restarts", "2", "--input", "bees"];
    let outcome = test.run(&options);
    outcome.code(1).failed("main");
    outcome.says("the permanent agent ended again").says("restarted 2 times within 10m");
    assert_eq!(test.prompts(), ["start on bees", "next"].repeat(3));
    let starts = test.calls_with("start");
    let sessions: Vec<_> = starts.iter().map(|call| &call.assert_fresh().session).collect();
    assert!(sessions[0] != sessions[1] && sessions[1] != sessions[2]);
    let total = test.status()["total_cost_usd"].as_f64().unwrap_or_default();
    assert!((total - 0.06).abs() < 1e-9, "spent {total}");
}

#[test]
fn parked_permanent_agent_has_new_restarts_on_resume() {
    let test = Test::new()
        .prompt("START.md", &born("restart: permanent, max_restarts: 1, on_exhausted: wait", "go"))
        .rule(always().reply("<result>round</result>"));
    for rounds in [2, 4] {
        let outcome = if rounds == 2 { test.run(&["START.md"]) } else { test.resume(&[]) };
        outcome.code(2).stderr_has("raymond resume t");
        assert_eq!(test.calls().len(), rounds);
    }
}

#[test]
fn permanent_agent_is_restarted_once_over_three_kills() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().once().reply("<result>first</result>"))
        .rule(always().hold_before("go").reply("<result>second</result>"));
    let options = ["START.md", "--restart", "permanent", "--max-restarts", "1"];
    let mut live = test.spawn(&options);
    for _ in 0..3 {
        live.wait_calls(2);
        live.kill9();
        live = test.spawn_resumed(&[]);
    }
    test.release("go");
    live.wait().code(1).failed("main");
    assert_eq!(test.calls().len(), 2);
    assert_eq!(test.events("step_finished").len(), 2);
}

#[test]
fn clock_set_back_during_a_backoff_does_not_prolong_it() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().once().exit(1))
        .rule(always().reply("<result>ok</result>"));
    let clock = test.root().join("clock");
    let test = test.env("RAYMOND_CLOCK_SHIFT", &clock);
    let mut live = test.spawn(&["START.md", "--backoff", "2s..2s"]);
    live.wait_event("turn_failed", 1);
    std::fs::write(&clock, "-86400000").expect("the clock is set back by a day");
    live.wait().ok().ended("main", "ok");
    let [failed, finished] = ["turn_failed", "step_finished"].map(|name| test.events(name));
    assert!(failed[0]["at"].as_str() < finished[0]["at"].as_str(), "time goes on in the journal");
}
