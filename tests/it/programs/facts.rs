//! Facts in programs: they hold until they are retracted, are taken once, and may be asserted by anyone at
//! any time.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{ask, holds, logged, program, route, signal, written};
use crate::support::{Test, wait_until, when};

#[test]
fn fact_counts_whether_asserted_before_or_during_the_wait() {
    let test = program(
        "(state s (wait (signal before)) (wait (signal down :key @workflow-id :equals yes)) (wait (signal up)))",
    );
    signal(&test, "before", "any", "");
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("it waits", |test| route(test, "main").len() == 1);
    signal(&test, "down", "t", "no");
    signal(&test, "before", "another", "");
    live.wait_for("it has looked", |test| test.events("facts_seen").len() == 2);
    assert!(!test.events("facts_seen")[1].to_string().contains("down"), "it can never matter");
    live.signal(Signal::KILL);
    assert!(live.wait().killed());
    assert_eq!(route(&test, "main").len(), 1, "another payload does not count");
    signal(&test, "down", "t", "yes");
    let mut live = test.spawn_resumed(&[]);
    live.wait_for("it goes on", |test| route(test, "main").len() == 2);
    signal(&test, "up", "", "");
    live.wait().ok();
    assert_eq!(
        route(&test, "main"),
        ["s waiting (signal down :key t :equals yes)", "s waiting (signal up)", "s completed"]
    );
}

#[test]
fn fact_whose_payload_no_longer_matches_counts_as_retracted() {
    let test = program(
        "(state s (wait (and (signal go) (not (signal hold :equals yes))) :timeout \"1h\") (terminal :result (signal go)))",
    );
    signal(&test, "hold", "k", "yes");
    signal(&test, "go", "", "done");
    let mut live = test.spawn(&["p.lisp", "--on-wait", "stay"]);
    live.wait_for("it is held", |test| test.events("facts_seen").len() == 1);
    signal(&test, "hold", "k", "no");
    live.wait().ok().ended("main", "done");
    let seen = test.events("facts_seen")[1]["changes"].clone();
    assert_eq!(seen, serde_json::json!([{ "retracted": { "label": "hold", "key": "k" } }]));
}

#[test]
fn retracted_fact_does_not_count() {
    let test =
        program("(state s (wait (signal first)) (wait (and (signal go) (not (signal hold)))))");
    signal(&test, "go", "", "");
    signal(&test, "hold", "", "");
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("it waits", |test| route(test, "main").len() == 1);
    signal(&test, "first", "", "");
    live.wait_for("it is held", |test| route(test, "main").len() == 2);
    test.raymond(&["signal", "hold", "--retract"]).ok();
    live.wait().ok();
}

#[test]
fn facts_of_a_program_persist_until_it_retracts_them() {
    let test = program(
        "(state s (action (assert said :key @workflow-id :value \"some text\") (assert gone :key k) (retract gone :key k))
            (wait (signal said :key t :equals \"some text\")) (terminal :result (signal said)))",
    );
    test.run(&["p.lisp"]).ok().ended("main", "some text");
    assert_eq!(holds(&test), ["said t=some text"]);
    let facts = test.raymond(&["facts", "--json"]).ok().json();
    assert_eq!(facts[0]["source"], "t/main");
}

/// A program that takes jobs until it is told to stop.
const TAKES: &str = "(workflow w (metadata (max-iterations 100))
    (state s (loop
        (wait (or (signal job) (signal stop)))
        (branch (on (signal stop) (goto end)))
        (wait (signal job :consume true :as job) :timeout \"1ms\" :on-timeout s)
        (action (log \"~a\" @job))))
    (state end (terminal)))";

#[test]
fn fact_is_claimed_by_exactly_one_of_several_runs() {
    const RUNS: [&str; 4] = ["r1", "r2", "r3", "r4"];
    let test = Test::new().file("p.lisp", TAKES.as_bytes());
    let started: Vec<_> = RUNS
        .iter()
        .map(|id| test.start(&["run", "p.lisp", "--id", id, "--on-wait", "stay"]))
        .collect();
    for number in 0..20 {
        signal(&test, "job", &format!("k{number}"), &number.to_string());
    }
    wait_until("all jobs are taken", || holds(&test).is_empty());
    signal(&test, "stop", "", "");
    for live in started {
        live.wait().ok();
    }
    let mut taken = Vec::new();
    for run in RUNS {
        let lines = test.raymond(&["log", run, "--json"]).ok().json_lines();
        let logs = lines.iter().filter(|line| line["event"] == "program_logged");
        taken.extend(logs.map(|line| line["text"].as_str().unwrap_or_default().to_owned()));
    }
    assert_eq!(taken.len(), 20, "{taken:?}");
    assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 20, "{taken:?}");
}

#[test]
fn value_of_a_taken_fact_is_in_the_prompt_of_a_role() {
    let test = program(&format!(
        "(state s (wait (signal job :consume true :as job)) {} (terminal :result (feedback a)))",
        "(action (send-prompt :agent a :template \"do ~a\" :args (@job) :request-id r) (await (transcript-response :request-id r)))"
    ))
    .rule(when("do the dishes").reply("done"));
    signal(&test, "job", "1", "the dishes");
    test.run(&["p.lisp"]).ok().ended("main", "done");
    assert!(holds(&test).is_empty());
}

#[test]
fn fact_asserted_during_turn_is_seen_right_after_it() {
    // A fact that is asserted while a role works is seen before the program acts on its answer.
    let asked = ask("a", "work", "r");
    let test = program(&format!(
        "(state s {asked} (branch (on (signal ready :key @workflow-id) (action (log \"seen\"))) (otherwise (action (log \"missed\")))))"
    ))
    .rule(when("work").hold_before("go").reply("done"));
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_calls(1);
    signal(&test, "ready", "t", "");
    test.release("go");
    live.wait().ok();
    assert_eq!(logged(&test), ["seen"]);
}

#[test]
fn refused_duplicate_label_leaves_claims_of_existing_run() {
    let test = program("(state s (wait (signal go :consume true)) (wait (signal more)))");
    signal(&test, "go", "", "");
    test.run(&["p.lisp", "--on-wait", "exit"]).code(2);
    let facts = test.dir().join("dataspace/facts");
    let before = std::fs::read_to_string(&facts).expect("facts");
    assert!(before.contains("\"claimed\""), "{before}");
    test.raymond(&["run", "p.lisp", "--label", "t"]).code(64);
    let after = std::fs::read_to_string(&facts).expect("facts");
    assert!(after == before, "the claim is the other run's: {after}");
}

#[test]
fn appended_values_are_taken_in_their_order() {
    let test = written(
        "(workflow w (state s (loop (wait (signal job :consume true :as job))
          (branch (on (equals @job stop) (break))) (action (log \"~a\" @job)))))",
    );
    let append = |value: &str| {
        test.raymond(&["signal", "job", "--value", value, "--append"]).ok().stdout.clone()
    };
    assert!(append("one").starts_with("job is asserted"));
    assert_eq!(append("two"), "job is appended; one value is before it\n");
    assert_eq!(append("one"), "job is appended; 2 values are before it\n");
    let said = test.raymond(&["signal", "job", "--value", "stop", "--append", "--json"]);
    assert_eq!(said.ok().json()["before"], 3);
    assert_eq!(holds(&test), ["job =one"]);
    test.run(&["p.lisp"]).ok();
    assert_eq!(logged(&test), ["one", "two", "one"]);
    assert!(holds(&test).is_empty());
    append("x");
    append("y");
    let said = test.raymond(&["signal", "job", "--value", "z"]);
    said.ok().stdout_has("it replaces `x` and 1 behind it, which no program had taken");
}

#[test]
fn program_waits_for_state_of_another_run() {
    let test = written(
        "(workflow w (metadata (publish-state true))
          (state work (wait (signal go :key @label))) (state review (wait (signal go :key @label :consume true))))",
    )
    .file(
        "q.lisp",
        b"(workflow q (state s
          (wait (matches (signal workflow/state :key t) \"^running work$\"))
          (action (assert go :key t))
          (wait (signal workflow/state :key t :equals completed))
          (terminal :result seen)))",
    );
    let other = test.spawn(&["q.lisp", "--id", "other"]);
    test.run(&["p.lisp"]).ok();
    other.wait().ok().ended("main", "seen");
    let instance = "workflow-instance t=(workflow-instance :definition w :label t)";
    assert_eq!(holds(&test), [instance, "workflow/state t=completed"]);
}

#[test]
fn assertion_of_a_program_warns_of_the_values_that_it_replaces() {
    let test = program("(state s (action (assert job :value new) (assert job :value new)))");
    for value in ["one", "two"] {
        test.raymond(&["signal", "job", "--value", value, "--append"]).ok();
    }
    let warning =
        "(assert job :key \"\") replaces \"one\" and 1 behind it, which no program had taken";
    test.run(&["p.lisp"]).ok().stderr_has(warning);
    assert_eq!(logged(&test), [warning]);
    assert_eq!(holds(&test), ["job =new"]);
}
