//! Commands that are killed at a call on a file: the next command removes what they have left.

use std::path::Path;

use crate::support::{FAULTY, Test, always, when};

/// Starts a command again and again in places of its own, and kills it at one of its calls on files below `root`, then at a
/// later one, until it comes to its end. After each kill, `next` is what a person does next, and checks what is left.
fn kill_at_each_call(
    step: usize,
    place: impl Fn() -> Test,
    root: impl Fn(&Test) -> std::path::PathBuf,
    arguments: &[&str],
    next: impl Fn(&Test, &str),
) {
    let Some(program) = FAULTY.as_deref().and_then(Path::to_str) else { return };
    for at in (1..).step_by(step) {
        let test = place();
        let (below, log) = (root(&test), test.root().join("counted"));
        let words = ["any", &at.to_string(), "kill", text(&below), text(&log)];
        let outcome = test.start_by(program, &words, arguments).wait();
        if !outcome.killed() {
            outcome.ok();
            assert!(at > 1, "it has such calls");
            return;
        }
        next(&test, &format!("killed at call {at}"));
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Returns the names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns a place with a run that has ended.
fn ended() -> Test {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    test
}

#[test]
fn killed_import_leaves_nothing_and_can_be_repeated() {
    let states: Vec<String> =
        (0..10).map(|number| format!("  S{number}: do {number} <result>x</result>\n")).collect();
    let states = states.concat();
    let file = format!("name: Big\nstates:\n{states}");
    let import = ["import", "big.yaml", "-o", "imp"];
    let place = || Test::new().file("big.yaml", file.as_bytes());
    let imported = |test: &Test| names(&test.flow().join("imp"));
    let whole = place();
    whole.raymond(&import).ok();
    kill_at_each_call(3, place, Test::flow, &import, |test, context| {
        if imported(test).is_empty() {
            test.raymond(&import).ok();
        }
        assert_eq!(imported(test), imported(&whole), "{context}: it is whole");
        assert_eq!(names(&test.flow()), ["big.yaml", "imp"], "{context}");
    });
}

#[test]
fn killed_record_leaves_no_draft() {
    let record = ["record", "t", "-o", "../cas", "--force"];
    kill_at_each_call(
        2,
        ended,
        |test| test.root().join(""),
        &record,
        |test, context| {
            test.raymond(&record).ok();
            let mut left = names(test.root());
            left.retain(|name| name.contains("cas"));
            assert_eq!(left, ["cas"], "{context}");
            assert_eq!(names(&test.root().join("cas")).len(), 2, "{context}");
        },
    );
}

#[test]
fn killed_clean_leaves_no_seal() {
    let clean = ["clean", "t", "--yes"];
    kill_at_each_call(
        2,
        ended,
        |test| test.root().join(""),
        &clean,
        |test, context| {
            // The run may be gone already; then there is none of that name.
            test.raymond(&clean).code_in(&[0, 64]);
            let seals = test.root().join("home/.local/state/raymond/runs");
            assert!(names(&seals).is_empty(), "{context}: {:?}", names(&seals));
            assert!(names(&test.dir().join("runs")).is_empty(), "{context}");
        },
    );
}

#[test]
fn killed_trust_leaves_no_draft() {
    let trust = ["trust", "."];
    let graph = r#"
name: flow
version: "1.0.0"
description: Runs a command.
entry_preconditions: []
initial_state: { flags: {}, computed: {} }
start_node: a
nodes:
  a:
    type: action
    actions:
      - { type: bash_exec, command: "true" }
    on_success: done
    on_failure: done
endings:
  done: { type: success, message: Done }
"#;
    let place = || Test::new().file("workflow.yaml", graph.as_bytes());
    kill_at_each_call(
        1,
        place,
        |test| test.root().join(""),
        &trust,
        |test, context| {
            test.raymond(&trust).ok();
            let state = test.root().join("home/.local/state/raymond");
            assert_eq!(names(&state), ["key", "trust"], "{context}");
            assert_eq!(names(&state.join("trust")).len(), 1, "{context}");
        },
    );
}

#[test]
fn killed_answer_leaves_no_draft() {
    let place = || {
        let asks = r#"<ask next="DONE.md">Which?</ask>"#;
        let test = Test::new()
            .prompt("START.md", "start")
            .prompt("DONE.md", "done")
            .rule(when("start").reply(asks))
            .rule(when("done").reply("<result>ok</result>"));
        test.run(&["START.md"]).code(2);
        test
    };
    let inbox = |test: &Test| test.run_dir().join("inbox");
    kill_at_each_call(1, place, inbox, &["answer", "t", "DONE.md=this"], |test, context| {
        test.raymond(&["answer", "t", "DONE.md=this"]).code_in(&[0, 64]);
        test.resume(&[]).ok();
        let left: Vec<String> = names(&inbox(test))
            .into_iter()
            .filter(|name| Path::new(name).extension().is_some_and(|end| end == "new"))
            .collect();
        assert!(left.is_empty(), "{context}: {left:?}");
    });
}
