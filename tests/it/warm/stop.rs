//! A run with warm processes is interrupted or stopped: no process is left, and no work is lost.

use super::{CALL, called, three};
use crate::support::{Test, when};

#[test]
fn interrupt_ends_idle_processes_and_lets_running_turns_finish() {
    let test = called().rule(when("start").reply(CALL));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    let waiting = test.calls()[0].pid;
    live.interrupt();
    live.wait_for("the end of the waiting process", |_| !crate::support::alive(waiting));
    test.release("go");
    live.wait().code(130);
    assert_eq!(test.events("step_finished").len(), 2, "the turn at work is kept");
    test.assert_no_survivors();
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "sub", "back with found"]);
}

#[test]
fn idle_process_that_ignores_sigterm_is_ended_by_interrupts() {
    let test = called().rule(when("start").linger().ignore_term().helper().reply(CALL));
    let mut live = test.spawn(&["START.md", "--shutdown", "50ms"]);
    live.wait_calls(2);
    live.interrupt_until_it_ends().code(130);
    test.assert_no_survivors();
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
}

#[test]
fn interrupt_ends_fifty_idle_and_working_processes() {
    let test = called()
        .prompt("LEAD.md", "lead")
        .rule(when("lead").times(25).reply(r#"<fork next="LEAD.md">START.md</fork>"#))
        .rule(when("lead").reply("<result>led</result>"))
        .rule(when("start").reply(CALL));
    let mut live = test.spawn(&["LEAD.md", "--max-procs", "60", "--shutdown", "50ms"]);
    live.wait_for("25 callees", |test| test.calls_with("sub").len() == 25);
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();
    test.release("go");
    test.resume(&["--max-procs", "8"]).ok();
    assert_eq!(test.calls_with("start").len(), 25);
    test.assert_no_survivors();
}

#[test]
fn further_turn_exceeding_grace_period_is_asked_again_on_resume() {
    let test = three()
        .rule(when("next").once().hang().ignore_term().helper())
        .rule(when("next").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md", "--shutdown", "50ms"]);
    live.wait_for("the helper", |test| test.helpers().len() == 1);
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();
    test.resume(&[]).ok().ended("main", "ok");
    let [start, _, again, last] = test.calls().try_into().expect("four turns");
    again.assert_branches(&start);
    assert_eq!(again.history, ["start"]);
    last.assert_continues(&again);
}

#[test]
fn stop_lets_running_further_turn_finish() {
    let test = three().rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    test.raymond(&["stop", "t"]).ok();
    live.wait_event("command_received", 1);
    test.release("go");
    live.wait();
    assert_eq!(test.status()["status"], "paused");
    test.assert_no_survivors();
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next", "last"]);
}

#[test]
fn interrupt_reaches_an_agent_that_waits_for_a_slot() {
    // A held turn has the only slot. The agent that waits for the slot must end, too.
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("CHILD.md", "child")
        .rule(when("start").linger().ignore_term().reply(r#"<fork next="NEXT.md">CHILD.md</fork>"#))
        .rule(when("next").hold_before("go").reply("<result>led</result>"))
        .rule(when("child").hold_before("go").reply("<result>worked</result>"));
    let arguments = ["START.md", "--max-procs", "2", "--shutdown", "50ms", "--idle-timeout", "1m"];
    let mut live = test.spawn(&arguments);
    live.wait_for("the child", |test| test.calls_with("child").len() == 1);
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();
    test.release("go");
    test.resume(&[]).ok().ended("main", "led").ended("main.1", "worked");
    test.assert_no_survivors();
}

#[test]
fn interrupt_ends_the_writing_of_a_large_prompt() {
    // A process that reads nothing blocks the writing of a large prompt. The run is stopped all the same.
    use rustix::process::Signal;

    let test = called()
        .prompt("BACK.md", &format!("back with {{{{result}}}} {}", "x".repeat(300_000)))
        .rule(when("start").reply(CALL));
    let mut live = test.spawn(&["START.md", "--shutdown", "50ms"]);
    live.wait_calls(2);
    crate::support::kill(test.calls()[0].pid, Signal::STOP);
    test.release("go");
    live.wait_file(&test.run_dir().join("steps/main-3-0.turn"));
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.calls_with("back with").len(), 1);
}
