//! The facts that a program can match: by label, and by the keys and payloads that are known at its position.

use serde_json::json;

use super::{AWAIT, Play, SEND, state};

/// Returns which of the facts `l k=v`, `l k=w` and `l j=v` a program can match.
fn selected(play: &Play) -> [bool; 3] {
    let selection = play.selection();
    [("k", "v"), ("k", "w"), ("j", "v")].map(|(key, value)| selection.has("l", key, value))
}

#[test]
fn facts_are_selected_by_keys_and_payloads_that_are_known_when_the_program_begins() {
    // The run is `r`, the label `l`, and the context's `k` is `v`.
    let table = [
        ("(wait (signal l))", [true, true, true]),
        ("(wait (signal l :key k))", [true, true, false]),
        ("(wait (signal l :equals v))", [true, false, true]),
        ("(wait (signal l :key k :equals v))", [true, false, false]),
        ("(wait (signal l :key @workflow-id))", [false, false, false]),
        ("(wait (signal l :equals @context/k))", [true, false, true]),
        ("(wait (signal l :key k :equals @context/k))", [true, false, false]),
        ("(wait (signal l :key k :equals (signal m)))", [true, true, false]),
        ("(wait (signal l :key (signal m)))", [true, true, true]),
        (
            "(wait (signal l :key j :consume true :as it)) (action (log \"~a\" @it))",
            [false, false, true],
        ),
        (
            "(wait (and (signal m) (not (or (signal l :key k :equals w) (at \"2026-01-15T14:30:00Z\")))))",
            [false, true, false],
        ),
        ("(wait (matches (signal l :key k) \"x\"))", [true, true, false]),
        (
            "(branch (on (signal l :equals w) (goto s)) (otherwise (action (log \"~a\" (signal l :key j)))))",
            [false, true, true],
        ),
        (
            "(action (assert m :key (signal l :key k) :value (signal l :key (signal l :key j))))",
            [true, true, true],
        ),
        ("(action (retract m :key (signal l :key j)))", [false, false, true]),
        ("(terminal :result (signal l :key k))", [true, true, false]),
        ("(action (assert l :key k :value v))", [false, false, false]),
    ];
    for (text, expected) in table {
        assert_eq!(selected(&Play::before(&state(text))), expected, "{text}");
    }
}

#[test]
fn placeholders_in_keys_select_the_facts_of_this_run_alone() {
    let text = "(wait (signal l :key @workflow-id)) (wait (signal l :key @label)) (wait (signal l :key @context/k))";
    let mut play = Play::of(&state(text));
    for key in ["r", "l", "v", "other"] {
        play.assert("l", key, "");
    }
    assert!(play.go().is_over());
    assert_eq!(play.known(), ["l l", "l r", "l v"]);
}

#[test]
fn taken_value_as_key_selects_its_facts_alone_and_none_is_missed() {
    // The branch does not wait, so it has to see the fact right after the value was taken.
    let text = "(loop (wait (signal job :consume true :as job))
        (branch (on (equals @job stop) (break)) (on (signal ready :key @job) (action (log \"~a\" (signal ready :key @job)))) (otherwise (action (log missed)))))";
    let mut play = Play::of(&state(text));
    for key in ["one", "two", "other"] {
        play.assert("ready", key, key);
    }
    assert_eq!(play.fact("job", "", "one").known(), ["ready one"]);
    assert_eq!(play.fact("job", "", "two").known(), ["ready two"]);
    assert_eq!(play.fact("job", "", "three").known(), Vec::<String>::new());
    play.fact("job", "", "stop");
    assert_eq!(play.shown, ["one", "two", "missed"]);
}

#[test]
fn output_of_a_command_as_key_is_looked_up_before_the_next_wait_and_value() {
    let mut play = Play::before(&state(
        "(action (run :command x :as id)) (wait (signal done :key @id :equals @id) :timeout \"1s\")
         (action (run :command y :as id) (log \"~a\" (signal done :key @id)))",
    ));
    play.outputs.extend(["a", "b"].map(|text| Ok(json!({ "stdout": text, "exit_code": 0 }))));
    for key in ["a", "b", "c"] {
        play.assert("done", key, key);
    }
    assert!(play.go().is_over());
    assert_eq!(play.shown, ["b"]);
    assert_eq!(play.known(), ["done b"]);
}

#[test]
fn elements_of_for_each_select_facts_of_their_values() {
    let text = "(for-each x in (one two)
        (wait (signal job :key @x :consume true :as job))
        (branch (on (signal ready :key @job) (action (log \"~a\" (signal ready :key @job)))) (otherwise (action (log missed)))))";
    let mut play = Play::of(&state(text));
    for key in ["a", "b", "c"] {
        play.assert("ready", key, key);
    }
    play.assert("job", "other", "c");
    play.assert("job", "two", "b");
    play.fact("job", "one", "a");
    assert!(play.is_over());
    assert_eq!(play.shown, ["a", "b"]);
    assert_eq!(play.known(), ["ready a", "ready b"]);
}

#[test]
fn answer_as_key_selects_its_facts_once_it_is_there() {
    let text = format!("{SEND} {AWAIT} (branch (on (signal l :key (response r)) (log_it)))");
    let text = text.replace("(log_it)", "(action (log seen))");
    let mut play = Play::of(&state(&text));
    play.assert("l", "yes", "");
    play.assert("l", "no", "");
    assert_eq!(play.go().known(), Vec::<String>::new());
    assert!(play.answers("a", "yes").is_over());
    assert_eq!(play.known(), ["l yes"]);
    assert_eq!(play.shown, ["seen"]);
}
