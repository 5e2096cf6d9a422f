//! Messages of a person to a running turn of the real program: read with its next request or answered after its text, and told
//! once, also when raymond is killed.

use serde_json::json;

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::{RUN, TestMachine};
use super::running::RunningProgram;

/// Tells the agent something, and waits until its process has it: raymond writes the message before it takes an order that comes
/// after the record of it. Orders that lie there together have their records before any of them is carried out.
fn tell(machine: &TestMachine, text: &str) {
    let before = machine.records("command_received").len();
    let orders =
        [&["tell", RUN, "main", text][..], &["hold", RUN, "main"], &["release", RUN, "main"]];
    for (number, order) in (1..).zip(orders) {
        machine.raymond(order).wait().exits(0);
        machine.until("the order is taken", || {
            machine.records("command_received").len() == before + number
        });
    }
}

/// Returns the numbers of messages that were read by running turns and by new ones.
fn read(machine: &TestMachine) -> (usize, usize) {
    let taken = machine.records("messages_taken");
    let within = taken.iter().filter(|record| record.get("message").is_some()).count();
    (within, taken.len() - within)
}

/// Starts a run whose first answer the API holds.
fn in_answer() -> (TestMachine, RunningProgram) {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "CHARLIE: end.");
    machine.api.script([
        on("ALPHA").reply("<goto>WRONG.md</goto>").hold(),
        on("be brief").reply("<goto>NEXT.md</goto>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.start(&[]);
    machine.api.wait_for("ALPHA", 1);
    (machine, run)
}

#[test]
fn message_is_read_with_the_next_request_of_the_turn() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: look.");
    let command = "while [ ! -e go ]; do sleep 0.05; done; echo looked";
    machine.api.script([
        on("ALPHA").tool("Bash", json!({ "command": command, "description": "look" })),
        otherwise().reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.start(&["--dangerously-skip-permissions"]);
    machine.api.wait_for("ALPHA", 1);
    tell(&machine, "be brief");
    std::fs::write(machine.path("work/go"), "").expect("written");
    run.wait().exits(0).prints(POSITIVE);
    let requests = machine.api.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert!(requests[1].has_text("looked") && requests[1].has_text("be brief"));
    assert_eq!(read(&machine), (1, 0));
}

#[test]
fn message_that_comes_with_the_last_answer_is_answered_in_the_same_step() {
    let (machine, run) = in_answer();
    tell(&machine, "be brief");
    machine.api.release("ALPHA");
    run.wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
    assert_eq!(["ALPHA", "be brief", "CHARLIE"].map(|marker| machine.api.turns(marker)), [1, 1, 1]);
    assert_eq!(read(&machine), (1, 0));
}

#[test]
fn message_is_delivered_once_if_raymond_is_killed_after_sending() {
    let (machine, run) = in_answer();
    tell(&machine, "be brief");
    run.kill();
    machine.api.release("ALPHA");
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
    assert_eq!(["ALPHA", "be brief", "CHARLIE"].map(|marker| machine.api.turns(marker)), [1, 1, 1]);
    assert_eq!(read(&machine), (1, 0));
}

#[test]
fn message_that_was_not_sent_stands_in_the_next_prompt() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: end.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>").hold(),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.start(&[]);
    machine.api.wait_for("ALPHA", 1);
    run.kill();
    machine.raymond(&["tell", RUN, "main", "be brief"]).wait().exits(0);
    machine.api.release("ALPHA");
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert!(machine.api.request("BRAVO").sees("be brief"));
    assert_eq!(read(&machine), (0, 1));
}
