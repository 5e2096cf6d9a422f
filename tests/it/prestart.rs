//! `--prestart N`: turns that begin fresh take a process that was started before.

use serde_json::Value;

use crate::support::{FakeCall, RunningRaymond, Test, alive, wait_until, when};

/// Returns a workflow in which START leads to LEAD, which forks a CHILD when `fork` is released; each has a
/// session of its own.
fn family() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("LEAD.md", "lead")
        .prompt("LAST.md", "last")
        .prompt("CHILD.md", "child")
        .rule(when("start").reply("<goto>LEAD.md</goto>").cost(0.01))
        .rule(when("lead").hold_before("fork").reply(r#"<fork next="LAST.md">CHILD.md</fork>"#))
        .rule(when("last").hold_before("go").reply("<result>led</result>"))
        .rule(when("child").reply("<result>worked</result>").cost(0.02))
}

/// Waits until so many processes wait for a turn while LEAD has its own; returns their ids.
#[track_caller]
fn wait_ahead(test: &Test, live: &mut RunningRaymond<'_>, number: usize) -> Vec<i32> {
    let ahead = || {
        let working: Vec<i32> = test.calls().iter().map(|call| call.pid).collect();
        let mut pids = FakeCall::warm_pids(&test.call_log());
        pids.retain(|pid| !working.contains(pid));
        pids
    };
    live.wait_calls(2).wait_for("processes ahead", |_| ahead().len() == number);
    ahead()
}

/// Returns the position of a line in the log of the stand-in.
fn place(log: &[Value], wanted: impl Fn(&Value) -> bool) -> usize {
    log.iter().position(wanted).expect("it is in the log")
}

#[test]
fn forked_agent_takes_a_prestarted_process() {
    let test = family();
    let mut live = test.spawn(&["START.md", "--prestart", "2", "--max-procs", "4"]);
    wait_ahead(&test, &mut live, 2);
    test.release("fork");
    live.wait_for("the child", |test| test.calls_with("child").len() == 1);
    test.release("go");
    live.wait().ok().ended("main", "led").ended("main.1", "worked");
    let child = test.calls_with("child").remove(0);
    child.assert_fresh();
    assert_eq!(child.turn_in_process, 0);
    let log = test.call_log();
    let started = place(&log, |line| line["pid"] == child.pid && line["started"] == true);
    let born = place(&log, |line| line["pid"] != child.pid && line["prompt"] == "last");
    assert!(started < born, "the process was there before the turn");
    let opened: Vec<Value> =
        test.events("step_finished").into_iter().map(|step| step["new_session"].clone()).collect();
    assert!(opened.contains(&Value::from(child.session.clone())), "{opened:?}");
    let total = test.status()["total_cost_usd"].as_f64().expect("a number");
    assert!((total - 0.03).abs() < 1e-9, "{total}");
    test.assert_no_survivors();
}

#[test]
fn turn_with_another_model_does_not_use_prestarted_process() {
    // A change of the model would leave its traces in a fresh conversation.
    let test = family().prompt("CHILD.md", "---\nmodel: opus\n---\nchild");
    let mut live =
        test.spawn(&["START.md", "--prestart", "1", "--model", "haiku", "--max-procs", "4"]);
    let ahead = wait_ahead(&test, &mut live, 1).remove(0);
    test.release("fork");
    test.release("go");
    live.wait().ok();
    let child = test.calls_with("child").remove(0);
    assert_ne!(child.pid, ahead);
    assert_eq!(child.flag("--model"), Some("opus"));
    child.assert_fresh();
    test.assert_no_survivors();
}

#[test]
fn prestarted_processes_count_toward_max_procs_and_are_ended_first() {
    let test = family();
    let mut live = test.spawn(&["START.md", "--prestart", "9", "--max-procs", "3"]);
    wait_ahead(&test, &mut live, 2);
    test.release("fork");
    let mut most = 0;
    let raymond = live.pid();
    live.wait_for("the parent's turn and the child's end", |test| {
        let now = test.survivors().into_iter().filter(|&pid| pid != raymond && alive(pid));
        most = most.max(now.count());
        test.calls_with("last").len() == 1 && test.events("step_finished").len() == 3
    });
    test.release("go");
    live.wait().ok().ended("main", "led");
    assert!(most <= 3, "{most} at once");
    let calls = test.calls();
    let last = test.calls_with("last").remove(0);
    assert_eq!(last.pid, calls[0].pid, "what has a session is kept before what has none");
    test.assert_no_survivors();
}

#[test]
fn dead_prestarted_process_is_replaced_without_a_failure() {
    let test = family();
    let mut live =
        test.spawn(&["START.md", "--prestart", "1", "--max-procs", "4", "--max-restarts", "0"]);
    let ahead = wait_ahead(&test, &mut live, 1).remove(0);
    crate::support::kill(ahead, rustix::process::Signal::KILL);
    wait_until("its death", || !alive(ahead));
    test.release("fork");
    test.release("go");
    live.wait().ok().ended("main.1", "worked");
    test.calls_with("child").remove(0).assert_fresh();
    assert_eq!(test.events("turn_failed").len(), 0);
}

#[test]
fn prestarted_processes_end_with_a_killed_raymond() {
    let test = family();
    let mut live = test.spawn(&["START.md", "--prestart", "2", "--max-procs", "4"]);
    let ahead = wait_ahead(&test, &mut live, 2);
    live.kill9();
    wait_until("their end", || ahead.iter().all(|&pid| !alive(pid)));
    test.release("fork");
    test.release("go");
    test.resume(&[]).ok().ended("main", "led").ended("main.1", "worked");
    assert_eq!(test.calls().len(), 4, "each was asked once");
    test.assert_no_survivors();
}

#[test]
fn call_and_retry_have_their_own_sessions() {
    // A turn that begins with a copy of a history cannot use a process that was started without one.
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("SUB.md", "sub")
        .prompt("BACK.md", "back")
        .prompt("CHILD.md", "child")
        .prompt("LAST.md", "last")
        .rule(when("start").reply(r#"<call return="BACK.md">SUB.md</call>"#))
        .rule(when("sub").reply("<result>found</result>"))
        .rule(when("back").once().exit(3))
        .rule(when("back").reply(r#"<fork next="LAST.md">CHILD.md</fork>"#))
        .rule(when("child").reply("<result>worked</result>"))
        .rule(when("last").reply("<result>led</result>"));
    test.run(&["START.md", "--prestart", "1", "--max-procs", "6"]).ok();
    let session = |part: &str| test.calls_with(part).pop().and_then(|call| call.session);
    let sessions = [session("start"), session("sub"), session("back"), session("child")];
    let different: std::collections::BTreeSet<_> = sessions.iter().collect();
    assert_eq!(different.len(), 4, "{sessions:?}");
    let child = test.calls_with("child").remove(0);
    child.assert_fresh();
    let last = test.calls_with("last").remove(0);
    assert_eq!(last.history, ["start", "back"]);
}
