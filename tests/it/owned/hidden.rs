//! A process that a tool starts in a session of its own and with an empty environment is owned, too: by the
//! control group of its turn's process, or because raymond adopts orphans.

use std::path::Path;

use rustix::process::Signal;

use super::one;
use crate::support::{FakeRule, Test, alive, always, kill, wait_until, when};

/// Runs a check with control groups, where the system has them, and without.
fn with_and_without_cgroups(test: impl Fn() -> Test, check: impl Fn(&Test)) {
    check(&test());
    check(&test().env("RAYMOND_NO_CGROUPS", "1"));
}

fn assert_gone(test: &Test) {
    let hidden = test.helpers();
    assert!(!hidden.is_empty(), "something was put aside");
    wait_until("what was put aside is gone", || !hidden.iter().any(|&pid| alive(pid)));
    test.assert_no_survivors();
}

fn hiding() -> FakeRule {
    when("start").tool("Bash").hide()
}

#[test]
fn hidden_helper_does_not_outlive_the_run() {
    with_and_without_cgroups(
        || one(hiding().reply("<result>well</result>")),
        |test| {
            test.run(&["START.md"]).ok().ended("main", "well");
            assert_gone(test);
        },
    );
}

#[test]
fn hidden_helper_does_not_outlive_an_interrupted_run() {
    with_and_without_cgroups(
        || one(hiding().hang().once()),
        |test| {
            let mut live = test.spawn(&["START.md", "--shutdown", "100ms"]);
            live.wait_for("what is put aside", |test| test.helpers().len() == 1);
            live.interrupt();
            live.wait().code(130);
            assert_gone(test);
        },
    );
}

#[test]
fn hidden_helper_of_an_ended_agent_is_ended_while_others_run() {
    with_and_without_cgroups(
        || {
            Test::new()
                .prompt("START.md", "start")
                .prompt("NEXT.md", "next")
                .prompt("W.md", "work")
                .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
                .rule(when("work").tool("Bash").hide().reply("<result>worked</result>"))
                .rule(when("next").hold_before("go").reply("<result>well</result>"))
        },
        |test| {
            // Without control groups an older turn could have started it, so it stays until that turn is
            // over.
            let is_exact = !is_without_groups(test);
            let mut live = test.spawn(&["START.md", "--no-warm"]);
            live.wait_for("both", |test| test.calls().len() == 3 && test.helpers().len() == 1);
            live.wait_event("step_finished", 2);
            if is_exact {
                let hidden = test.helpers()[0];
                wait_until("what was put aside is gone", || !alive(hidden));
            }
            test.release("go");
            live.wait().ok().ended("main", "well").ended("main.1", "worked");
            assert_gone(test);
        },
    );
}

/// Returns whether a run here has no control groups, because the test says so or the machine does not allow
/// them.
fn is_without_groups(test: &Test) -> bool {
    let probe = Test::new()
        .prompt("START.md", "x")
        .rule(always().hold_before("go").reply("<result>x</result>"));
    let mut live = probe.spawn(&["START.md"]);
    live.wait_calls(1);
    let is_noted = probe.run_dir().join("steps/cgroup").exists();
    probe.release("go");
    live.wait().ok();
    !is_noted || test.has_env("RAYMOND_NO_CGROUPS")
}

#[test]
fn control_group_left_by_a_killed_raymond_is_cleared_on_resume() {
    let test = one(hiding().hold_before("go").reply("<result>well</result>"));
    if is_without_groups(&test) {
        return;
    }
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("what is put aside", |test| test.helpers().len() == 1);
    live.kill9();
    let (hidden, turn) = (test.helpers()[0], test.calls()[0].pid);
    assert!(alive(hidden) && alive(turn), "they go on without raymond");
    let note = std::fs::read_to_string(test.run_dir().join("steps/cgroup")).expect("the note");
    let abandoned = Path::new(&note).with_file_name(format!("raymond-abandoned-{turn}"));
    std::fs::create_dir_all(abandoned.join("main-1-0")).expect("a group beside it");
    test.release("go");
    test.resume(&[]).ok().ended("main", "well");
    assert_eq!(test.calls().len(), 1, "adopted");
    assert_gone(&test);
    assert!(!Path::new(&note).exists(), "nor is a group left");

    let dead = one(hiding().hang().once());
    let mut live = dead.spawn(&["START.md"]);
    live.wait_for("what is put aside", |test| test.helpers().len() == 1);
    live.kill9();
    kill(dead.calls()[0].pid, Signal::KILL);
    dead.resume(&[]).ok().ended("main", "well");
    assert_gone(&dead);
    assert!(!abandoned.exists(), "the next run takes away what was abandoned");
}

#[test]
fn background_run_outlives_the_turn_that_started_it() {
    let raymond = env!("CARGO_BIN_EXE_raymond");
    let script = format!("{raymond} start OTHER.md --id other");
    with_and_without_cgroups(
        || {
            Test::new()
                .prompt("START.md", "start")
                .prompt("OTHER.md", "other")
                .rule(when("start").tool("Bash").runs(&script).reply("<result>well</result>"))
                .rule(when("other").hold_before("go").reply("<result>other</result>"))
        },
        |test| {
            test.run(&["START.md"]).ok().ended("main", "well");
            wait_until("the other's turn", || test.calls_with("other").len() == 1);
            assert!(alive(test.calls_with("other")[0].pid), "it goes on");
            test.release("go");
            wait_until("its end", || {
                test.raymond(&["status", "other", "--json"]).ok().json()["status"] == "completed"
            });
            test.assert_no_survivors();
        },
    );
}
