//! Programs in branches: the facts are as they were, and signals that came later are not seen.

use super::{holds, program, signal, written};
use crate::support::{Test, when};

#[test]
fn branch_does_not_see_signals_that_came_after_the_cut() {
    let test = program(
        "(state s (wait (signal first)) (action (send-prompt :agent a :template ask :request-id r)
            (await (transcript-response :request-id r))) (wait (signal second)) (terminal :result (signal second)))",
    )
    .rule(when("ask").reply("asked"));
    signal(&test, "first", "k", "one");
    let mut live = test.spawn(&["p.lisp", "--on-wait", "stay"]);
    live.wait_for("it waits again", |test| test.calls().len() == 1);
    signal(&test, "second", "k", "old");
    live.wait().ok().ended("main", "old");
    // The request and the advance of its program are one.
    let journal = test.journal();
    let asked = journal.iter().position(|record| record["event"] == "role_requested");
    let at = journal[asked.expect("asked") + 1]["seq"].to_string();
    let mut live = test.start(&["branch", "t", "--id", "b", "--at", &at, "--on-wait", "stay"]);
    live.wait_for("it has asked again", |test| test.calls().len() == 2);
    live.wait_stderr("waits for");
    signal(&test, "second", "k", "new");
    live.wait().ok().ended("main", "new");
}

/// Returns the number of the record with which the program waits for the answer of its role.
fn asked(test: &Test) -> String {
    let journal = test.journal();
    let asked = journal.iter().position(|record| record["event"] == "role_requested");
    // The request and the advance of its program are one.
    journal[asked.expect("asked") + 1]["seq"].to_string()
}

#[test]
fn fact_that_was_taken_after_the_cut_is_taken_again_once() {
    let test = program(
        "(state s (action (send-prompt :agent a :template ask :request-id r)
            (await (transcript-response :request-id r))) (wait (signal job :consume true :as job))
            (action (log \"took ~a\" @job))
            (wait (signal job :consume true :as next)) (terminal :result @next))",
    )
    .rule(when("ask").reply("asked"));
    signal(&test, "job", "k", "one");
    let mut live = test.spawn(&["p.lisp", "--on-wait", "stay"]);
    live.wait_stderr("waits for (signal job)");
    signal(&test, "job", "k", "two");
    live.wait().ok().ended("main", "two");
    assert!(holds(&test).is_empty());
    let at = asked(&test);
    for id in ["b", "c"] {
        let mut live = test.start(&["branch", "t", "--id", id, "--at", &at, "--on-wait", "stay"]);
        live.wait_stderr("waits for (signal job)");
        // It has taken `one`, and does not see `two`, which came later.
        let new = format!("three of {id}");
        signal(&test, "job", "k", &new);
        live.wait().ok().ended("main", &new).stderr_has("took one");
    }
    // One that is killed after the taking has taken it once.
    let mut live = test.start(&["branch", "t", "--id", "d", "--at", &at, "--on-wait", "stay"]);
    live.wait_stderr("waits for (signal job)");
    live.kill9();
    signal(&test, "job", "k", "four");
    test.raymond(&["run", "d", "--on-wait", "exit"]).ok().ended("main", "four");
    test.raymond(&["log", "d"]).ok().stdout_has("took one");
}

#[test]
fn rewound_run_publishes_its_state_under_the_label_of_the_other() {
    let test = written(
        "(workflow w (metadata (publish-state true)) (roles (a)) (state s
            (action (send-prompt :agent a :template ask :request-id r)
            (await (transcript-response :request-id r))) (wait (signal go)) (terminal :result @label)))",
    )
    .rule(when("ask").reply("asked"));
    let label = ["--label", "feature"];
    let mut live = test.start(&[&["run", "--on-wait", "stay", "p.lisp"], &label[..]].concat());
    live.wait_stderr("waits for");
    test.raymond(&["rewind", "feature", "--to", "1"])
        .code(64)
        .stderr_has("feature is running")
        .stderr_has("raymond stop feature");
    signal(&test, "go", "k", "now");
    live.wait().ok().ended("main", "feature");
    let source = |test: &Test| {
        let facts = test.raymond(&["facts", "--json"]).ok().json_items();
        let own = facts
            .into_iter()
            .find(|fact| fact["label"] == "workflow/state" && fact["key"] == "feature");
        let own = own.expect("a state");
        (own["key"].clone(), own["value"].clone(), own["source"].clone())
    };
    let state = |value: &str, source: &str| ("feature".into(), value.into(), source.into());
    assert_eq!(source(&test), state("completed", "feature/main"));
    let log = test.raymond(&["log", "feature", "--json"]).ok().json_lines();
    let at = log.iter().position(|record| record["event"] == "role_requested").expect("asked") + 2;
    let to = ["--to", &at.to_string()];
    let dry = test.raymond(&[&["rewind", "feature", "--dry-run"], &to[..]].concat());
    dry.ok().stdout_has("are dropped");
    test.raymond(&["signal", "go", "--key", "k", "--retract"]).ok();
    let mut live =
        test.start(&[&["rewind", "feature", "--id", "b", "--on-wait", "stay"], &to[..]].concat());
    live.wait_stderr("waits for");
    assert_eq!(source(&test), state("running s", "b/main"));
    signal(&test, "go", "k", "again");
    live.wait().ok().ended("main", "feature");
    assert_eq!(source(&test), state("completed", "b/main"));
    test.raymond(&["status", "feature"]).ok();
    // A branch has its own label, and leaves that of the others alone.
    test.raymond(&["signal", "go", "--key", "k", "--retract"]).ok();
    let mut live = test.start(
        &[&["branch", "feature", "--id", "c", "--on-wait", "stay", "--at"], &to[1..]].concat(),
    );
    live.wait_stderr("waits for");
    signal(&test, "go", "k", "once more");
    live.wait().ok().ended("main", "c");
    assert_eq!(source(&test), state("completed", "b/main"));
}
