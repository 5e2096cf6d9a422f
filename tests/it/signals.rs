//! Interrupts: running turns have their grace, the state is saved, and no process is left behind.

mod hangup;

use rustix::process::Signal;

use crate::support::{Test, always, held, when};

fn never_ending() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .rule(always().once().hang().ignore_term().helper())
        .rule(always().reply("<result>ok</result>"))
}

#[test]
fn interrupt_lets_the_running_turn_finish_and_no_other_start() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt();
    live.wait_stderr("interrupt");
    test.release("go");
    live.wait().code(130).stderr_has("raymond resume t");
    assert_eq!(test.prompts(), ["start"]);
    assert_eq!(test.events("step_finished").len(), 1, "the finished turn is kept");
    test.assert_no_survivors();

    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn turn_exceeding_grace_period_is_ended_and_rerun_on_resume() {
    let test = never_ending();
    let mut live = test.spawn(&["START.md", "--shutdown", "100ms"]);
    live.wait_for("the helper", |test| test.helpers().len() == 1);
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();

    test.resume(&[]).ok().ended("main", "ok");
    let calls = test.calls();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0].session, calls[1].session, "the half turn is in no history");
    assert!(calls[1].history.is_empty());
}

#[test]
fn second_interrupt_ends_running_turn_at_once() {
    let test = never_ending();
    let mut live = test.spawn(&["START.md", "--shutdown", "10m"]);
    live.wait_for("the helper", |test| test.helpers().len() == 1);
    live.interrupt_until_it_ends().code(130);
    test.assert_no_survivors();
    test.resume(&[]).ok();
}

#[test]
fn sigterm_acts_like_an_interrupt() {
    let test = never_ending();
    let mut live = test.spawn(&["START.md", "--shutdown", "100ms"]);
    live.wait_for("the helper", |test| test.helpers().len() == 1);
    live.signal(Signal::TERM);
    live.wait().code(130);
    test.assert_no_survivors();
}

#[test]
fn interrupt_of_fifty_workers_leaves_no_process() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work on {{item}}")
        .rule(when("start").times(50).reply(r#"<fork next="START.md" item="x">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("work").times(50).helper().ignore_term().hang())
        .rule(when("work").reply("<result>worked</result>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "60", "--shutdown", "200ms"]);
    live.wait_for("50 workers", |test| test.helpers().len() == 50);
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();

    test.resume(&["--max-procs", "8"]).ok();
    assert_eq!(test.calls_with("work on x").len(), 100);
    test.assert_no_survivors();
}

#[test]
fn five_running_turns_all_finish_after_an_interrupt() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .rule(when("start").times(5).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("work").hold_before("go").reply("<result>worked</result>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "8"]);
    live.wait_for("5 workers", |test| test.calls_with("work").len() == 5);
    live.wait_for("the end of main", |test| {
        test.events("step_finished").iter().any(|step| step["transition"]["tag"] == "result")
    });
    live.interrupt();
    test.release("go");
    // All were running and all finish, so the run may have ended before the signal arrived.
    live.wait().code_in(&[0, 130]);
    test.resume(&[]).ok();
    assert_eq!(test.calls_with("work").len(), 5);
    test.assert_no_survivors();
}
