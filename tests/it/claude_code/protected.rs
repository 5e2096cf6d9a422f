//! raymond's own directories and the user's key: no tool of the real program may touch them, in any
//! permission mode.

use std::fs;

use serde_json::{Value, json};

use super::POSITIVE;
use super::machine::TestMachine;
use crate::api::on;

/// Scripts an agent that tries a tool and then ends, whatever the result is.
fn trying(machine: &TestMachine, tool: &str, input: Value) {
    machine.prompt("START.md", "ALPHA: try it.");
    machine.api.script([
        on("ALPHA").tool(tool, input).times(1),
        on("").reply("<result>POSITIVE</result>"),
    ]);
}

const MODES: [&[&str]; 2] = [&[], &["--dangerously-skip-permissions"]];

#[test]
fn agent_cannot_write_run_state_facts_or_trust() {
    let places = [
        "work/.raymond/runs/tested/inbox/0-forged.json",
        "work/.raymond/runs/tested/state.json",
        "work/.raymond/runs/tested/journal.jsonl",
        "work/.raymond/runs/tested/workflow/START.md",
        "work/.raymond/dataspace/facts/x/y.json",
        "home/.local/state/raymond/trust/forged.json",
    ];
    for mode in MODES {
        for place in places {
            let machine = TestMachine::new();
            let path = machine.path(place);
            trying(&machine, "Write", json!({"file_path": path, "content": "FORGED"}));
            machine.run(mode).exits(0).prints(POSITIVE);
            let content = fs::read_to_string(&path).unwrap_or_default();
            assert!(!content.contains("FORGED"), "{mode:?} {place}");
        }
    }
}

#[test]
fn agent_cannot_read_user_key() {
    for mode in MODES {
        let machine = TestMachine::new();
        let key = machine.path("home/.local/state/raymond/key");
        trying(&machine, "Read", json!({"file_path": key}));
        machine.run(mode).exits(0).prints(POSITIVE);
        let text = fs::read_to_string(&key).expect("the key was made when the run started");
        let requests = machine.api.requests();
        assert!(requests.iter().all(|request| !request.sees(text.trim())), "{mode:?}");
    }
}

#[test]
fn agent_can_write_other_workspace_files() {
    let machine = TestMachine::new();
    let path = machine.path("work/notes.md");
    trying(&machine, "Write", json!({"file_path": path, "content": "mine"}));
    machine.run(&[]).exits(0).prints(POSITIVE);
    assert_eq!(fs::read_to_string(path).expect("written"), "mine");
}

#[test]
fn agent_with_edit_permission_cannot_add_hooks() {
    let machine = TestMachine::new();
    let path = machine.path("work/.claude/settings.json");
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch pwned"}]}]}});
    trying(&machine, "Write", json!({"file_path": path, "content": hook.to_string()}));
    machine.run(&[]).exits(0).prints(POSITIVE);
    assert!(!path.exists(), "Claude Code protects its own settings");
}
