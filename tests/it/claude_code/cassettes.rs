//! Runs that are recorded, and replayed without the program.

use std::fs;

use serde_json::json;

use crate::api::on;

use super::POSITIVE;
use super::machine::TestMachine;

#[test]
fn recorded_file_tools_are_replayed_without_the_program() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: write.");
    let poem = machine.path("work/poem");
    let edit = json!({ "file_path": poem, "old_string": "roses", "new_string": "tulips" });
    machine.api.script([
        on("ALPHA").tool("Write", json!({ "file_path": poem, "content": "red roses" })),
        on("successfully").times(1).tool("Edit", edit),
        on("updated").reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    let transitions = machine.transitions();
    machine.raymond(&["record", super::machine::RUN, "-o", "cassette"]).wait().exits(0);

    fs::remove_file(&poem).expect("removed");
    let start = machine.path("flow/START.md").display().to_string();
    let words = [
        "run",
        &start,
        "--id",
        "again",
        "--agent",
        "replay:cassette",
        "--strict-replay",
        "--claude",
        "/nowhere",
    ];
    machine.raymond(&words).wait().exits(0).prints(POSITIVE);

    assert_eq!(transitions, ["main#1 result"]);
    assert_eq!(fs::read_to_string(&poem).expect("written again"), "red tulips");
}

#[test]
fn recorded_part_makes_no_request_and_the_rest_begins_a_session_with_its_conversation() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BETA: continue.");
    machine.prompt("LAST.md", "GAMMA: end.");
    machine.api.script([
        on("GAMMA").reply("<result>POSITIVE</result>"),
        on("BETA").reply("second word <goto>LAST.md</goto>"),
        on("ALPHA").reply("first word <goto>NEXT.md</goto>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    machine.raymond(&["record", super::machine::RUN, "-o", "cassette"]).wait().exits(0);
    let before = machine.api.requests().len();

    let start = machine.path("flow/START.md").display().to_string();
    let words = |id: &'static str, until: &'static str| {
        let cassette = ["--agent", "replay:cassette", "--replay-until", until, "--then", "live"];
        [&["run", &start, "--id", id, "--budget", "1"][..], &cassette].concat()
    };
    machine.raymond(&words("whole", "4")).wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.api.requests().len(), before, "all of it was recorded");

    machine.raymond(&words("part", "2")).wait().exits(0).prints(POSITIVE);
    let requests = machine.api.requests();
    let live: Vec<_> = requests[before..].iter().filter(|one| one.sees("BETA")).collect();
    assert_eq!(
        (live.len(), requests.len() - before),
        (2, 2),
        "a request for each turn that is asked"
    );
    assert!(live[0].has_text("first word"), "the recorded conversation is before the prompt");
    assert!(
        live[1].has_text("GAMMA") && live[1].has_text("second word"),
        "its own session goes on"
    );
}
