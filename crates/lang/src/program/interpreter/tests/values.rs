//! The values of arguments.

use super::{AWAIT, Play, SEND, program, state};
use raymond_model::graph_execution::RequestStatus;

#[test]
fn log_template_is_filled_in_one_pass() {
    let body = "(action (log \"~a ~a ~a ~a ~~ ~a\" @workflow-id @label @context/k 5 \"~a\"))";
    assert_eq!(Play::of(&state(body)).shown, ["r l v 5 ~ ~a"], "what is put in is not looked at");
}

#[test]
fn missing_signal_value_is_awaited_and_survives_retraction() {
    let send =
        "(action (send-prompt :agent a :template \"~a and ~a\" :args ((signal x) (signal y))))";
    let mut play = Play::of(&state(send));
    assert_eq!(play.awaiting(), "(signal x)");
    play.fact("x", "", "one");
    assert_eq!(play.awaiting(), "(signal y)");
    play.retract("x", "");
    assert_eq!(play.awaiting(), "(signal y)", "what is known stays");
    play.fact("x", "", "late").fact("y", "", "two");
    assert_eq!(play.asked, ["a: one and two"]);
}

#[test]
fn pending_response_used_as_value_is_awaited() {
    let send = "(action (send-prompt :agent b :template \"~a\" :args ((response r))))";
    let mut play = Play::of(&state(&format!("{SEND} {send}")));
    assert_eq!(play.awaiting(), "(transcript-response :request-id r)");
    play.answers("a", "text of a");
    assert_eq!(play.asked, ["a: go", "b: text of a"]);
}

#[test]
fn feedback_is_last_answer_of_its_role() {
    let ask = |role: &str, template: &str, id: &str| {
        format!(
            "(action (send-prompt :agent {role} :template \"{template}\" :request-id {id}) (await (transcript-response :request-id {id})))"
        )
    };
    let body = [
        ask("a", "one", "r1"),
        ask("b", "two", "r2"),
        ask("a", "three", "r3"),
        "(terminal :result (feedback b))".to_owned(),
    ];
    for roles in ["(a) (b)", "(a :handle-ref same) (b :handle-ref same)"] {
        let text = format!("(workflow w (roles {roles}) (state s {}))", body.join(" "));
        let mut play = Play::of(&text);
        play.answers("a", "of a").answers("b", "of b").answers("a", "of a again");
        assert_eq!(play.ended(), "of b", "{roles}");
    }
}

#[test]
fn value_of_role_never_asked_is_empty_with_warning() {
    let mut play = Play::of(&state("(action (log \"<~a~a>\" (feedback a) (artifact b)))"));
    assert_eq!(
        play.go().shown,
        [
            "warning: (feedback a) is empty: nothing has been asked of a so far",
            "warning: (artifact b) is empty: nothing has been asked of b so far",
            "<>",
        ]
    );
}

#[test]
fn feedback_waits_for_a_first_answer() {
    let mut play = Play::of(&state(&format!("{SEND} (action (log \"~a\" (feedback a)))")));
    assert_eq!(play.awaiting(), "(transcript-response :request-id r)");
    assert_eq!(play.answers("a", "there").shown, ["there"]);
}

#[test]
fn response_refers_to_latest_request_of_its_name() {
    let again =
        format!("(loop {SEND} {AWAIT} (branch (on (matches (response r) \"good\") (goto t))))");
    let text =
        program(&[&format!("(state s {again})"), "(state t (terminal :result (response r)))"]);
    let mut play = Play::of(&text);
    play.answers("a", "bad");
    assert_eq!(play.response("r"), &RequestStatus::Pending);
    assert_eq!(play.answers("a", "good").ended(), "good");
    assert_eq!(play.asked.len(), 2);
}

#[test]
fn facts_are_asserted_and_retracted_with_their_values() {
    let body = "(action (assert l :key @workflow-id :value \"v ~a\") (assert m) (retract l :key @context/k))";
    assert_eq!(Play::of(&state(body)).done, ["assert l r v ~a", "assert m  ", "retract l v"]);
    let action = state(
        "(action (assert l :value one)) (wait (signal l :equals one)) (terminal :result (signal l))",
    );
    assert_eq!(Play::of(&action).ended(), "one", "its own facts are facts");
}

#[test]
fn run_folder_passes_its_input() {
    let body = "(action (run-folder :agent a :start \"START.md\" :input @label :request-id r))";
    let play = Play::of(&state(&format!("{body} (terminal :result (response r))")));
    assert_eq!(play.asked, ["a: START.md l"]);
    assert_eq!(play.awaiting(), "(transcript-response :request-id r)");
}

/// Returns a program whose role has a schema, with this at the end of its state.
fn judged(end: &str) -> String {
    let body = format!("{SEND} {AWAIT} {end}");
    format!(
        "(workflow w (roles (a :output verdict.json)) (state s {body}) (state t (terminal :result yes)))"
    )
}

#[test]
fn answer_field_can_be_result_or_branch_condition() {
    let answer = r#"{"verdict":"approve","at":{"line":3}}"#;
    let fields = "(terminal :result (response r :field at.line))";
    let mut play = Play::of(&judged(fields));
    assert_eq!(play.answers("a", answer).ended(), "3");
    let branch = "(branch (on (matches (feedback a :field verdict) \"^approve$\") (goto t)))";
    let mut play = Play::of(&judged(branch));
    assert_eq!(play.answers("a", answer).ended(), "yes");
}

#[test]
fn answer_without_field_fails_and_its_start_is_quoted() {
    let mut play = Play::of(&judged("(terminal :result (response r :field at.line))"));
    let ended = play.answers("a", "no object").ended().to_owned();
    assert!(
        ended.contains("the answer is not one JSON object; it begins with \"no object\""),
        "{ended}"
    );
}

#[test]
fn assertion_that_replaces_another_value_is_warned_of() {
    let body = "(action (assert job :key k :value one) (assert job :key k :value one) (assert job :key k :value two) (assert job :value two))";
    let play = Play::of(&state(body));
    assert_eq!(
        play.shown,
        ["warning: (assert job :key k) replaces \"one\", which no program had taken"]
    );
}
