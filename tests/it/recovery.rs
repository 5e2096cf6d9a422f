//! Runs that are killed and resumed: acknowledged records are kept, paid turns are not paid again, and damage
//! is reported.

use std::fs;
use std::io::Write;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Test, alive, always, kill, wait_until, when};

/// Returns a workflow of START, held at `go`, then NEXT, then the end.
fn held() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>").cost(0.05))
        .rule(always().reply("<result>ok</result>").cost(0.01))
}

/// Returns a workflow of START and then NEXT, held at `go`, so that a killed run has a finished step in its
/// journal.
fn held_later() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").once().hold_before("go").reply("<goto>LAST.md</goto>"))
        .rule(when("next").reply("<goto>LAST.md</goto>"))
        .rule(always().reply("<result>ok</result>"))
}

/// Kills raymond at its n-th call, and then that call, unless the turn is to continue.
fn kill_at(test: &Test, calls: usize, turn_too: bool) {
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(calls);
    live.kill9();
    let last = test.calls().pop().expect("it was called");
    assert!(alive(last.pid), "a turn outlives raymond");
    if turn_too {
        kill(last.pid, Signal::KILL);
        wait_until("the turn is dead", || !alive(last.pid));
    }
}

#[test]
fn turn_that_finished_while_raymond_was_down_is_adopted() {
    let test = held();
    kill_at(&test, 1, false);
    let turn = test.calls().remove(0).pid;
    test.release("go");
    wait_until("the turn is done", || test.is_done(turn));
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"], "what was paid for is not paid for again");
    let calls = test.calls();
    calls[1].assert_resumes(&calls[0]);
    let total = test.status()["total_cost_usd"].as_f64().unwrap_or_default();
    assert!((total - 0.06).abs() < 1e-9, "the adopted turn's cost counts: {total}");
}

#[test]
fn running_turn_is_adopted() {
    let test = held();
    kill_at(&test, 1, false);
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
    test.assert_no_survivors();
}

#[test]
fn written_result_counts_while_its_process_lingers() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_after("go").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    // The runtime dies when it has read the result, before it does anything about it.
    let test = test.env("RAYMOND_FAILPOINT", "rest.before:1");
    assert!(test.run(&["START.md"]).killed());
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    test.resume(&["--shutdown", "100ms"]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
    test.assert_no_survivors();
}

#[test]
fn process_of_a_recorded_turn_ends_by_itself_after_a_kill() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_after("go").reply("<reset>NEXT.md</reset>"))
        .rule(always().reply("<result>ok</result>"));
    // The runtime dies when it has recorded the turn, before it does anything about it.
    let test = test.env("RAYMOND_FAILPOINT", "effect.before:2");
    assert!(test.run(&["START.md"]).killed());
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    assert!(test.journal().iter().any(|record| record["event"] == "step_finished"));
    let mut live = test.spawn_resumed(&[]);
    let pid = live.pid().to_string();
    live.wait_for("the lock", |test| {
        fs::read_to_string(test.run_dir().join("lock")).is_ok_and(|holder| holder == pid)
    });
    assert!(alive(test.calls()[0].pid), "it may run its hooks");
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert!(test.fake().join("go.seen").exists(), "it was not killed");
}

#[test]
fn adopted_turn_can_be_interrupted() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().once().hang().ignore_term().helper())
        .rule(always().reply("<result>ok</result>"));
    kill_at(&test, 1, false);
    wait_until("the helper", || test.helpers().len() == 1);
    let mut live = test.spawn_resumed(&["--shutdown", "100ms"]);
    live.wait_event("run_resumed", 1);
    live.interrupt();
    live.wait().code(130);
    test.assert_no_survivors();
    test.resume(&[]).ok();
}

#[test]
fn dead_first_turn_is_run_again_in_a_fresh_session() {
    let test = held();
    kill_at(&test, 1, true);
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "start", "next"]);
    calls[1].assert_fresh();
    assert_ne!(calls[0].session, calls[1].session);
    calls[2].assert_resumes(&calls[1]);
}

#[test]
fn dead_later_turn_is_run_again_on_history_before_it() {
    let test = held_later();
    kill_at(&test, 2, true);
    test.resume(&[]).ok();
    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "next", "next", "last"]);
    calls[2].assert_branches(&calls[0]);
    assert_eq!(calls[2].history, ["start"], "the killed turn is not in it");
    assert_eq!(calls[3].history, ["start", "next"]);
}

#[test]
fn turn_with_torn_result_is_run_again() {
    let test = held();
    kill_at(&test, 1, true);
    let transcript = test.run_dir().join("steps/main-1-0.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(transcript).expect("a transcript");
    file.write_all(b"{\"type\":\"result\",\"subty").expect("it can be written");
    test.release("go");
    test.resume(&[]).ok();
    assert_eq!(test.prompts(), ["start", "start", "next"]);
}

#[test]
fn run_killed_at_every_turn_repeats_no_turn() {
    const STATES: usize = 8;
    let mut test = Test::new();
    for state in 1..=STATES {
        let reply = if state == STATES {
            "<result>through</result>".to_owned()
        } else {
            format!("<goto>S{}.md</goto>", state + 1)
        };
        test = test
            .prompt(&format!("S{state}.md"), &format!("state {state}"))
            .rule(when(&format!("state {state}")).reply(&reply));
    }
    let mut live = test.spawn(&["S1.md"]);
    for calls in 1..STATES {
        live.wait_calls(calls);
        live.kill9();
        live = test.spawn_resumed(&[]);
    }
    live.wait().ok().ended("main", "through");
    let expected: Vec<String> = (1..=STATES).map(|state| format!("state {state}")).collect();
    assert_eq!(test.prompts(), expected);
    test.assert_no_survivors();
}

#[test]
fn fork_variables_survive_a_kill() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work on {{item}}")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md" item="bees">W.md</fork>"#))
        .rule(when("work").once().hold_before("go").reply("<result>worked</result>"))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("next").once().hold_before("go").reply("<result>led</result>"))
        .rule(when("next").reply("<result>led</result>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "1"]);
    live.wait_event("step_finished", 1);
    live.kill9();
    for pid in test.survivors() {
        kill(pid, Signal::KILL);
    }
    test.assert_no_survivors();
    test.release("go");

    test.resume(&[]).ok().ended("main", "led").ended("main.1", "worked");
    assert!(!test.calls_with("work on bees").is_empty());
    assert_eq!(test.calls_with("start").len(), 1);
    let forks = test.events("step_finished");
    let forks = forks.iter().filter(|step| step["transition"]["tag"] == "fork");
    assert_eq!(forks.count(), 1);
}

#[test]
fn call_stack_survives_a_kill() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("CHILD.md", "child")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("start").reply(r#"<call return="BACK.md">CHILD.md</call>"#))
        .rule(when("child").hold_before("go").reply("<result>found</result>"))
        .rule(when("back").reply("<result>ok</result>"));
    kill_at(&test, 2, false);
    test.release("go");
    test.resume(&[]).ok();
    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "child", "back with found"]);
    calls[2].assert_resumes(&calls[0]);
}

#[test]
fn input_and_options_survive_a_kill() {
    let test = Test::new()
        .prompt("START.md", "start {{input}} {{who}}")
        .rule(always().once().hang())
        .rule(always().reply("<result>ok</result>"));
    let options = ["START.md", "--input", "text", "--var", "who=you", "--model", "haiku"];
    let mut live = test.spawn(&options);
    live.wait_calls(1);
    live.kill9();
    kill(test.calls()[0].pid, Signal::KILL);
    test.resume(&[]).ok();
    assert_eq!(test.prompts(), ["start text you", "start text you"]);
    assert_eq!(test.calls()[1].flag("--model"), Some("haiku"));
}

#[test]
fn reminder_turn_that_runs_at_a_kill_is_adopted() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_transitions:\n  - { tag: result }\n---\nstart")
        .rule(always().once().reply("no tag"))
        .rule(always().once().hold_before("go").reply("<result>repaired</result>"));
    kill_at(&test, 2, false);
    test.release("go");
    test.resume(&[]).ok().ended("main", "repaired");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn resume_of_ended_run_starts_no_turn() {
    let test = held();
    test.release("go");
    test.run(&["START.md"]).ok();
    let journal = test.journal().len();
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.calls().len(), 2);
    assert_eq!(test.journal().len(), journal);
}

#[test]
fn torn_last_record_is_cut_off_with_a_warning() {
    let test = held_later();
    kill_at(&test, 2, false);
    let whole = fs::read(test.journal_file()).expect("a journal");
    let torn = [whole.as_slice(), b"{\"seq\":99,\"at\":\"2026-01-"].concat();
    fs::write(test.journal_file(), torn).expect("it is torn");
    test.release("go");
    test.resume(&[]).ok().stderr_has("warning").stderr_has("journal.jsonl");
    assert_eq!(test.prompts(), ["start", "next", "last"]);
    let content = fs::read_to_string(test.journal_file()).expect("a journal");
    assert!(!content.contains("\"seq\":99,"), "the torn piece is gone");
    for line in content.lines() {
        serde_json::from_str::<Value>(line).expect("every record is whole");
    }
}

#[test]
fn truncated_unacknowledged_last_record_is_cut_off() {
    let test = held_later();
    kill_at(&test, 2, true);
    let whole = fs::read(test.journal_file()).expect("a journal");
    fs::write(test.journal_file(), &whole[..whole.len() - 7]).expect("it is cut");
    // A machine that died had not acknowledged that record to anyone.
    fs::remove_file(test.run_dir().join("acknowledged")).expect("a note");
    test.resume(&[]).ok().stderr_has("journal.jsonl");
}

#[test]
fn every_reader_refuses_a_journal_that_lost_acknowledged_records() {
    let test = held_later();
    kill_at(&test, 2, true);
    let whole = fs::read(test.journal_file()).expect("a journal");
    for end in [whole.len() - 7, whole.len() / 2] {
        fs::write(test.journal_file(), &whole[..end]).expect("it is cut");
        for command in [
            &["log", "t"][..],
            &["log", "t", "--json"],
            &["show", "t", "main"],
            &["costs", "t"],
            &["tree", "t"],
            &["status", "t"],
            &["resume", "t"],
        ] {
            let outcome = test.raymond(command);
            outcome.code(65).stderr_has("restore it from a copy");
        }
    }
    fs::write(test.journal_file(), &whole[..20]).expect("it is cut");
    test.raymond(&["log", "t"]).code(65).stderr_has("holds no record");
}

#[test]
fn damaged_record_in_the_middle_is_an_error_naming_it() {
    let test = held_later();
    kill_at(&test, 2, true);
    let content = fs::read_to_string(test.journal_file()).expect("a journal");
    let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
    let place = lines.iter().position(|line| line.contains("step_finished")).expect("a step");
    lines[place] = lines[place].replace("NEXT.md", "LAST.md");
    // The damaged record must not be the last one.
    let copy = lines.last().cloned().unwrap_or_default();
    lines.push(copy);
    let damaged = lines.join("\n") + "\n";
    fs::write(test.journal_file(), &damaged).expect("it is written");

    let record = (place + 1).to_string();
    test.resume(&[]).code(65).stderr_has("journal.jsonl").stderr_has("record").stderr_has(&record);
    assert_eq!(test.calls().len(), 2, "nothing is started on a guess");
    let after = fs::read_to_string(test.journal_file()).expect("a journal");
    assert_eq!(after, damaged, "the evidence is left as it is");
}

#[test]
fn snapshot_of_a_newer_version_is_refused() {
    let test = held_later();
    kill_at(&test, 2, true);
    fs::write(test.run_dir().join("state.json"), r#"{"version":999}"#).expect("it is written");
    test.resume(&[]).code(65).stderr_has("state.json").stderr_has("999").stderr_has("newer");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn journal_with_record_of_newer_format_is_refused_and_left_unchanged() {
    let test = held_later();
    kill_at(&test, 2, true);
    let before = fs::read_to_string(test.journal_file()).expect("a journal");
    for end in ["{\"format\":999,\"seq\":\"of another kind\"}\n", "{\"format\":999,\"seq\":4,\"at"]
    {
        let journal = before.clone() + end;
        fs::write(test.journal_file(), &journal).expect("it is written");
        let line = format!("journal.jsonl:{}: this record has format 999", journal.lines().count());
        test.resume(&[]).code(65).stderr_has(&line).stderr_has("a newer raymond");
        let after = fs::read_to_string(test.journal_file()).expect("a journal");
        assert_eq!(after, journal, "it is not taken for a torn record");
    }
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn non_json_snapshot_is_rebuilt_from_the_journal() {
    let test = held_later();
    kill_at(&test, 2, true);
    fs::write(test.run_dir().join("state.json"), "{\"workflow_id\": ").expect("it is written");
    test.release("go");
    test.resume(&[]).ok().stderr_has("warning").stderr_has("state.json");
    let state = fs::read(test.run_dir().join("state.json")).expect("a snapshot");
    assert!(serde_json::from_slice::<Value>(&state).is_ok(), "it is JSON again");
}

#[test]
fn missing_snapshot_of_an_ended_run_is_rebuilt() {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>ok</result>"));
    let state = test.run_dir().join("state.json");
    test.run(&["START.md"]).ok();
    let whole = fs::read(&state).expect("a state");
    let mut early: Value = serde_json::from_slice(&whole).expect("JSON");
    fs::remove_file(&state).expect("removed");
    test.resume(&[]).ok().stderr_has("nothing to do");
    let now: Value = serde_json::from_slice(&fs::read(&state).expect("it is back")).expect("JSON");
    assert_eq!(now, early);
    early["status"] = "running".into();
    assert_ne!(now, early, "it says that the run is over");
    assert_eq!(test.calls().len(), 1);
}
