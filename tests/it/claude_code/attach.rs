//! A person speaks with an agent in the interactive program, and the agent goes on with what was said.

use crate::api::on;
use crate::support::TerminalScreen;

use super::POSITIVE;
use super::machine::{RUN, TestMachine};

/// Returns a machine with two steps in one session; the API holds the first.
fn two_steps() -> TestMachine {
    let machine = TestMachine::of_a_user();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: end.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>").hold(),
        on("DELTA").reply("I see ECHO."),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);
    machine
}

/// Types a line into the program, as a person does: the text, and then the key that sends it.
fn say(screen: &TerminalScreen, text: &str) {
    screen.keys(text).wait_for(&[text]);
    screen.keys("\r");
}

#[test]
fn agent_continues_with_messages_of_a_person_in_its_session() {
    let machine = two_steps();
    let run = machine.start(&["--on-wait", "stay"]);
    machine.api.wait_for("ALPHA", 1);
    let mut screen = machine.on_screen(&["attach", RUN, "main"]);
    screen.wait_for(&["main is held; waiting for its running turn"]);
    machine.api.release("ALPHA");
    screen.wait_for(&["ALPHA: begin.", "❯"]);
    say(&screen, "DELTA: what now?");
    screen.wait_for(&["I see ECHO."]);
    say(&screen, "/exit");
    assert_eq!(screen.wait_for_exit(), Some(0));
    screen.wait_for(&["main has what was said"]);
    run.wait().exits(0).prints(POSITIVE);
    let last = machine.api.request("BRAVO");
    assert!(last.sees("ALPHA") && last.sees("DELTA: what now?") && last.sees("I see ECHO."));
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
    assert!(machine.processes().is_empty());
}

#[test]
fn attaching_to_a_stopped_run_without_messages_changes_nothing() {
    let machine = two_steps();
    let run = machine.start(&[]);
    machine.api.wait_for("ALPHA", 1);
    machine.raymond(&["hold", RUN, "main"]).wait().exits(0);
    machine.until("the hold is recorded", || !machine.records("command_received").is_empty());
    machine.api.release("ALPHA");
    run.wait().exits(2);
    machine.raymond(&["release", RUN, "main"]).wait().exits(0);

    for said in [false, true] {
        let mut screen = machine.on_screen(&["attach", RUN, "main"]);
        screen.wait_for(&["ALPHA: begin.", "❯"]);
        if said {
            say(&screen, "DELTA: what now?");
            screen.wait_for(&["I see ECHO."]);
        }
        say(&screen, "/exit");
        assert_eq!(screen.wait_for_exit(), Some(0));
        let expected = if said { "has what was said" } else { "nothing was said" };
        screen.wait_for(&[expected, &format!("raymond resume {RUN}")]);
    }
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert!(machine.api.request("BRAVO").sees("I see ECHO."));
    assert_eq!(machine.api.turns("ALPHA"), 1);
}

#[test]
fn agent_without_a_session_is_not_attached_to() {
    let machine = TestMachine::of_a_user();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: end.");
    let ends = on("BRAVO").reply("<result>POSITIVE</result>");
    machine.api.script([ends, on("ALPHA").reply("<reset>NEXT.md</reset>").hold()]);
    let run = machine.start(&["--on-wait", "stay"]);
    machine.api.wait_for("ALPHA", 1);
    machine.raymond(&["attach", RUN, "main"]).wait().exits(64);
    let mut screen = machine.on_screen(&["attach", RUN, "main"]);
    screen.wait_for(&["waiting for its running turn"]);
    machine.api.release("ALPHA");
    assert_eq!(screen.wait_for_exit(), Some(64));
    screen.wait_for(&["its next turn begins a new one"]);
    run.wait().exits(0);
}
