//! Agents that use tools: permissions, extra arguments, large prompts, and no process left behind.

use std::fs;

use serde_json::json;

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;

#[test]
fn agent_runs_command_when_permissions_are_skipped() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: measure.");
    let command = json!({"command": "basename \"$PWD\" > measured; echo \"agent $RAYMOND_AGENT\"", "description": "measure"});
    machine.api.script([
        on("ALPHA").reply("I measure. <goto>NOWHERE.md</goto>").tool("Bash", command),
        on("agent main").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--dangerously-skip-permissions"]).exits(0).prints(POSITIVE);

    let measured = fs::read_to_string(machine.path("work/measured"));
    assert_eq!(measured.expect("the command has run"), "work\n");
    assert_eq!(machine.transitions(), ["main#1 result"], "only the final message is read");
}

#[test]
fn agent_writes_file_by_default() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: write.");
    let path = machine.path("work/poem");
    machine.api.script([
        on("ALPHA").tool("Write", json!({"file_path": path, "content": "roses"})),
        on("successfully").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    assert_eq!(fs::read_to_string(path).expect("the file was written"), "roses");
}

#[test]
fn question_tool_is_not_offered_and_extra_arguments_apply() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([otherwise().reply("<result>POSITIVE</result>")]);

    machine
        .run(&["--", "--append-system-prompt", "ZULU: speak plainly."])
        .exits(0)
        .prints(POSITIVE);

    let request = machine.api.request("ALPHA");
    assert!(request.system.contains("ZULU: speak plainly."));
    assert!(request.tools.iter().all(|tool| tool != "AskUserQuestion"), "{:?}", request.tools);
    assert!(request.tools.iter().any(|tool| tool == "Bash"), "{:?}", request.tools);
}

#[test]
fn prompt_larger_than_argument_limit_is_sent_whole() {
    let machine = TestMachine::new();
    let long = "word ".repeat(80_000);
    machine.prompt("START.md", &format!("{long}ALPHA"));
    machine.api.script([on("ALPHA").reply("<result>POSITIVE</result>")]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    assert!(machine.api.request("ALPHA").newest.starts_with(&long));
}

#[test]
fn process_left_by_tool_is_killed_with_step() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: serve.");
    let command = json!({"command": "nohup sleep 600 > /dev/null 2>&1 & echo serving", "description": "serve"});
    machine.api.script([
        on("ALPHA").tool("Bash", command),
        on("serving").reply("<result>POSITIVE</result>").hold(),
    ]);

    let run = machine.start(&["--dangerously-skip-permissions"]);
    machine.api.wait_for("serving", 1);
    let sleeps = |machine: &TestMachine| {
        machine.processes().iter().any(|(_, line)| line.contains("sleep 600"))
    };
    assert!(sleeps(&machine) || !cfg!(target_os = "linux"), "{:?}", machine.processes());
    machine.api.release("serving");
    run.wait().exits(0).prints(POSITIVE);

    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}
