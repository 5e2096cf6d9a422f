//! The choice of a process for a turn.

use super::{CALL, called, three};
use crate::support::{FakeCall, Test, when};

#[test]
fn chain_of_gotos_runs_in_one_process() {
    let test = three().rule(when("next").reply("<goto>LAST.md</goto>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let calls = test.calls();
    calls[0].assert_fresh();
    calls[1].assert_continues(&calls[0]);
    calls[2].assert_continues(&calls[1]);
    assert_eq!(calls[2].history, ["start", "next"]);
    assert_eq!(FakeCall::warm_pids(&test.call_log()), [calls[0].pid]);
    test.assert_no_survivors();
}

#[test]
fn return_continues_in_process_of_caller_and_callee_has_its_own() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("SUB.md", "sub")
        .prompt("EVAL.md", "eval")
        .prompt("MORE.md", "more {{result}}")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("start").reply(r#"<call return="BACK.md">SUB.md</call>"#))
        .rule(when("sub").reply(r#"<function return="MORE.md">EVAL.md</function>"#))
        .rule(when("eval").reply("<result>8</result>"))
        .rule(when("more 8").reply("<result>9</result>"))
        .rule(when("back with 9").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let [start, sub, eval, more, back] = test.calls().try_into().expect("five turns");
    sub.assert_branches(&start);
    assert_eq!(sub.history, ["start"]);
    eval.assert_fresh();
    more.assert_continues(&sub);
    back.assert_continues(&start);
    assert_eq!(back.history, ["start"], "the callee's turns are not in the caller's session");
    assert_eq!(FakeCall::warm_pids(&test.call_log()), [start.pid, sub.pid, eval.pid]);
}

#[test]
fn reminder_is_sent_to_same_process() {
    let policy = "---\nallowed_transitions:\n  - { tag: result }\n---\nstart";
    let test = Test::new()
        .prompt("START.md", policy)
        .rule(when("start").once().reply("I forgot the tag."))
        .rule(when("").reply("<result>ok</result>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let calls = test.calls();
    assert_eq!(calls.len(), 2);
    calls[1].assert_continues(&calls[0]);
}

#[test]
fn fork_leaves_process_to_parent_and_child_gets_its_own() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("CHILD.md", "child")
        .prompt("GROWN.md", "grown")
        .rule(when("start").reply(r#"<fork next="NEXT.md">CHILD.md</fork>"#))
        .rule(when("next").reply("<result>led</result>"))
        .rule(when("child").reply("<goto>GROWN.md</goto>"))
        .rule(when("grown").reply("<result>worked</result>"));
    test.run(&["START.md", "--max-procs", "2"]).ok();
    let call = |part| test.calls_with(part).remove(0);
    let (start, child) = (call("start"), call("child"));
    call("next").assert_continues(&start);
    child.assert_fresh();
    assert_ne!(child.pid, start.pid);
    call("grown").assert_continues(&child);
}

#[test]
fn reset_starts_fresh_process_and_ends_old_process_at_once() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<reset>NEXT.md</reset>"))
        .rule(when("next").hold_before("go").reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    let old = test.calls()[0].pid;
    live.wait_for("the end of the old process", |_| !crate::support::alive(old));
    test.release("go");
    live.wait().ok();
    let calls = test.calls();
    calls[1].assert_fresh();
    assert_ne!(calls[1].pid, calls[0].pid);
}

#[test]
fn no_warm_starts_a_process_for_each_turn() {
    let test = called().rule(when("start").reply(CALL));
    test.release("go");
    test.run(&["START.md", "--no-warm"]).ok().ended("main", "ok");
    let calls = test.calls();
    calls[1].assert_fresh();
    calls[2].assert_resumes(&calls[0]);
    assert!(calls.iter().all(|call| call.turn_in_process == 0));
    assert_ne!(calls[2].pid, calls[0].pid);
    test.assert_no_survivors();
}

#[test]
fn warm_for_on_resume_overrides_no_warm_of_the_run() {
    let test = three().rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md", "--no-warm", "--shutdown", "1ms"]);
    live.wait_calls(2);
    live.interrupt();
    live.wait().code(130);
    test.release("go");
    test.resume(&["--warm-for", "1m"]).ok();
    let [start, cut, again, last] = test.calls().try_into().expect("four turns");
    assert_ne!(start.pid, cut.pid);
    last.assert_continues(&again);
}

#[test]
fn prompt_larger_than_pipe_buffer_goes_to_same_process() {
    let large = format!("next {}", "x".repeat(700_000));
    let test = three().prompt("NEXT.md", &large).rule(when("next").reply("<goto>LAST.md</goto>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let calls = test.calls();
    calls[1].assert_continues(&calls[0]);
    calls[2].assert_continues(&calls[1]);
    assert_eq!(calls[1].prompt.trim().len(), large.len());
}

#[test]
fn prompt_too_long_for_stream_gets_its_own_process() {
    let huge = format!("next {}", "x".repeat(1_200_000));
    let test = three()
        .prompt("NEXT.md", &huge)
        .rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    let start = test.calls()[0].pid;
    live.wait_for("the end of the first process", |_| !crate::support::alive(start));
    test.release("go");
    live.wait().ok().ended("main", "ok");
    let calls = test.calls();
    calls[1].assert_resumes(&calls[0]);
    calls[2].assert_resumes(&calls[1]);
    assert_eq!(calls[1].prompt.trim().len(), huge.len());
    assert_eq!(calls[2].history.len(), 2);
    assert!(calls[1..].iter().all(|call| call.turn_in_process == 0));
    test.assert_no_survivors();
}
