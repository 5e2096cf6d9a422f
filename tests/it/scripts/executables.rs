//! Files with any ending as states: scripts and programs for the machine, if they can be executed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Test, when};

/// Makes a file of a workflow one that can be executed.
fn make_executable(test: &Test, name: &str) {
    std::fs::set_permissions(test.flow().join(name), Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn file_with_any_ending_is_a_script_if_it_can_be_executed() {
    let script = b"#!/usr/bin/env python3\nprint('<result>checked</result>')\n";
    let test = Test::new()
        .prompt("START.md", "start, and then <goto>CHECK.tool</goto>")
        .file("CHECK.tool", script)
        .rule(when("start").reply("<goto>CHECK.tool</goto>"));
    let check = test.raymond(&["check", "START.md"]);
    check.code(65).stdout_has("CHECK.tool").stdout_has("any file that can be executed");
    make_executable(&test, "CHECK.tool");
    let test = test.env("RAYMOND_TRUST", "");
    test.raymond(&["check", "START.md"]).ok();
    test.run(&["START.md"]).code(77).stderr_has("CHECK.tool");
    let mut live = test.spawn(&["START.md", "--trust"]);
    live.wait_event("run_started", 1);
    std::fs::write(test.flow().join("CHECK.tool"), "#!/bin/sh\necho '<result>evil</result>'\n")
        .expect("edited");
    live.wait().ok().ended("main", "checked");
    let data = Test::new()
        .prompt("START.md", "start, and then <goto>notes.txt</goto>")
        .file("notes.txt", script);
    make_executable(&data, "notes.txt");
    data.raymond(&["check", "START.md"]).code(65).stdout_has("that is not a state");
}

#[test]
fn program_for_the_machine_is_a_script_and_needs_trust() {
    let program = std::fs::read("/bin/true").expect("a program");
    let test = Test::new()
        .prompt("START.md", "start, and then <goto>CHECK.tool</goto>")
        .file("CHECK.tool", &program)
        .rule(when("start").reply("<goto>CHECK.tool</goto>"));
    make_executable(&test, "CHECK.tool");
    test.raymond(&["check", "START.md"]).ok();
    let outcome = test.run(&["START.md"]);
    // It has run, and printed nothing.
    assert!(outcome.code(1).failed("main").contains("in CHECK.tool"), "{}", outcome.stderr);
    let ended = test.events("agent_failed");
    assert_eq!(ended[0]["cause"], "protocol");
    let failing = std::fs::read("/bin/false").expect("a program");
    let failing = Test::new().file("CHECK.tool", &failing).env("RAYMOND_TRUST", "");
    make_executable(&failing, "CHECK.tool");
    failing.raymond(&["run", "CHECK.tool"]).code(77).stderr_has("CHECK.tool:1:1");
    let outcome = failing.raymond(&["run", "CHECK.tool", "--trust", "--max-restarts", "0"]);
    outcome.code(1).says("exited with code 1");
}
