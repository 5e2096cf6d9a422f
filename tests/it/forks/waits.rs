//! An agent that waits for others is only data: it outlives raymond, and has no process.

use super::{answering, each, joins, place, play, spawn, wait_end};
use crate::support::{Test, alive, wait_until, when};

/// Returns a workflow with two workers, one of which is held at `go`.
fn held() -> Test {
    place("join: all")
        .rule(when("start").reply(&each("[\"a\", \"b\"]")))
        .rule(when("work on a").reply("<result>did a</result>"))
        .rule(when("work on b").hold_before("go").reply("<result>did b</result>"))
        .rule(when("merge").reply("<result>merged</result>"))
}

/// Checks that each turn and the join happened once.
#[track_caller]
fn once(test: &Test) {
    assert_eq!(joins(test), ["main met 2 2 0"]);
    assert_eq!(test.events("join_begun").len(), 1);
    for prompt in ["start", "work on a", "work on b", "merge"] {
        assert_eq!(test.calls_with(prompt).len(), 1, "{prompt}");
    }
    test.assert_no_survivors();
}

#[test]
fn waiting_agent_keeps_no_process() {
    let test = held();
    let mut live = spawn(&test, &[]);
    live.wait_event("join_begun", 1).wait_calls(3);
    let started = test.calls_with("start")[0].pid;
    let held = test.calls_with("work on b")[0].pid;
    wait_until("the process of who waits is gone", || !alive(started));
    assert!(alive(held));
    test.release("go");
    live.wait().ok().ended("main", "merged");
    once(&test);
    test.calls_with("merge")[0].assert_resumes(&test.calls_with("start")[0]);
}

#[test]
fn join_completes_after_kill() {
    for released in [false, true] {
        let test = held();
        let mut live = spawn(&test, &[]);
        live.wait_event("join_begun", 1).wait_calls(3);
        wait_end(&mut live, "main.1");
        live.kill9();
        if released {
            test.release("go");
            let pid = test.calls_with("work on b")[0].pid;
            wait_until("the turn has ended", || test.is_done(pid) || !alive(pid));
        }
        let mut live = test.spawn_resumed(&[]);
        live.wait_event("run_resumed", 1);
        test.release("go");
        live.wait().ok().ended("main", "merged").ended("main.2", "did b");
        once(&test);
    }
}

#[test]
fn join_completes_after_stop() {
    let test = held();
    let mut live = spawn(&test, &[]);
    live.wait_event("join_begun", 1).wait_calls(3);
    wait_end(&mut live, "main.1");
    test.raymond(&["stop", "t"]).ok();
    live.wait_event("command_received", 1);
    test.release("go");
    live.wait().code(130);
    assert!(joins(&test).is_empty(), "nobody goes on while it comes to its end");
    test.resume(&[]).ok().ended("main", "merged");
    once(&test);
}

#[test]
fn join_completes_after_interrupt_that_cancels_turns() {
    let test = held();
    let mut live = spawn(&test, &[]);
    live.wait_event("join_begun", 1).wait_calls(3);
    wait_end(&mut live, "main.1");
    live.interrupt_until_it_ends().code(130);
    test.release("go");
    test.resume(&[]).ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 2 2 0"]);
    assert_eq!(test.calls_with("work on b").len(), 2, "it was ended, and asked again");
    assert_eq!(test.events("join_begun").len(), 1);
}

#[test]
fn run_pauses_when_joined_workers_have_open_questions() {
    let others = serde_json::json!({
        "WORKER.md": [r#"<ask next="ANSWER.md">Which for {{item}}?</ask>"#],
        "ANSWER.md": ["<result>{{answer}}</result>"],
    });
    let test = answering(place("join: all"), &each("[\"a\", \"b\"]"), &others)
        .prompt("ANSWER.md", "answer {{answer}}");
    play(&test, &[]).code(2).stderr_has("2 questions wait").stderr_has("Which for a?");
    assert_eq!(test.status()["status"], "paused");
    test.resume(&["--answer", "ANSWER.md=this"]).code(2);
    assert!(joins(&test).is_empty());
    test.resume(&["--answer", "ANSWER.md=this", "--answer", "ANSWER.md=that"]).ok();
    assert_eq!(joins(&test), ["main met 2 2 0"]);
    assert_eq!(test.events("join_begun").len(), 1);
}

#[test]
fn run_pauses_when_joined_workers_are_parked() {
    let test = place("join: all")
        .prompt(
            "WORKER.md",
            "---\nsupervision: { on_exhausted: wait, max_restarts: 0 }\n---\nwork on {{item}}",
        )
        .rule(when("start").reply(&each("[\"a\", \"b\"]")))
        .rule(when("work on a").once().exit(1).stderr("no disk"))
        .rule(when("work").reply("<result>did it</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    spawn(&test, &[]).wait().code(2).ended("main.2", "did it").stderr_has("no disk");
    assert!(joins(&test).is_empty());
    test.resume(&[]).ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main met 2 2 0"]);
}
