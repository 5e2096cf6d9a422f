//! The tool calls of turns, as `show` and `log` tell them.

use serde_json::{Value, json};

use crate::api::on;

use super::POSITIVE;
use super::machine::{RUN, TestMachine};

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "try it" })
}

/// Executes a run whose first turn has calls that fail, succeed and are refused, and whose second turn,
/// of the same process, has one.
fn with_calls() -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: write.");
    machine.prompt("NEXT.md", "BRAVO: read.");
    let poem = json!({ "file_path": machine.path("work/poem"), "content": "roses" });
    machine.api.script([
        on("ALPHA").tool("Bash", bash("cat nowhere")),
        on("No such file").tool("Write", poem),
        on("successfully").tool("Bash", bash("curl -s http://127.0.0.1:1/x")),
        on("requires approval").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").tool("Bash", bash("cat poem")),
        on("roses").reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0).prints(POSITIVE);
    machine
}

#[test]
fn show_lists_the_calls_of_each_turn_and_each_refusal_once() {
    let machine = with_calls();
    let shown = machine.raymond(&["show", RUN]).wait().exits(0).stdout.clone();
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    let line = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    assert_eq!(line("Bash  cat nowhere  failed"), 1, "{shown}");
    assert_eq!(line(&format!("Write  {}", machine.path("work/poem").display())), 1, "{shown}");
    assert_eq!(line("Bash  cat poem"), 1, "{shown}");
    let refused = "Bash  curl -s http://127.0.0.1:1/x  refused: This command requires approval";
    let times = shown.matches("curl -s").count();
    assert_eq!((line(refused), times), (1, 1), "{shown}");
    assert_eq!(line("allowed with: --allow-tool 'Bash(curl:*)'"), 1, "{shown}");
    assert_eq!(line("output:"), 0, "{shown}");

    let shown = machine.raymond(&["show", RUN, "--step", "1"]).wait().exits(0).stdout.clone();
    for text in ["command: cat nowhere", "content: roses", "output: Exit code 1\n"] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
}

#[test]
fn json_of_show_and_log_has_the_calls() {
    let machine = with_calls();
    let shown = machine.raymond(&["show", RUN, "--json"]).wait().exits(0).stdout.clone();
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let first = &shown["steps"][0]["turns"][0]["tool_calls"];
    let calls = first.as_array().expect("calls");
    let outcomes: Vec<Value> =
        calls.iter().map(|call| json!([call["tool"], call["kind"], call["outcome"]])).collect();
    let expected =
        json!(
            [["Bash", "shell", "failed"], ["Write", "edit", "ok"], ["Bash", "shell", "refused"],]
        );
    assert_eq!(json!(outcomes), expected);
    assert_eq!(calls[0]["input"], bash("cat nowhere"));
    assert!(calls[0]["output"].as_str().is_some_and(|output| output.contains("No such file")));
    for call in calls {
        assert!(call["ended_at"].is_string(), "{call}");
        // Older versions do not tell the time of a call.
        assert_eq!(call["started_at"].is_null(), call["duration_ms"].is_null(), "{call}");
    }

    let log = machine.raymond(&["log", RUN, "--json"]).wait().exits(0).stdout.clone();
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let told: Vec<Value> = records.filter(|record| record.get("tool_calls").is_some()).collect();
    assert_eq!(told.iter().map(|one| &one["event"]).collect::<Vec<_>>(), ["step_finished"; 2]);
    assert_eq!(told[0]["tool_calls"], *first);
    assert_eq!(told[1]["tool_calls"][0]["title"], "cat poem");
    assert_eq!(told[1]["tool_calls"].as_array().map(Vec::len), Some(1));

    let log = machine.raymond(&["log", RUN]).wait().exits(0).stdout.clone();
    let tools: Vec<&str> =
        log.lines().filter_map(|line| Some(line.split_once("  tools: ")?.1)).collect();
    assert_eq!(tools, ["Bash ×2 (1 failed, 1 refused), Write", "Bash"]);
}
