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
