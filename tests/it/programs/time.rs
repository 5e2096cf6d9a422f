//! Timeouts and points in time.

use rustix::process::Signal;

use super::{program, route};
use crate::support::{always, when};

#[test]
fn wait_that_times_out_continues_at_the_on_timeout_state() {
    let test = program(
        "(state s (wait (signal never) :timeout \"200ms\" :on-timeout late) (terminal))
         (state late (terminal :result late))",
    );
    test.run(&["p.lisp"]).ok().ended("main", "late");
    assert_eq!(route(&test, "main"), ["s waiting (signal never)", "late completed"]);
}

#[test]
fn timeout_without_on_timeout_state_fails() {
    let test = program("(state s (wait (signal never :key k) :timeout \"100ms\"))");
    test.run(&["p.lisp"]).code(1).stdout_has(
        "p.lisp:2:10: (signal never :key k) did not come in time; say where to continue: :on-timeout STATE",
    );
}

#[test]
fn program_continues_after_await_timeout_of_slow_role() {
    let test = program(
        "(state s (action (send-prompt :agent a :template slow :request-id r))
            (await (transcript-response :request-id r) :timeout \"100ms\" :on-timeout late))
         (state late (action (send-prompt :agent b :template other :request-id o))
            (await (transcript-response :request-id o)) (terminal :result (response o)))",
    )
    .rule(when("slow").hold_before("go").reply("at last"))
    .rule(always().reply("quick"));
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("the program has ended", |test| {
        route(test, "main").last().is_some_and(|last| last == "late completed")
    });
    test.release("go");
    live.wait().ok().ended("main", "quick").ended("main.1", "answered 1 request as a");
}

#[test]
fn wait_keeps_its_deadline_while_raymond_is_down() {
    let test = program(
        "(state s (wait (after \"700ms\")) (wait (at \"2020-02-02T00:00:00Z\")) (wait (signal x) :timeout \"1ms\" :on-timeout end))
         (state end (terminal :result due))",
    );
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("it waits", |test| route(test, "main").len() == 1);
    live.signal(Signal::KILL);
    assert!(live.wait().killed());
    let at = test.events("program_advanced")[0]["position"]["wait"]["until"].clone();
    test.resume(&[]).ok().ended("main", "due");
    let after = test.events("program_advanced");
    assert_eq!(after[0]["position"]["wait"]["until"], at);
}
