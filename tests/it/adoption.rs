//! The adoption of turns that a dead raymond left running: they are recognised however the directory is
//! spelled, they have their permits, and no turn runs twice.

use std::os::unix::fs::symlink;

use rustix::process::Signal;

use crate::support::{Test, always, kill, most_at_once, wait_until, when};

fn held() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .rule(when("start").hold_before("go").reply("<result>ok</result>"))
}

#[test]
fn resume_through_differently_spelled_dir_adopts_running_turn() {
    for (first, second) in [("../ray", "../ray"), ("../link", "../link"), ("../link", "../ray")] {
        let test = held();
        std::fs::create_dir(test.dir()).expect("made");
        symlink(test.dir(), test.root().join("link")).expect("linked");
        let mut live = test.spawn(&["START.md", "--dir", first]);
        live.wait_calls(1);
        live.kill9();
        let mut live = test.spawn_resumed(&["--dir", second]);
        live.wait_event("run_resumed", 1);
        test.release("go");
        live.wait().ok().ended("main", "ok");
        assert_eq!(test.prompts(), ["start"], "{first}, then {second}: asked once");
        test.assert_no_survivors();
    }
}

/// Returns a run of five parallel turns whose raymond was killed.
fn killed_amid_five() -> Test {
    let mut test = Test::new().prompt("W.md", "work").prompt("END.md", "end");
    for number in 1..=4 {
        let next = if number == 4 { "END.md".to_owned() } else { format!("S{}.md", number + 1) };
        test = test.prompt(&format!("S{number}.md"), &format!("fork {number}")).rule(
            when(&format!("fork {number}"))
                .reply(&format!("<fork next=\"{next}\">W.md</fork>"))
                .cost(0.01),
        );
    }
    let test = test
        .rule(when("work").hold_before("go").reply("<result>worked</result>"))
        .rule(when("end").hold_before("go").reply("<result>ended</result>"));
    let mut live = test.spawn(&["S1.md", "--max-procs", "5"]);
    live.wait_for("five turns at once", |test| {
        test.calls_with("work").len() == 4 && test.calls_with("end").len() == 1
    });
    live.kill9();
    test
}

#[test]
fn adopted_turns_hold_their_permits() {
    let test = killed_amid_five();
    let mut live = test.spawn_resumed(&["--max-procs", "1"]);
    live.wait_event("run_resumed", 1);
    test.release("go");
    live.wait().ok().ended("main", "ended").ended("main.4", "worked");
    assert_eq!(test.calls().len(), 9, "nothing was asked twice");
    assert!(most_at_once(&test.call_log()) <= 5);
    test.assert_no_survivors();
}

#[test]
fn interrupt_after_resume_lets_adopted_turns_finish() {
    let test = killed_amid_five();
    let mut live = test.spawn_resumed(&["--max-procs", "1"]);
    live.wait_event("run_resumed", 1);
    live.interrupt();
    live.wait_stderr("interrupted");
    test.release("go");
    live.wait().code_in(&[0, 130]);
    test.resume(&[]).ok().ended("main", "ended").ended("main.1", "worked");
    assert_eq!(test.calls().len(), 9, "nothing was asked twice");
    test.assert_no_survivors();
}

#[test]
fn spent_budget_does_not_cancel_adopted_turns() {
    let test = killed_amid_five();
    let spent = test.status()["total_cost_usd"].to_string();
    let mut live = test.spawn_resumed(&["--budget", &spent]);
    live.wait_event("run_resumed", 1);
    test.release("go");
    live.wait().ok().ended("main", "ended").ended("main.1", "worked");
    assert_eq!(test.calls().len(), 9);
}

#[test]
fn fork_depth_is_not_limited_by_file_name_length() {
    let test = Test::new()
        .prompt("DIG.md", "dig")
        .prompt("END.md", "end")
        .rule(when("dig").times(140).reply("<fork next=\"END.md\">DIG.md</fork>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["DIG.md"]).ok();
    assert_eq!(test.status()["finished"].as_array().map(Vec::len), Some(141));
}

#[test]
fn stop_right_after_start_takes_effect() {
    for _ in 0..5 {
        let test = held();
        test.raymond(&["start", "START.md", "--id", "t", "--shutdown", "0s"]).ok();
        test.raymond(&["stop", "t", "--wait"]).ok().stdout_has("has stopped");
        assert_eq!(test.status()["status"], "paused");
        assert_eq!(test.events("command_received").len(), 1);
        test.assert_no_survivors();
    }
}

#[test]
fn background_start_records_no_resume() {
    let test = held();
    test.release("go");
    test.raymond(&["start", "START.md", "--id", "t"]).ok();
    wait_until("its end", || test.status()["status"] == "completed");
    assert_eq!(test.events("run_resumed").len(), 0);
}

#[test]
fn turn_lost_while_raymond_was_down_is_retried_at_no_restart_cost() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    kill(test.calls().remove(0).pid, Signal::KILL);
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    let lost = test.events("turn_failed");
    assert_eq!((lost.len(), lost[0]["cause"].as_str()), (1, Some("lost")));
    assert_eq!(lost[0]["counts"], false, "a turn that was lost is no restart");
}
