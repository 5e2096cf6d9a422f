//! The number of warm processes, and the time when they end.

use super::{CALL, called};
use crate::support::{FakeCall, RunningRaymond, Test, alive, when};

/// Returns the number of the stand-in's processes that exist now.
fn running(test: &Test, live: &RunningRaymond<'_>) -> usize {
    test.survivors().into_iter().filter(|&pid| pid != live.pid()).count()
}

/// Waits for the end of a run, and checks that there were never more processes than this.
#[track_caller]
fn assert_never_more(test: &Test, mut live: RunningRaymond<'_>, most: usize) {
    let mut seen = 0;
    let pid = live.pid();
    live.wait_for("its end", |_| {
        let now = test.survivors().into_iter().filter(|&other| other != pid && alive(other));
        seen = seen.max(now.count());
        !alive(pid)
    });
    live.wait().ok();
    assert!(seen <= most, "{seen} processes at once");
}

/// Returns a workflow in which one parent forks so many workers, each of which calls and is called back.
fn burst(workers: u32) -> Test {
    let test = called()
        .prompt("LEAD.md", "lead")
        .rule(when("lead").times(workers).reply(r#"<fork next="LEAD.md">START.md</fork>"#))
        .rule(when("lead").reply("<result>led</result>"))
        .rule(when("start").reply(CALL));
    test.release("go");
    test
}

#[test]
fn processes_never_exceed_max_procs() {
    for most in [1, 2, 3] {
        let test = burst(8);
        let live = test.spawn(&["LEAD.md", "--max-procs", &most.to_string()]);
        assert_never_more(&test, live, most);
        for part in ["start", "sub", "back with found"] {
            assert_eq!(test.calls_with(part).len(), 8, "{part}");
        }
        assert_eq!(test.events("turn_failed").len(), 0);
        test.assert_no_survivors();
    }
}

#[test]
fn lingering_process_counts_toward_max_procs_until_it_ends() {
    let test = called().rule(when("start").linger().reply(CALL));
    test.release("go");
    let live = test.spawn(&["START.md", "--max-procs", "1"]);
    assert_never_more(&test, live, 1);
    let calls = test.calls();
    calls[2].assert_resumes(&calls[0]);
}

#[test]
fn longest_idle_process_is_ended_to_make_room() {
    let test = Test::new()
        .prompt("S1.md", "step 1")
        .prompt("S2.md", "step 2")
        .prompt("S3.md", "step 3")
        .prompt("B2.md", "back 2")
        .prompt("B1.md", "back 1")
        .rule(when("step 1").reply(r#"<function return="B1.md">S2.md</function>"#))
        .rule(when("step 2").reply(r#"<function return="B2.md">S3.md</function>"#))
        .rule(when("step 3").reply("<result>3</result>"))
        .rule(when("back 2").reply("<result>2</result>"))
        .rule(when("back 1").reply("<result>1</result>"));
    test.run(&["S1.md", "--max-procs", "2"]).ok().ended("main", "1");
    let [one, two, three, back_two, back_one] = test.calls().try_into().expect("five turns");
    back_two.assert_continues(&two);
    back_one.assert_resumes(&one);
    assert_ne!(back_one.pid, one.pid, "the first one had to go");
    assert_eq!(FakeCall::warm_pids(&test.call_log()), [one.pid, two.pid, three.pid, back_one.pid]);
}

#[test]
fn process_idle_longer_than_warm_for_is_ended() {
    let test = called().rule(when("start").reply(CALL));
    let mut live = test.spawn(&["START.md", "--warm-for", "50ms"]);
    live.wait_calls(2);
    let waiting = test.calls()[0].pid;
    live.wait_for("the end of the waiting process", |_| !alive(waiting));
    assert_eq!(running(&test, &live), 1, "the turn at work goes on");
    test.release("go");
    live.wait().ok().ended("main", "ok");
    let calls = test.calls();
    calls[2].assert_resumes(&calls[0]);
    assert_eq!(test.events("turn_failed").len(), 0);
}

#[test]
fn working_process_is_not_ended_by_warm_for() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .prompt("CHILD.md", "child")
        .rule(when("start").reply(r#"<fork next="NEXT.md">CHILD.md</fork>"#))
        .rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>"))
        .rule(when("child").reply(r#"<function return="LAST.md">NEXT.md</function>"#))
        .rule(when("last").reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md", "--warm-for", "100ms", "--max-procs", "4"]);
    live.wait_for("both held", |test| test.calls_with("next").len() == 2);
    let child = test.calls_with("child").remove(0).pid;
    live.wait_for("the end of the one that waits", |_| !alive(child));
    assert_eq!(running(&test, &live), 2);
    test.release("go");
    live.wait().ok().ended("main", "ok").ended("main.1", "ok");
}

#[test]
fn process_of_an_ended_agent_ends_at_once() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("CHILD.md", "child")
        .rule(when("start").reply(r#"<fork next="NEXT.md">CHILD.md</fork>"#))
        .rule(when("next").hold_before("go").reply("<result>led</result>"))
        .rule(when("child").reply("<result>worked</result>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "4"]);
    live.wait_event("step_finished", 2).wait_for("the parent's turn", |test| {
        test.calls_with("next").len() == 1 && test.calls_with("child").len() == 1
    });
    let child = test.calls_with("child").remove(0).pid;
    live.wait_for("the end of the child's process", |_| !alive(child));
    let by_itself = |line: &serde_json::Value| line["pid"] == child && line["ended"] == true;
    assert!(test.call_log().iter().any(by_itself), "it was let go, not killed");
    test.release("go");
    live.wait().ok();
}
