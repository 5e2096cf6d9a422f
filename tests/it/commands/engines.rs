//! Engines: which commands take one, and what is said where there is none.

use crate::support::pair;

/// An address that no command connects to.
const ENGINE: &str = "postgres://u@127.0.0.1:1/x";

#[test]
fn commands_on_runs_of_this_machine_refuse_an_engine() {
    let test = pair();
    for command in [
        "start START.md",
        "branch t --at 1",
        "rewind t --to 1",
        "record t -o recorded",
        "recover",
        "worktrees t",
        "clean t",
    ] {
        let name = command.split(' ').next().unwrap_or_default();
        let arguments: Vec<&str> = command.split(' ').chain(["--engine", ENGINE]).collect();
        test.raymond(&arguments)
            .code(64)
            .says(&format!("`raymond {name}` works on the runs of this machine, not yet on those"));
    }
    test.raymond(&["workflow", "list", "--engine", ENGINE])
        .code(64)
        .says("`raymond workflow list` works on the runs of this machine, not yet on those");
}

#[test]
fn commands_that_need_an_engine_ask_for_its_name() {
    let test = pair();
    for arguments in [&["worker"][..], &["hosts"], &["hosts", "drain", "a"]] {
        test.raymond(arguments)
            .code(64)
            .says("name the engine with --engine, in RAYMOND_ENGINE, or as `engine:`");
    }
}

#[cfg(not(feature = "postgres"))]
#[test]
fn engine_that_is_not_built_in_is_named() {
    let test = pair();
    let calls =
        ["worker", "hosts", "hosts lost a", "run START.md", "status t", "answer t", "stop t"];
    for call in calls {
        let arguments: Vec<&str> = call.split(' ').chain(["--engine", ENGINE]).collect();
        test.raymond(&arguments)
            .code(64)
            .says("this raymond was built without the engine postgres: ");
    }
}
