//! Ownership of processes: whatever a turn does, holds or leaves behind, none of its processes survives.
//!
//! A detached helper is in no process group of the turn and has none of its processes as a parent. Only the
//! mark in its environment tells its turn.

mod hidden;

use rustix::process::Signal;

use crate::support::{FakeRule, Test, alive, always, kill, wait_until, when};

const SHORT: [&str; 3] = ["START.md", "--shutdown", "100ms"];

fn one(rule: FakeRule) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(rule)
        .rule(always().reply("<result>well</result>"))
}

/// Makes a turn and its helpers ignore SIGTERM, hold stdout open and detach.
fn stubborn(rule: FakeRule) -> FakeRule {
    rule.ignore_term().helper().detach()
}

#[test]
fn completed_turn_leaves_no_process() {
    let endings = [
        when("start").linger(),
        when("start").linger().ignore_term(),
        when("start").helper(),
        when("start").detach(),
        when("start").tool("Bash").detach(),
        stubborn(when("start").linger()),
    ];
    for route in endings {
        let test = one(route.reply("<reset>NEXT.md</reset>"));
        test.run(&SHORT).ok().ended("main", "well");
        test.assert_no_survivors();
        assert_eq!(test.prompts(), ["start", "next"]);
    }
}

#[test]
fn last_turn_of_a_run_leaves_no_process() {
    let endings = [
        when("start").linger().ignore_term(),
        when("start").helper(),
        when("start").detach(),
        stubborn(when("start").linger()),
    ];
    for route in endings {
        let test = one(route.reply("<result>well</result>"));
        test.run(&SHORT).ok().ended("main", "well");
        test.assert_no_survivors();
    }
}

#[test]
fn ended_agent_leaves_no_process_while_others_continue() {
    let endings = [
        when("work").linger().ignore_term(),
        when("work").helper(),
        when("work").tool("Bash").detach(),
        stubborn(when("work").tool("Bash").linger()),
    ];
    for route in endings {
        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("NEXT.md", "next")
            .prompt("W.md", "work")
            .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
            .rule(route.reply("<result>worked</result>"))
            .rule(when("next").hold_before("go").reply("<result>well</result>"));
        let mut live = test.spawn(&SHORT);
        live.wait_for("both", |test| test.calls().len() == 3);
        live.wait_event("step_finished", 2);
        let left: Vec<i32> = test.calls_with("work").iter().map(|call| call.pid).collect();
        let left = [left, test.helpers()].concat();
        wait_until("the worker and its helpers are gone", || !left.iter().any(|&pid| alive(pid)));
        test.release("go");
        live.wait().ok().ended("main", "well").ended("main.1", "worked");
        test.assert_no_survivors();
    }
}

#[test]
fn failed_turn_leaves_no_process() {
    let endings = [
        stubborn(when("start")).exit(1),
        stubborn(when("start")).signal(9),
        stubborn(when("start").hang()),
        stubborn(when("start").tool("Bash").hold_tool("never")),
    ];
    for route in endings {
        let test = one(route.once());
        test.run(&[&SHORT[..], &["--timeout", "1s"]].concat()).ok().ended("main", "well");
        assert_eq!(test.helpers().len(), 2);
        test.assert_no_survivors();
    }
}

#[test]
fn run_interrupted_once_or_twice_leaves_no_process() {
    for (shutdown, twice) in [("100ms", false), ("10m", true)] {
        let test = one(stubborn(when("start").hang()).once());
        let mut live = test.spawn(&["START.md", "--shutdown", shutdown]);
        live.wait_for("both helpers", |test| test.helpers().len() == 2);
        let outcome = if twice {
            live.interrupt_until_it_ends()
        } else {
            live.interrupt();
            live.wait()
        };
        outcome.code(130);
        test.assert_no_survivors();
        test.resume(&[]).ok();
    }
}

#[test]
fn run_stopped_by_command_leaves_no_process() {
    let test = one(stubborn(when("start").hang()).once());
    let mut live = test.spawn(&SHORT);
    live.wait_for("both helpers", |test| test.helpers().len() == 2);
    test.raymond(&["stop", "t"]).ok();
    live.wait().code(130);
    test.assert_no_survivors();
}

#[test]
fn helpers_left_by_a_killed_raymond_are_ended_on_resume() {
    // The dead turn is not adopted; its helpers are found by their mark alone.
    let test = one(stubborn(when("start").hang()).once());
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("both helpers", |test| test.helpers().len() == 2);
    live.kill9();
    let turn = test.calls()[0].pid;
    kill(turn, Signal::KILL);
    wait_until("the turn is dead", || !alive(turn));
    assert!(test.helpers().into_iter().all(alive), "nobody was there to end them");
    test.resume(&[]).ok().ended("main", "well");
    test.assert_no_survivors();
}

#[test]
fn other_run_in_same_directory_keeps_its_processes() {
    // Processes of other runs are not touched, because the mark names the run.
    let test = one(when("start").once().helper().detach().hold_before("go").reply("no tag"))
        .prompt("OTHER.md", "other");
    let mut live = test.spawn(&["START.md", "--max-restarts", "0"]);
    live.wait_for("both helpers", |test| test.helpers().len() == 2);
    test.raymond(&["run", "--id", "other", "OTHER.md"]).ok();
    assert!(test.helpers().into_iter().all(alive), "they belong to the run that goes on");
    test.release("go");
    live.wait().code(1);
    test.assert_no_survivors();
}

#[test]
fn second_interrupt_ends_three_hundred_running_turns() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .rule(when("start").times(300).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("work").ignore_term().hang());
    let options = ["START.md", "--max-procs", "300", "--shutdown", "10m"];
    let mut live = test.spawn(&options);
    live.wait_for("300 workers", |test| test.calls_with("work").len() == 300);
    assert!(test.survivors().len() > 300, "they all run");
    live.interrupt();
    live.wait_stderr("interrupted");
    live.interrupt_until_it_ends().code(130);
    test.assert_no_survivors();
    assert_eq!(test.calls_with("work").len(), 300);
}
