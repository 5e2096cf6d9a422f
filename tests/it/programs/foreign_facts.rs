//! Facts of the same label for other runs: a run neither sees nor records them.

use raymond::domain::time::Timestamp;
use raymond::store::dataspace::{Dataspace, FactStatement};
use raymond::store::layout::RunsRoot;
use raymond::store::user_state::UserState;
use rustix::process::Signal;

use super::{logged, program, route, signal};
use crate::support::Test;

/// The bytes of each foreign fact.
const FOREIGN_BYTES: usize = 20_000;

/// Asserts facts of a label with these keys, as other runs do.
fn assert_foreign(test: &Test, label: &str, keys: impl Iterator<Item = String>) {
    std::fs::create_dir_all(test.dir()).expect("made");
    let user = UserState::new(test.root().join("home/.local/state/raymond"));
    let space = Dataspace::of(&RunsRoot::new(test.dir())).with_key(&user.key().expect("a key"));
    let value = "x".repeat(FOREIGN_BYTES);
    for key in keys {
        let statement =
            FactStatement { label, key: &key, value: &value, source: "other", at: Timestamp(1) };
        space.assert(statement, None).expect("asserted");
    }
}

fn others(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(|number| format!("run-{number}"))
}

/// Returns the bytes of the journal, and the keys of the facts that the run has seen.
fn recorded(test: &Test) -> (u64, Vec<String>) {
    let bytes = test.journal_file().metadata().expect("a journal").len();
    let changes = test
        .events("facts_seen")
        .into_iter()
        .flat_map(|event| event["changes"].as_array().cloned().unwrap_or_default());
    let key = |change: &serde_json::Value| {
        change.pointer("/asserted/key").and_then(|key| key.as_str()).map(str::to_owned)
    };
    (bytes, changes.filter_map(|change| key(&change)).collect())
}

#[test]
fn thousand_facts_of_other_runs_are_not_recorded_also_after_a_kill() {
    let test = program(
        "(state first (wait (signal plan/ready :key @workflow-id :consume true :as plan)))
         (state later (wait (signal plan/ready :key @context/feature :equals @plan)))",
    );
    assert_foreign(&test, "plan/ready", others(1000));
    let mut live = test.spawn(&["p.lisp", "--context", "feature=feature"]);
    live.wait_for("it waits", |test| route(test, "main").len() == 1);
    live.signal(Signal::KILL);
    assert!(live.wait().killed());
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    assert_foreign(&test, "plan/ready", others(3));
    signal(&test, "plan/ready", "t", "go");
    live.wait_for("it is in the later state", |test| route(test, "main").len() == 2);
    signal(&test, "plan/ready", "feature", "go");
    live.wait().ok();
    let (bytes, keys) = recorded(&test);
    assert_eq!(keys, ["t", "feature"]);
    assert!(bytes < FOREIGN_BYTES as u64, "{bytes} bytes, of less than one foreign fact");
}

#[test]
fn elements_of_for_each_see_the_facts_of_values_that_they_have_taken() {
    let test = program(
        "(state s (for-each x in (one two)
          (wait (signal job :key @x :consume true :as job))
          (branch (on (signal ready :key @job) (action (log \"~a: ~a\" @x (signal ready :key @job))))
            (otherwise (action (log \"~a: missed\" @x))))))",
    );
    assert_foreign(&test, "ready", others(20));
    signal(&test, "ready", "a", "first");
    signal(&test, "ready", "b", "second");
    signal(&test, "job", "one", "a");
    signal(&test, "job", "two", "b");
    test.run(&["p.lisp"]).ok();
    assert_eq!(logged(&test), ["one: first", "two: second"]);
    let (bytes, keys) = recorded(&test);
    assert!(!keys.iter().any(|key| key.starts_with("run-")), "{keys:?}");
    assert!(bytes < FOREIGN_BYTES as u64, "{bytes} bytes");
}
