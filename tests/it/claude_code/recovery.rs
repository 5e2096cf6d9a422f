//! Raymond is killed or stopped while Claude Code works, and the run is resumed.
//!
//! The API holds its answer, so the moment of the kill is exact: the model has the request and has not
//! answered.

use crate::api::{MessagesApi, on};

use super::POSITIVE;
use super::machine::TestMachine;
use super::running::RunningProgram;

const TRANSITIONS: [&str; 3] = ["main#1 goto NEXT.md", "main#2 goto LAST.md", "main#3 result"];

/// Starts a run whose second turn the API holds.
fn held() -> (TestMachine, RunningProgram) {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: work.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").reply("<goto>LAST.md</goto>").hold(),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.start(&[]);
    machine.api.wait_for("BRAVO", 1);
    (machine, run)
}

fn turns(api: &MessagesApi) -> [usize; 3] {
    ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| api.turns(marker))
}

#[test]
fn turn_finished_while_raymond_was_down_is_adopted() {
    let (machine, run) = held();
    run.kill();
    machine.api.release("BRAVO");
    machine.until("the turn has ended and its process too", || machine.processes().is_empty());

    machine.resume(&[]).wait().exits(0).prints(POSITIVE);

    assert_eq!(turns(&machine.api), [1, 1, 1], "no turn is paid for twice");
    assert_eq!(machine.transitions(), TRANSITIONS);
    assert!(machine.api.request("CHARLIE").sees("BRAVO"));
}

#[test]
fn running_turn_is_adopted_after_kill() {
    let (machine, run) = held();
    run.kill();

    let run = machine.resume(&[]);
    machine.until("the run was taken up", || !machine.records("run_resumed").is_empty());
    machine.api.release("BRAVO");
    run.wait().exits(0).prints(POSITIVE);

    assert_eq!(turns(&machine.api), [1, 1, 1], "no turn is paid for twice");
    assert_eq!(machine.transitions(), TRANSITIONS);
}

#[test]
fn turn_killed_with_raymond_is_retried_without_partial_history() {
    let (machine, run) = held();
    run.kill();
    machine.kill_claude();
    machine.api.release("BRAVO");

    machine.resume(&["--backoff", "1ms..5ms"]).wait().exits(0).prints(POSITIVE);

    assert_eq!(turns(&machine.api), [1, 2, 1]);
    assert_eq!(machine.transitions(), TRANSITIONS);
    let last = machine.api.request("CHARLIE");
    let mentions = ["ALPHA", "BRAVO"].map(|marker| last.mentions(marker));
    assert_eq!(mentions, [1, 1], "no half turn stays in the conversation: {last:#?}");
}

#[test]
fn first_turn_killed_with_raymond_restarts_from_scratch() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([on("ALPHA").reply("<result>POSITIVE</result>").hold()]);
    let run = machine.start(&[]);
    machine.api.wait_for("ALPHA", 1);
    run.kill();
    machine.kill_claude();
    machine.api.release("ALPHA");

    machine.resume(&["--backoff", "1ms..5ms"]).wait().exits(0).prints(POSITIVE);

    let requests = machine.api.requests();
    let mentions: Vec<_> = requests.iter().map(|request| request.mentions("ALPHA")).collect();
    assert_eq!(mentions, [1, 1], "{requests:#?}");
}

#[test]
fn interrupt_lets_running_turn_finish() {
    let (machine, run) = held();
    let before = run.stderr();
    run.interrupt();
    machine.until("it says that it stops", || run.stderr() != before);
    machine.api.release("BRAVO");
    run.wait().exits(130);
    assert_eq!(turns(&machine.api), [1, 1, 0]);
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());

    machine.resume(&[]).wait().exits(0).prints(POSITIVE);

    assert_eq!(turns(&machine.api), [1, 1, 1]);
    assert_eq!(machine.transitions(), TRANSITIONS);
}

#[test]
fn parent_and_forked_worker_are_adopted_after_kill() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: hand out.");
    machine.prompt("WORKER.md", "BRAVO: peel the {{item}}.");
    machine.prompt("NEXT.md", "CHARLIE: meanwhile.");
    machine.api.script([
        on("ALPHA").reply(r#"<fork next="NEXT.md" item="pear">WORKER.md</fork>"#),
        on("BRAVO").reply("<result>peeled</result>").hold(),
        on("CHARLIE").reply("<result>POSITIVE</result>").hold(),
    ]);
    let run = machine.start(&[]);
    machine.api.wait_for("BRAVO", 1);
    machine.api.wait_for("CHARLIE", 1);
    run.kill();
    machine.api.release("BRAVO");
    machine.api.release("CHARLIE");

    let ended = machine.resume(&[]).wait().exits(0);

    assert!(ended.stdout.contains(POSITIVE), "{ended:?}");
    assert!(ended.stdout.contains("Agent main.1 terminated with result: peeled"), "{ended:?}");
    assert_eq!(turns(&machine.api), [1, 1, 1], "no turn is paid for twice");
}
