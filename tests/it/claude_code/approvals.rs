//! Tool calls that the real program asks to approve: allowed, denied, by rule, after its process has gone, and after raymond
//! was killed. The tool makes a new file each time, so that the files tell how often it ran.

use serde_json::{Value, json};

use crate::api::{ApiRule, on};

use super::POSITIVE;
use super::machine::{RUN, TestMachine};
use super::running::RunningProgram;

const ASKS: [&str; 4] = ["--permission-mode", "default", "--permissions", "ask"];

/// The beginning of the name of each file that the tool makes; the tool prints the name.
const MADE: &str = "made.";

/// The words of the prompt with which a turn goes on after the answer.
const RESUMED: &str = "make the same call again";

fn make(marker: &str) -> ApiRule {
    let input: Value = json!({ "command": "mktemp ./made.XXXXXX", "description": "make it" });
    on(marker).tool("Bash", input).times(1)
}

fn done(marker: &str) -> ApiRule {
    on(marker).reply("<result>POSITIVE</result>")
}

fn machine(rules: impl IntoIterator<Item = ApiRule>) -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: make it.");
    machine.api.script(rules);
    machine
}

fn start(machine: &TestMachine, hold: &str) -> RunningProgram {
    machine.start(&[&ASKS[..], &["--approval-hold", hold]].concat())
}

fn answer(machine: &TestMachine, words: &[&str]) {
    machine.raymond(&[&["answer", RUN], words].concat()).wait().exits(0);
}

fn wait_asked(machine: &TestMachine, count: usize) {
    let is_asked = || machine.records("approval_asked").len() >= count;
    machine.until("the call is asked", is_asked);
}

/// Returns the number of files that the tool has made.
fn made(machine: &TestMachine) -> usize {
    let entries = std::fs::read_dir(machine.path("work")).expect("a folder").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(MADE)).count()
}

/// Returns the number of calls that a person was asked about.
fn asked(machine: &TestMachine) -> usize {
    let records = machine.records("approval_asked");
    records.iter().filter(|record| record.get("grant").is_none()).count()
}

#[test]
fn call_is_allowed_once_and_the_next_call_denied_with_the_reason() {
    let machine = machine([make("ALPHA"), make(MADE), done("not today")]);
    let run = start(&machine, "1h");
    wait_asked(&machine, 1);
    assert_eq!(made(&machine), 0);
    answer(&machine, &["a1", "allow"]);
    wait_asked(&machine, 2);
    assert_eq!(made(&machine), 1);
    answer(&machine, &["a2", "deny", "--reason", "not today"]);
    run.wait().exits(0).prints(POSITIVE);
    assert_eq!(made(&machine), 1);
    assert_eq!(machine.records("step_finished")[0]["refused_tools"]["calls"][0]["tool"], "Bash");
    let request = &machine.records("approval_asked")[0]["request"];
    assert_eq!(request["rules"], json!([{ "tool": "Bash", "content": "mktemp ./made.XXXXXX" }]));
}

#[test]
fn rule_lets_later_calls_run_in_the_same_process_and_in_another() {
    let rules = [
        make("ALPHA"),
        make(MADE),
        on(MADE).reply("<reset>START.md</reset>").times(1),
        make("ALPHA"),
        done(MADE),
    ];
    let machine = machine(rules);
    let run = start(&machine, "1h");
    wait_asked(&machine, 1);
    answer(&machine, &["a1", "allow-always"]);
    run.wait().exits(0).prints(POSITIVE);
    assert_eq!((asked(&machine), made(&machine)), (1, 3));
    assert!(machine.streams().len() > 1, "the second step had a process of its own");
    let left = std::fs::read_dir(machine.path("work/.claude")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "no rule was written into the working tree");
}

#[test]
fn parked_turn_is_resumed_and_its_call_runs_once() {
    let machine = machine([make("ALPHA"), make(RESUMED), done(MADE)]);
    start(&machine, "1ms").wait().exits(2);
    machine.until("its process is gone", || machine.processes().is_empty());
    answer(&machine, &["a1", "allow"]);
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert_eq!((asked(&machine), made(&machine)), (1, 1));
    assert!(machine.api.request(RESUMED).sees("ALPHA"), "it is the same session");
}

#[test]
fn call_is_asked_once_if_raymond_is_killed_while_it_waits() {
    let closed = on("stream closed before response").reply("I may not.");
    let machine = machine([make("ALPHA"), closed, make(RESUMED), done(MADE)]);
    let run = start(&machine, "1h");
    wait_asked(&machine, 1);
    run.kill();
    machine.resume(&[]).wait().exits(2);
    assert_eq!((asked(&machine), made(&machine)), (1, 0));
    answer(&machine, &["a1", "allow"]);
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert_eq!((asked(&machine), made(&machine)), (1, 1));
}

#[test]
fn call_runs_once_if_raymond_is_killed_around_the_answer() {
    for point in ["approval.before:1", "approval.told:1"] {
        let closed = on("stream closed before response").reply("I may not.");
        let mut machine = machine([make("ALPHA"), closed, make(RESUMED), done(MADE)]);
        machine.set("RAYMOND_FAILPOINT", point);
        let run = start(&machine, "1h");
        wait_asked(&machine, 1);
        answer(&machine, &["a1", "allow"]);
        let killed = run.wait();
        assert_eq!(killed.code, None, "{point}: {}", killed.stderr);
        machine.unset("RAYMOND_FAILPOINT");
        machine.resume(&[]).wait().exits(0).prints(POSITIVE);
        assert_eq!((asked(&machine), made(&machine)), (1, 1), "{point}");
    }
}
