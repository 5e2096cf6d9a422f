//! The options of graph nodes and program roles with the real program, and the sample of three states with
//! different permissions.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::api::{on, otherwise};

use super::machine::TestMachine;

const OK: &str = r#"<result>{"status":"ok","outputs":{}}</result>"#;

/// Returns a machine with a graph of these nodes and a document of two sections.
fn graph(nodes: &Value) -> TestMachine {
    let machine = TestMachine::new();
    let graph = json!({
        "name": "flow", "start_node": "start", "nodes": nodes, "initial_state": {},
        "endings": {
            "done": {"type": "success", "message": "done"},
            "failed": {"type": "error", "message": "failed"},
        },
    });
    machine.prompt("workflow.yaml", &graph.to_string());
    let document = "# Guide\n\n## One\n\nALPHA: read.\n\n## Two\n\nBRAVO: write.\n";
    fs::write(machine.path("work/guide.md"), document).expect("the workspace is writable");
    machine
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"verdict": {"enum": ["approve", "revise"]}},
        "required": ["verdict"],
    })
}

#[test]
fn node_options_apply_to_their_own_turn_only() {
    let machine = graph(&json!({
        "start": {
            "type": "reference", "doc": "guide.md", "section": "One", "next_node": "then",
            "model": "opus", "tools": ["Read"], "effort": "low", "append_system_prompt": "ZULU",
        },
        "then": {
            "type": "action", "tools": [], "on_success": "done", "on_failure": "failed",
            "actions": [{"type": "invoke_pattern", "path": "guide.md", "section": "Two"}],
        },
    }));
    machine.api.script([otherwise().reply(OK)]);
    machine.start_at("workflow.yaml", &[]).wait().exits(0);
    let [first, second] = ["ALPHA", "BRAVO"].map(|marker| machine.api.request(marker));
    assert!(first.tools.contains(&"Read".to_owned()), "{:?}", first.tools);
    assert!(!first.tools.contains(&"Edit".to_owned()), "{:?}", first.tools);
    assert!(first.system.contains("ZULU") && !second.system.contains("ZULU"));
    assert_eq!(first.effort.as_deref(), Some("low"));
    assert!(first.model.contains("opus"), "{first:#?}");
    assert!(second.tools.is_empty() && second.model.contains("haiku"), "{second:#?}");
}

#[test]
fn structured_answer_field_selects_graph_branch() {
    let machine = graph(&json!({
        "start": {
            "type": "reference", "doc": "guide.md", "section": "One", "next_node": "judge",
            "output": schema(),
        },
        "judge": {
            "type": "conditional",
            "condition": {"type": "evaluate_expression", "expression": "computed.verdict == 'revise'"},
            "branches": {"true": "again", "false": "done"},
        },
        "again": {
            "type": "reference", "doc": "guide.md", "section": "Two", "next_node": "done",
        },
    }));
    machine.api.script([
        on("ALPHA").tool("StructuredOutput", json!({"verdict": "revise"})),
        on("BRAVO").reply(OK),
    ]);
    machine.start_at("workflow.yaml", &[]).wait().exits(0);
    assert_eq!(machine.api.request("ALPHA").output_schema, schema());
    assert!(!machine.api.request("ALPHA").sees("<result>"), "the schema says the form");
    assert_eq!(machine.api.request("BRAVO").output_schema, Value::Null);
}

#[test]
fn refused_tool_fails_node_with_on_denied_fail() {
    let machine = graph(&json!({
        "start": {
            "type": "reference", "doc": "guide.md", "section": "One", "next_node": "done",
            "on_denied": "fail",
        },
    }));
    let command = json!({"command": "curl -s http://127.0.0.1:1/x", "description": "get"});
    machine.api.script([on("ALPHA").tool("Bash", command), otherwise().reply(OK)]);
    let ended = machine.start_at("workflow.yaml", &[]).wait().exits(1);
    assert!(ended.stderr.contains("(on_denied: fail)"), "{ended:?}");
}

#[test]
fn role_options_apply_per_role_and_answer_fields_can_be_matched() {
    let machine = TestMachine::new();
    machine.prompt("verdict.json", &schema().to_string());
    machine.prompt(
        "p.lisp",
        r#"(workflow w
  (roles (writer :tools ("Read" "Edit")) (judge :tools () :output verdict.json :append-system-prompt "ZULU"))
  (state s
    (action (send-prompt :agent writer :template "ALPHA: write." :request-id w)
            (await (transcript-response :request-id w))
            (send-prompt :agent judge :template "BRAVO: judge ~a" :args ((response w)) :request-id j)
            (await (transcript-response :request-id j)))
    (branch (on (matches (response j :field verdict) "^approve$") (terminal :result (feedback judge :field verdict)))
            (otherwise (terminal :status failed)))))"#,
    );
    machine.api.script([
        on("ALPHA").reply("Written."),
        on("BRAVO").tool("StructuredOutput", json!({"verdict": "approve"})),
    ]);
    let ended = machine.start_at("p.lisp", &[]).wait().exits(0);
    assert!(ended.stdout.contains("Agent main terminated with result: approve\n"), "{ended:?}");
    let [writer, judge] = ["ALPHA", "BRAVO"].map(|marker| machine.api.request(marker));
    let offers = |tool: &str| writer.tools.iter().any(|known| known == tool);
    assert!(offers("Edit") && offers("Read") && !offers("Bash"), "{:?}", writer.tools);
    assert!(!judge.tools.iter().any(|tool| tool == "Read"), "{:?}", judge.tools);
    assert!(judge.system.contains("ZULU") && judge.output_schema == schema(), "{judge:#?}");
    assert!(!writer.system.contains("ZULU"));
}

#[test]
fn careful_fix_sample_gives_each_state_only_its_own_tools() {
    let mut machine = TestMachine::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows/careful-fix");
    let entries = fs::read_dir(sample).expect("the sample").flatten();
    // Its cases lie in a folder.
    for entry in entries.filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), machine.path("flow").join(entry.file_name())).expect("copied");
    }
    let toolchain = Path::new(env!("CARGO")).parent().expect("a directory");
    machine.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", toolchain.display()));
    let crate_file = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    fs::write(machine.path("work/Cargo.toml"), crate_file).expect("written");
    fs::create_dir(machine.path("work/src")).expect("made");
    let wrong = "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 3);\n}\n";
    fs::write(machine.path("work/src/lib.rs"), wrong).expect("written");
    let lib = machine.path("work/src/lib.rs");
    let read = json!({"file_path": lib});
    let edit = json!({"file_path": lib, "old_string": "3", "new_string": "2"});
    let command = |command: &str| json!({"command": command, "description": "do it"});
    let change = r#"<function return="DONE.md" finding="WRONG" change="FIXED">JUDGE.md</function>"#;
    machine.api.script([
        on("Read the sources").tool("Read", read.clone()),
        on("#[test]").times(1).reply(r#"<reset finding="src/lib.rs:3: WRONG">FIX.md</reset>"#),
        on("Fix this").tool("Read", read),
        on("#[test]").times(1).tool("Edit", edit),
        on("has been updated").tool("Bash", command("cargo test --offline")),
        on("test result: ok").tool("Bash", command("curl -s http://127.0.0.1:1/x")),
        on("You have no tools").reply("<result>YES</result>"),
        on("The judge says").reply("<result>POSITIVE</result>"),
        otherwise().reply(change),
    ]);
    let mode = ["--permission-mode", "acceptEdits", "--allow-tool", "Bash(cargo test:*)"];
    let ended = machine.start_at("START.md", &mode).wait().exits(0).prints(super::POSITIVE);
    assert!(
        ended.stderr.contains("Bash `curl -s http://127.0.0.1:1/x`"),
        "one tool was refused: {ended:?}"
    );
    assert!(fs::read_to_string(lib).expect("it is there").contains("1 + 1, 2"));
    let offers = |marker: &str, tool: &str| {
        machine.api.request(marker).tools.iter().any(|known| known == tool)
    };
    for (marker, offered) in [
        ("Read the sources", ["Read", "Grep"].as_slice()),
        ("Fix this", ["Bash", "Edit", "Read"].as_slice()),
        ("You have no tools", &[]),
    ] {
        for tool in ["Read", "Grep", "Bash", "Edit", "Write", "Agent"] {
            assert_eq!(offers(marker, tool), offered.contains(&tool), "{marker}: {tool}");
        }
    }
}
