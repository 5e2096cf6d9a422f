//! Warm processes with the real program: the API gets the same requests as with one process a turn, each
//! once.

use rustix::process::Pid;
use serde_json::json;

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;
use super::running::RunningProgram;

/// Returns a machine with START, NEXT and LAST in one session, with this rule for NEXT.
fn three(next: crate::api::ApiRule) -> TestMachine {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: work.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    machine.api.script([
        on("ALPHA").reply("<goto>NEXT.md</goto>").tokens(1_000, 100),
        next,
        on("CHARLIE").reply("<result>POSITIVE</result>").tokens(4_000, 400),
    ]);
    machine
}

/// Starts a run with a caller that waits and a callee whose answer the API holds.
fn called() -> (TestMachine, RunningProgram) {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: draft.");
    machine.prompt("EVAL.md", "BRAVO: evaluate.");
    machine.prompt("BACK.md", "CHARLIE: the verdict is {{result}}.");
    machine.api.script([
        on("ALPHA").reply(r#"<function return="BACK.md">EVAL.md</function>"#),
        on("BRAVO").reply("<result>sound</result>").hold(),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.start(&["--max-restarts", "0"]);
    machine.api.wait_for("BRAVO", 1);
    (machine, run)
}

fn pids(machine: &TestMachine) -> Vec<Pid> {
    machine.claudes().into_iter().map(|(pid, _)| pid).collect()
}

#[test]
fn goto_chain_uses_one_process_and_one_session() {
    let machine = three(on("BRAVO").reply("<goto>LAST.md</goto>").hold());
    let run = machine.start(&[]);
    machine.api.wait_for("BRAVO", 1);
    let before = pids(&machine);
    assert_eq!(before.len(), 1, "{:?}", machine.processes());
    machine.api.release("BRAVO");
    run.wait().exits(0).prints(POSITIVE);

    let [first, second, third] =
        ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| machine.api.request(marker));
    assert_eq!((&first.session, &second.session), (&second.session, &third.session));
    let mentions = ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| third.mentions(marker));
    assert_eq!(mentions, [1, 1, 1], "{third:#?}");
    assert_eq!(machine.streams(), ["main-1-0.jsonl"], "all of it in the stream of one process");
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}

#[test]
fn return_resumes_waiting_process_of_caller() {
    let (machine, run) = called();
    assert_eq!(pids(&machine).len(), 2, "{:?}", machine.processes());
    machine.api.release("BRAVO");
    run.wait().exits(0).prints(POSITIVE);

    assert_eq!(machine.streams(), ["main-1-0.jsonl", "main-2-0.jsonl"]);
    let [caller, inner, back] = ["ALPHA", "BRAVO", "CHARLIE"].map(|name| machine.api.request(name));
    assert_eq!(inner.texts.len(), 1, "{inner:#?}");
    assert_eq!(caller.session, back.session);
    assert!(back.sees("ALPHA") && !back.sees("BRAVO"), "{back:#?}");
}

#[test]
fn warm_process_switches_model_between_states() {
    let machine = three(on("BRAVO").reply("<goto>LAST.md</goto>"));
    machine.prompt("NEXT.md", "---\nmodel: sonnet\n---\nBRAVO: work.");
    machine.run(&[]).exits(0).prints(POSITIVE);

    let models = ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| machine.api.request(marker).model);
    let named = ["haiku", "sonnet", "haiku"];
    assert!(models.iter().zip(named).all(|(model, name)| model.contains(name)), "{models:?}");
    assert_eq!(machine.streams().len(), 1);
}

#[test]
fn warm_costs_equal_costs_with_process_per_turn() {
    let costs = |options: &[&str]| {
        let machine = three(on("BRAVO").reply("<goto>LAST.md</goto>").tokens(2_000, 200));
        machine.run(options).exits(0).prints(POSITIVE);
        let cost =
            |step: serde_json::Value| (step["cost_usd"].as_f64().unwrap_or(0.0) * 1e6).round();
        machine.records("step_finished").into_iter().map(cost).collect::<Vec<_>>()
    };
    let (warm, cold) = (costs(&[]), costs(&["--no-warm"]));
    assert_eq!(warm, cold, "in millionths of a dollar");
    assert!(warm[0] > 0.0 && warm[1] > 1.9 * warm[0] && warm[2] > 3.9 * warm[0], "{warm:?}");
}

#[test]
fn waiting_process_that_is_killed_is_replaced_without_failure() {
    let (machine, run) = called();
    let start = machine.claudes().into_iter().find(|(pid, _)| machine.leads("main-1-0", *pid));
    let (pid, _) = start.expect("the caller's process waits");
    machine.kill(pid);
    machine.api.release("BRAVO");
    run.wait().exits(0).prints(POSITIVE);

    let back = machine.api.request("CHARLIE");
    assert_eq!(back.session, machine.api.request("ALPHA").session);
    assert_eq!((back.mentions("ALPHA"), back.mentions("BRAVO")), (1, 0), "{back:#?}");
    assert!(machine.records("turn_failed").is_empty());
    assert_eq!(machine.streams().len(), 3);
}

#[test]
fn later_turn_of_warm_process_is_adopted_and_charged_once() {
    for alone in [false, true] {
        let machine = three(on("BRAVO").reply("<goto>LAST.md</goto>").tokens(2_000, 200).hold());
        let run = machine.start(&[]);
        machine.api.wait_for("BRAVO", 1);
        assert_eq!(machine.streams(), ["main-1-0.jsonl"], "it is a further turn");
        run.kill();
        if alone {
            machine.api.release("BRAVO");
            machine
                .until("the turn has ended and its process too", || machine.processes().is_empty());
        }
        let run = machine.resume(&[]);
        machine.until("the run was taken up", || !machine.records("run_resumed").is_empty());
        machine.api.release("BRAVO");
        run.wait().exits(0).prints(POSITIVE);

        let turns = ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| machine.api.turns(marker));
        assert_eq!(turns, [1, 1, 1], "no turn is paid for twice");
        let last = machine.api.request("CHARLIE");
        assert_eq!((last.mentions("ALPHA"), last.mentions("BRAVO")), (1, 1), "{last:#?}");
        let costs: Vec<f64> = machine
            .records("step_finished")
            .iter()
            .map(|step| step["cost_usd"].as_f64().unwrap_or(0.0))
            .collect();
        assert!((costs[1] / costs[0] - 2.0).abs() < 0.01, "{costs:?}");
        assert!((costs[2] / costs[0] - 4.0).abs() < 0.01, "{costs:?}");
    }
}

#[test]
fn background_command_is_ended_and_does_not_answer_next_turn() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "---\nbackground: end\n---\nALPHA: serve.");
    machine.prompt("NEXT.md", "BRAVO: look.");
    let serve = json!({"command": "sleep 300", "run_in_background": true, "description": "serve"});
    machine.api.script([
        on("ALPHA").tool("Bash", serve),
        on("BRAVO").reply("<result>POSITIVE</result>").hold(),
        on("running in background").reply("<goto>NEXT.md</goto>"),
        otherwise().reply("<result>NEGATIVE</result>"),
    ]);
    let run = machine.start(&["--dangerously-skip-permissions"]);
    machine.api.wait_for("BRAVO", 1);
    let sleeping = |line: &str| line.starts_with("sleep 300");
    assert!(
        machine.processes().iter().all(|(_, line)| !sleeping(line)),
        "it is gone with its turn"
    );
    machine.api.release("BRAVO");
    run.wait().exits(0).prints(POSITIVE);

    let last = machine.api.request("BRAVO");
    assert_eq!(last.mentions("ALPHA"), 1, "{last:#?}");
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}

#[test]
fn prestarted_process_serves_fresh_session() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: afresh.");
    machine.api.script([
        on("ALPHA").reply("<reset>NEXT.md</reset>").hold(),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);
    let run = machine.start(&["--prestart", "1", "--max-procs", "4"]);
    machine.until("one waits beside the one at work", || pids(&machine).len() == 2);
    machine.api.wait_for("ALPHA", 1);
    machine.api.release("ALPHA");
    run.wait().exits(0).prints(POSITIVE);

    let fresh = machine.api.request("BRAVO");
    assert_eq!(fresh.texts.len(), 1, "{fresh:#?}");
    let opened = machine.records("step_finished")[0]["new_session"].clone();
    assert_eq!(opened, fresh.session.as_str());
    assert!(!machine.streams().contains(&"main-2-0.jsonl".to_owned()), "{:?}", machine.streams());
    assert!(machine.processes().is_empty(), "{:?}", machine.processes());
}
