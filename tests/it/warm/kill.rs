//! raymond is killed while warm processes work and wait: the working ones are taken over, the waiting ones
//! end, and no turn is asked twice.

use rustix::process::Signal;

use super::{CALL, called, three};
use crate::support::{Test, alive, kill, most_at_once, wait_until, when};

/// Returns a run whose raymond was killed while the second turn of a process was held.
fn killed_in_turn_two() -> Test {
    let test = three().rule(when("next").hold_before("go").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    live.kill9();
    test
}

#[track_caller]
fn assert_each_once(test: &Test) {
    assert_eq!(test.prompts(), ["start", "next", "last"], "each was asked once");
    let calls = test.calls();
    calls[1].assert_continues(&calls[0]);
    calls[2].assert_resumes(&calls[1]);
    assert_eq!(calls[2].history, ["start", "next"]);
    assert_eq!(test.events("turn_failed").len(), 0);
    test.assert_no_survivors();
}

#[test]
fn running_further_turn_is_adopted() {
    let test = killed_in_turn_two();
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert_each_once(&test);
}

#[test]
fn further_turn_that_ended_while_raymond_was_down_is_adopted() {
    let test = killed_in_turn_two();
    test.release("go");
    let pid = test.calls()[1].pid;
    wait_until("its end", || !alive(pid));
    test.resume(&[]).ok().ended("main", "ok");
    assert_each_once(&test);
}

#[test]
fn further_turn_is_adopted_on_resume_with_no_warm() {
    let test = killed_in_turn_two();
    test.release("go");
    test.resume(&["--no-warm"]).ok().ended("main", "ok");
    assert_each_once(&test);
}

#[test]
fn further_turn_survives_two_kills() {
    let test = killed_in_turn_two();
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    live.kill9();
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 2);
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert_each_once(&test);
}

#[test]
fn dead_further_turn_restarts_from_clean_history() {
    let test = killed_in_turn_two();
    kill(test.calls()[1].pid, Signal::KILL);
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    let failed = test.events("turn_failed");
    assert_eq!((failed.len(), failed[0]["cause"].as_str()), (1, Some("lost")));
    let [start, _, again, last] = test.calls().try_into().expect("four turns");
    again.assert_branches(&start);
    assert_eq!(again.history, ["start"]);
    last.assert_continues(&again);
}

#[test]
fn idle_process_ends_with_killed_raymond() {
    let test = called().rule(when("start").reply(CALL));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    live.kill9();
    let waiting = test.calls()[0].pid;
    wait_until("the end of the waiting process", || !alive(waiting));
    assert!(alive(test.calls()[1].pid), "the one at work goes on");
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "sub", "back with found"]);
    test.assert_no_survivors();
}

#[test]
fn idle_process_that_outlives_raymond_is_ended_on_resume() {
    let test = called().rule(when("start").linger().ignore_term().helper().reply(CALL));
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(2);
    live.kill9();
    let waiting = test.calls()[0].pid;
    assert!(alive(waiting) && alive(test.helpers()[0]));
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    assert!(!alive(waiting) && !alive(test.helpers()[0]), "before anything else");
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "sub", "back with found"]);
    test.assert_no_survivors();
}

#[test]
fn four_running_turns_are_adopted_with_max_procs_1() {
    // Four agents, each with a waiting caller and a held callee, are taken over where one process is allowed.
    let mut test = called().rule(when("start").reply(CALL));
    for number in 1..=3 {
        let next = if number == 3 { "START.md".to_owned() } else { format!("F{}.md", number + 1) };
        let fork = format!("<fork next=\"{next}\">START.md</fork>");
        test = test
            .prompt(&format!("F{number}.md"), &format!("fork {number}"))
            .rule(when(&format!("fork {number}")).reply(&fork));
    }
    let mut live = test.spawn(&["F1.md", "--max-procs", "8"]);
    live.wait_for("four callees", |test| test.calls_with("sub").len() == 4);
    live.kill9();
    let mut live = test.spawn_resumed(&["--max-procs", "1"]);
    live.wait_event("run_resumed", 1);
    test.release("go");
    live.wait().ok().ended("main", "ok").ended("main.1", "ok").ended("main.3", "ok");
    for part in ["start", "sub", "back with found"] {
        assert_eq!(test.calls_with(part).len(), 4, "{part} was asked once by each");
    }
    assert!(most_at_once(&test.call_log()) <= 8);
    test.assert_no_survivors();
}
