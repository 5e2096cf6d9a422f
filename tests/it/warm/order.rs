//! The order of turns in a fan-out with few processes: each worker is finished before others begin.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{FakeCall, Test, always, when};

/// The number of workers, each of which has two turns.
const WORKERS: usize = 24;

/// The number of processes that may live at the same time.
const PERMITS: usize = 3;

/// Returns a test in which START forks the workers at `first`, and JOIN waits for them.
fn fan_out(first: &str) -> Test {
    let items: Vec<usize> = (1..=WORKERS).collect();
    let fork = format!("<fork next=\"JOIN.md\" each=\"items.json\">{first}</fork>");
    Test::new()
        .prompt("START.md", "start")
        .prompt("JOIN.md", "---\njoin: all\n---\nall joined")
        .file("items.json", json!(items).to_string().as_bytes())
        .rule(when("start").reply(&fork))
        .rule(when("all joined").reply("<result>ok</result>"))
}

/// Runs it to its end, and returns the turns of the workers.
#[track_caller]
fn run(test: &Test, options: &[&str]) -> Vec<FakeCall> {
    let turns = run_all(test, options);
    assert_eq!(turns.len(), 2 * WORKERS);
    turns
}

/// Runs it to its end, and returns the turns of the workers and of the agents below them.
#[track_caller]
fn run_all(test: &Test, options: &[&str]) -> Vec<FakeCall> {
    let permits = PERMITS.to_string();
    let usual = ["START.md", "--max-procs", &permits, "--stagger", "0s"];
    test.run(&[&usual, options].concat()).ok().ended("main", "ok");
    test.calls().into_iter().filter(|call| call.agent() != "main").collect()
}

/// Returns the maximum number of workers that have begun and whose last turn has not.
fn most_open(turns: &[FakeCall]) -> usize {
    let mut had: BTreeMap<&str, usize> = BTreeMap::new();
    let open = turns.iter().map(|turn| {
        *had.entry(turn.agent()).or_default() += 1;
        had.values().filter(|&&count| count == 1).count()
    });
    open.max().unwrap_or_default()
}

/// Returns the number of processes of a run.
fn processes(test: &Test) -> usize {
    FakeCall::warm_pids(&test.call_log()).len()
}

fn two_states() -> Test {
    fan_out("ONE.md")
        .prompt("ONE.md", "one {{item}}")
        .prompt("TWO.md", "two")
        .rule(when("one").reply("<goto>TWO.md</goto>"))
        .rule(when("two").reply("<result>done</result>"))
}

#[test]
fn workers_of_two_states_take_one_process_each() {
    let test = two_states();
    let turns = run(&test, &[]);
    assert!(most_open(&turns) <= PERMITS, "{} workers at once", most_open(&turns));
    assert!(processes(&test) <= 27, "{} processes for 50 turns", processes(&test));
}

#[test]
fn order_breadth_runs_all_first_states_first() {
    let test = two_states();
    let turns = run(&test, &["--order", "breadth"]);
    assert!(most_open(&turns) > WORKERS - PERMITS, "{} workers at once", most_open(&turns));
}

#[test]
fn reminded_workers_go_before_new_ones() {
    let test = fan_out("ONE.md")
        .prompt("ONE.md", "---\nallowed_transitions:\n  - { tag: result }\n  - { tag: goto, target: ONE.md }\n---\nfirst of {{item}}")
        .rule(when("first of").reply("no tag"))
        .rule(always().reply("<result>done</result>"));
    let turns = run(&test, &[]);
    assert!(most_open(&turns) <= PERMITS, "{} workers at once", most_open(&turns));
    assert!(processes(&test) <= 27, "{} processes for 50 turns", processes(&test));
}

#[test]
fn called_workers_return_before_new_ones_begin() {
    let test = fan_out("ONE.md")
        .prompt("ONE.md", "one {{item}}")
        .prompt("SUB.md", "two")
        .rule(when("one").reply("<reset>SUB.md</reset>"))
        .rule(when("two").reply("<result>done</result>"));
    let turns = run(&test, &[]);
    assert!(most_open(&turns) <= PERMITS, "{} workers at once", most_open(&turns));
}

#[test]
fn caller_goes_on_before_new_workers_begin() {
    let test = fan_out("ONE.md")
        .prompt("ONE.md", "one {{item}}")
        .prompt("SUB.md", "sub")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("one").reply("<call return=\"BACK.md\">SUB.md</call>"))
        .rule(when("sub").reply("<result>found</result>"))
        .rule(when("back").reply("<result>done</result>"));
    let turns = run_all(&test, &[]);
    assert_eq!(turns.len(), 3 * WORKERS);
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for turn in &turns {
        *open.entry(turn.agent()).or_default() += 1;
        let count = open.values().filter(|&&had| (1..3).contains(&had)).count();
        assert!(count <= PERMITS, "{count} workers at once");
    }
}

#[test]
fn joined_workers_go_on_before_most_new_ones_begin() {
    let test = fan_out("ONE.md")
        .prompt("ONE.md", "one {{item}}")
        .prompt("HELP.md", "help")
        .prompt("TWO.md", "---\njoin: all\n---\ntwo")
        .rule(when("one").reply("<fork next=\"TWO.md\">HELP.md</fork>"))
        .rule(when("help").reply("<result>helped</result>"))
        .rule(when("two").reply("<result>done</result>"));
    let mut turns = run_all(&test, &[]);
    assert_eq!(turns.len(), 3 * WORKERS);
    turns.retain(|turn| turn.agent().matches('.').count() == 1);
    // Workers and their helpers are families of their own, which take turns.
    assert!(most_open(&turns) <= 2 * PERMITS, "{} workers at once", most_open(&turns));
}

#[test]
fn roles_answer_their_second_request_before_new_programs_begin() {
    let program = "(workflow w (roles (a))
        (state s
            (action (send-prompt :agent a :template \"one\" :request-id r))
            (await (transcript-response :request-id r))
            (action (send-prompt :agent a :template \"two\" :request-id q))
            (await (transcript-response :request-id q))
            (terminal :result (response q))))";
    let test = fan_out("p.lisp").file("p.lisp", program.as_bytes()).rule(always().reply("fine"));
    let turns = run(&test, &[]);
    assert!(most_open(&turns) <= PERMITS, "{} roles at once", most_open(&turns));
    assert!(processes(&test) <= 27, "{} processes for 50 turns", processes(&test));
}

#[test]
fn graphs_ask_their_second_node_before_new_graphs_begin() {
    let ask = |next: &str| json!({"type": "reference", "doc": "guide.md", "next_node": next, "on_failure": "failed"});
    let graph = json!({
        "name": "two", "version": "1.0.0", "description": "two turns", "entry_preconditions": [], "initial_state": {}, "start_node": "one",
        "nodes": { "one": ask("two"), "two": ask("done") },
        "endings": {
            "done": { "type": "success", "message": "done" },
            "failed": { "type": "error", "message": "failed" },
        },
    });
    let test = fan_out("work.yaml")
        .file("work.yaml", graph.to_string().as_bytes())
        .file("guide.md", b"# Guide\n\nRead it.\n")
        .rule(always().reply(r#"<result>{"status":"ok","outputs":{}}</result>"#));
    let turns = run(&test, &[]);
    assert!(most_open(&turns) <= PERMITS, "{} graphs at once", most_open(&turns));
}
