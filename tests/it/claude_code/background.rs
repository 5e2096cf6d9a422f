//! Background tasks with the real program: the turn continues until they have ended.

use serde_json::{Value, json};

use crate::api::{ApiRule, on};

use super::POSITIVE;
use super::machine::TestMachine;

/// Returns the rule that starts a sub-agent in the background, whose prompt has the marker `DELTA`.
fn delegate() -> ApiRule {
    let task = json!({
        "description": "count the files", "prompt": "DELTA: a part.",
        "subagent_type": "general-purpose", "run_in_background": true,
    });
    on("ALPHA").tool("Agent", task).tokens(1_000, 100).times(1)
}

/// Returns a machine on which START starts a sub-agent and says that it waits; the tag comes after the
/// sub-agent has ended.
fn delegating() -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: delegate.");
    machine.prompt("NEXT.md", "BRAVO: go on.");
    machine.api.script([
        delegate(),
        on("DELTA").reply("There are three.").tokens(2_000, 200).hold(),
        on("<task-notification>").reply("It is done. <goto>NEXT.md</goto>").tokens(3_000, 300),
        on("BRAVO").reply("<result>POSITIVE</result>").tokens(5_000, 500),
        on("launched successfully").reply("I have launched it and wait.").tokens(4_000, 400),
    ]);
    machine
}

/// Returns the tokens of each step, in and out.
fn tokens(machine: &TestMachine) -> Vec<(u64, u64)> {
    let sum = |step: &Value, key: &str| -> u64 {
        let usage = step["usage"].as_object().into_iter().flatten();
        usage.filter_map(|(_, used)| used[key].as_u64()).sum()
    };
    let steps = machine.records("step_finished");
    steps.iter().map(|step| (sum(step, "input_tokens"), sum(step, "output_tokens"))).collect()
}

fn assert_asked_once(machine: &TestMachine) {
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
    assert_eq!(["DELTA", "BRAVO"].map(|marker| machine.api.turns(marker)), [1, 1]);
    assert_eq!(tokens(machine), [(10_000, 1_000), (5_000, 500)]);
    assert!(machine.records("turn_rejected").is_empty(), "nobody was reminded");
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}

#[test]
fn turn_waits_for_its_background_sub_agent() {
    for options in [&[][..], &["--no-warm"]] {
        let machine = delegating();
        let run = machine.start(options);
        machine.api.wait_for("launched successfully", 1);
        machine.api.wait_for("DELTA", 1);
        machine.api.release("DELTA");
        run.wait().exits(0).prints(POSITIVE);
        assert_asked_once(&machine);
    }
}

#[test]
fn adopted_turn_waits_for_its_background_sub_agent() {
    for is_resumed_first in [true, false] {
        let machine = delegating();
        let run = machine.start(&[]);
        machine.api.wait_for("launched successfully", 1);
        machine.api.wait_for("DELTA", 1);
        run.kill();
        if is_resumed_first {
            let run = machine.resume(&[]);
            machine.until("the run was taken up", || !machine.records("run_resumed").is_empty());
            machine.api.release("DELTA");
            run.wait().exits(0).prints(POSITIVE);
        } else {
            machine.api.release("DELTA");
            machine.until("the process has ended", || machine.processes().is_empty());
            machine.resume(&[]).wait().exits(0).prints(POSITIVE);
        }
        assert_asked_once(&machine);
    }
}

#[test]
fn interrupted_run_lets_background_sub_agent_finish() {
    let machine = delegating();
    let run = machine.start(&[]);
    machine.api.wait_for("launched successfully", 1);
    machine.api.wait_for("DELTA", 1);
    let before = run.stderr();
    run.interrupt();
    machine.until("it says that it stops", || run.stderr() != before);
    machine.api.release("DELTA");
    run.wait().exits(130);
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert_asked_once(&machine);
}

#[test]
fn cost_of_interrupted_turn_is_counted() {
    let machine = delegating();
    let run = machine.start(&["--shutdown", "1ms"]);
    machine.api.wait_for("launched successfully", 1);
    machine.api.wait_for("DELTA", 1);
    machine.until("the model has said that it waits", || {
        machine
            .run_file("steps/main-1-0.jsonl")
            .contains("\"result\":\"I have launched it and wait.\"")
    });
    run.interrupt();
    run.wait().exits(130);
    let failed = machine.records("turn_failed");
    let [failed] = failed.as_slice() else { panic!("{failed:#?}") };
    assert_eq!((&failed["cause"], &failed["estimated"]), (&json!("interrupted"), &Value::Null));
    let used = failed["usage"].as_object().and_then(|usage| usage.values().next());
    assert_eq!(used.map(|used| &used["input_tokens"]), Some(&json!(5_000)), "{failed:#}");
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}

#[test]
fn turn_waits_for_its_background_command() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: test.");
    let gate = machine.path("work/gate");
    let command = json!({
        "command": format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display()),
        "description": "the tests", "run_in_background": true,
    });
    machine.api.script([
        on("ALPHA").tool("Bash", command).times(1),
        on("<task-notification>").reply("<result>POSITIVE</result>"),
        on("running in background").reply("They run."),
    ]);
    let run = machine.start(&["--", "--allowedTools", "Bash"]);
    machine.until("the model has said that they run", || {
        machine.run_file("steps/main-1-0.jsonl").contains("They run.")
    });
    std::fs::write(gate, "").expect("the machine is writable");
    run.wait().exits(0).prints(POSITIVE);
    assert!(machine.records("turn_rejected").is_empty());
}

#[test]
fn turn_timeout_reports_unfinished_background_command() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: serve.");
    let command = json!({
        "command": "sleep 600", "description": "a dev server", "run_in_background": true,
    });
    machine.api.script([
        on("ALPHA").tool("Bash", command).times(1),
        on("running in background").reply("It serves. <result>POSITIVE</result>"),
    ]);
    let options = ["--timeout", "8s", "--restart", "temporary", "--", "--allowedTools", "Bash"];
    let ended = machine.run(&options).exits(1);
    assert!(ended.stderr.contains("the background command \"a dev server\""), "{ended:?}");
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}

/// Returns a machine on which START runs a server in the background and leads to NEXT, which the API holds.
fn serving(background: &str) -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", &format!("---\nbackground: {background}\n---\nALPHA: serve."));
    machine.prompt("NEXT.md", &format!("---\nbackground: {background}\n---\nBRAVO: look."));
    let serve = json!({
        "command": "sleep 300", "description": "a dev server", "run_in_background": true,
    });
    machine.api.script([
        on("ALPHA").tool("Bash", serve).tokens(1_000, 100).times(1),
        on("BRAVO").reply("<result>POSITIVE</result>").tokens(3_000, 300).hold(),
        on("running in background").reply("<goto>NEXT.md</goto>").tokens(2_000, 200),
    ]);
    machine
}

fn is_serving(machine: &TestMachine) -> bool {
    machine.processes().iter().any(|(_, line)| line.starts_with("sleep 300"))
}

#[test]
fn background_keep_runs_command_until_session_ends() {
    for options in [&[][..], &["--no-warm"], &["--max-procs", "1"]] {
        let machine = serving("keep");
        let permission = ["--dangerously-skip-permissions"];
        let run = machine.start(&[options, &permission].concat());
        machine.api.wait_for("BRAVO", 1);
        assert!(is_serving(&machine), "{options:?}: {:?}", machine.processes());
        assert_eq!(machine.streams(), ["main-1-0.jsonl"], "{options:?}: one process");
        machine.api.release("BRAVO");
        let ended = run.wait().exits(0).prints(POSITIVE);
        let said = "the background command \"a dev server\" was still running, and is ended";
        assert!(ended.stderr.contains(said), "{options:?}: {ended:?}");
        assert_eq!(tokens(&machine), [(3_000, 300), (3_000, 300)], "{options:?}");
        assert!(machine.processes().is_empty(), "{options:?}: {:?}", machine.processes());
    }
}

#[test]
fn background_end_stops_command_with_its_turn() {
    let machine = serving("end");
    let run = machine.start(&["--dangerously-skip-permissions"]);
    machine.api.wait_for("BRAVO", 1);
    assert!(!is_serving(&machine), "{:?}", machine.processes());
    machine.api.release("BRAVO");
    run.wait().exits(0).prints(POSITIVE);
    assert_eq!(tokens(&machine), [(3_000, 300), (3_000, 300)]);
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}
