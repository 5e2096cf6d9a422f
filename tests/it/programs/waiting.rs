//! A run that waits: it stays up or exits, costs nothing, and resumes with the program it began with.

use super::{ask, program, route, signal};
use crate::support::{always, when};

const WAITS: &str = "(state s (wait (signal go :key @workflow-id)) (terminal :result gone))";

#[test]
fn waiting_run_stays_up_without_a_claude_code_process() {
    let asked = ask("a", "work", "r");
    let test =
        program(&format!("(state s {asked} (wait (signal go)))")).rule(always().reply("done"));
    let mut live = test.spawn(&["p.lisp", "--warm-for", "1ms"]);
    live.wait_for("it waits for a signal", |test| {
        route(test, "main").last().is_some_and(|last| last.contains("(signal go)"))
    });
    live.wait_for("no Claude Code lives", |test| {
        test.calls().iter().all(|call| !crate::support::alive(call.pid))
    });
    test.raymond(&["status", "t"]).ok().stdout_has("(signal go)");
    signal(&test, "go", "", "");
    live.wait().ok();
}

#[test]
fn on_wait_exit_ends_the_run_and_names_the_awaited_signal() {
    let test = program(WAITS);
    let ended = test.run(&["p.lisp", "--on-wait", "exit"]);
    ended.code(2).stderr_has("(signal go :key t)").stderr_has("raymond resume t");
    test.resume(&["--on-wait", "exit"]).code(2);
    assert_eq!(route(&test, "main").len(), 1);
    test.raymond(&["status", "t"]).ok().stdout_lacks("since it stopped");
    signal(&test, "go", "t", "");
    test.raymond(&["status", "t"]).ok().stdout_has("go t is asserted since it stopped\n");
    test.resume(&[]).ok().ended("main", "gone");
}

#[test]
fn waiting_run_resumes_after_an_interrupt_and_a_stop() {
    let test = program(WAITS);
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("it waits", |test| route(test, "main").len() == 1);
    live.interrupt();
    live.wait().code(130);
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    test.raymond(&["stop", "t"]).ok();
    live.wait().code(130);
    signal(&test, "go", "t", "");
    test.resume(&[]).ok().ended("main", "gone");
    assert_eq!(route(&test, "main").len(), 2);
}

#[test]
fn resumed_run_keeps_the_program_text_it_started_with() {
    let test = program(WAITS);
    test.run(&["p.lisp", "--on-wait", "exit"]).code(2);
    let test = test.file("p.lisp", b"(workflow w (state s (terminal :result other)))");
    test.resume(&["--on-wait", "exit"]).code(2);
    std::fs::remove_file(test.flow().join("p.lisp")).expect("removed");
    signal(&test, "go", "t", "");
    test.resume(&[]).ok().ended("main", "gone");
}

#[test]
fn interrupted_role_is_asked_again_and_answers_once() {
    let asked = ask("a", "work", "r");
    let test = program(&format!("(state s {asked} (terminal :result (response r)))"))
        .rule(when("work").hold_before("go").reply("done"));
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_calls(1);
    live.interrupt_until_it_ends().code(130);
    test.release("go");
    test.resume(&[]).ok().ended("main", "done");
    assert_eq!(test.events("role_requested").len(), 1);
    assert_eq!(test.events("role_responded").len(), 1);
}
