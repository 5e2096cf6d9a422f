//! Commands: their values, their failures, and their places in loops and in `for-each`.

use serde_json::{Value, json};

use super::{Play, program, state};

fn output(code: i64, stdout: &str) -> Value {
    json!({"exit_code": code, "stdout": stdout, "stderr": "oh\n\n"})
}

/// Plays a program whose commands have these outcomes.
fn played(text: &str, outputs: impl IntoIterator<Item = Result<Value, String>>) -> Play {
    let mut play = Play::before(text);
    play.outputs.extend(outputs);
    play.go();
    play
}

#[test]
fn output_of_command_is_taken_under_its_name() {
    let text = state(
        "(action (run :command \"echo \\\"$1\\\"\" :args (@context/k) :as x) (log \"~a|~a|~a\" @x @x/exit-code @x/stderr))",
    );
    let play = played(&text, [Ok(output(3, "out\nput\n"))]);
    assert_eq!(play.shown, ["out\nput|3|oh"]);
    assert_eq!(play.done, ["run echo \"$1\" [\"v\"]"]);
    assert_eq!(play.completed_in(), "s");
}

#[test]
fn program_sees_whether_a_command_was_skipped() {
    let text = state(
        "(action (run :command a :unless b :as x)) (branch (on (equals @x/skipped true) (terminal :result before)) (otherwise (terminal :result now)))",
    );
    let skipped = json!({"exit_code": 0, "stdout": "", "stderr": "", "skipped": true});
    assert_eq!(played(&text, [Ok(skipped)]).ended(), "before");
    assert_eq!(played(&text, [Ok(output(0, ""))]).ended(), "now");
}

#[test]
fn failed_command_fails_program_or_leads_to_its_state() {
    let fails = |run: &str| {
        let bad = "(state bad (terminal :result @x/stderr))";
        program(&[&format!("(state s (action {run}))"), "(state t (terminal))", bad])
    };
    let why = || Err("it was not there".to_owned());
    let play = played(&state("(action (run :command a))"), [why()]);
    assert_eq!(play.ended(), "p.lisp:2:18: it was not there");
    let text = fails("(run :command a :as x :on-error bad)");
    let play = played(&text, [why()]);
    assert_eq!(play.ended(), "it was not there");
    assert_eq!(play.shown, ["warning: (run :command \"a\") failed: it was not there"]);
    let play = played(&text, [Ok(output(1, ""))]);
    assert_eq!(play.ended(), "oh", "the exit code is not 0");
    assert_eq!(play.shown, ["warning: (run :command \"a\") exited with code 1: oh"]);
    assert_eq!(played(&text, [Ok(output(0, ""))]).completed_in(), "t");
}

#[test]
fn loop_may_wait_for_command_alone() {
    let text = state(
        "(loop (action (run :command make :as made)) (branch (on (equals @made/exit-code 0) (break))))",
    );
    let play = played(&text, [Ok(output(2, "")), Ok(output(2, "")), Ok(output(0, ""))]);
    assert_eq!((play.done.len(), play.completed_in()), (3, "s".to_owned()));
}

#[test]
fn each_element_has_its_output() {
    let text = state(
        "(for-each n in (one two) (run :command n :args (@n) :as x) (wait (signal go)) (log \"~a ~a\" @n @x)) (terminal :result @x/two)",
    );
    let mut play = played(&text, [Ok(output(0, "1")), Ok(output(0, "2"))]);
    play.fact("go", "", "");
    assert_eq!(play.shown, ["one 1", "two 2"]);
    assert_eq!(play.ended(), "2");
}

#[test]
fn equals_compares_values_as_texts() {
    let text = state(
        "(action (run :command a :as x)) (branch (on (not (equals @x \"5\")) (terminal :result other)) (otherwise (terminal :result same)))",
    );
    assert_eq!(played(&text, [Ok(output(0, "5\n"))]).ended(), "same");
    assert_eq!(played(&text, [Ok(output(0, "05"))]).ended(), "other");
}

#[test]
fn wait_for_equal_value_ends_when_fact_has_it() {
    let mut play = Play::of(&state("(wait (equals (signal color) blue))"));
    assert_eq!(play.awaiting(), "(equals (signal color) blue)");
    assert!(play.waits_for_outside());
    play.fact("color", "", "red");
    assert!(!play.is_over());
    play.fact("color", "", "blue");
    assert_eq!(play.completed_in(), "s");
}
