//! The artifacts of roles.

use super::{AWAIT, Play, SEND, state};

const LOG: &str = "(action (log \"~a\" (artifact a)))";

#[test]
fn artifact_is_diff_since_program_start() {
    let text = state(&format!("{SEND} {AWAIT} {LOG}"));
    let mut play = Play::before(&text).repository("");
    play.go().answers("a", "I have done it");
    assert_eq!(play.shown, ["\"\" since c0 of \"\""]);
}

#[test]
fn artifact_without_repository_is_last_answer() {
    let mut play = Play::of(&state(&format!("{SEND} {AWAIT} {LOG}")));
    assert_eq!(play.answers("a", "I have done it").shown, ["I have done it"]);
}

#[test]
fn each_working_directory_has_its_own_artifact_base() {
    let text = "(workflow w (roles (a :cwd one) (b :cwd two))
        (state s (action (send-prompt :agent a :template x :request-id x) (send-prompt :agent b :template y :request-id y))
            (await (and (transcript-response :request-id x) (transcript-response :request-id y)))
            (action (log \"~a, ~a\" (artifact a) (artifact b)))))";
    let mut play = Play::before(text).repository("two");
    play.go().answers("a", "done").answers("b", "done, too");
    assert_eq!(play.shown, ["done, \"two\" since c0 of \"two\""]);
}

#[test]
fn artifact_of_role_never_asked_is_empty_with_warning() {
    let mut play = Play::before(&state(LOG)).repository("");
    assert_eq!(
        play.go().shown,
        ["warning: (artifact a) is empty: nothing has been asked of a so far", ""]
    );
}

#[test]
fn branch_condition_can_match_artifact() {
    let body = format!(
        "{SEND} {AWAIT} (branch (on (matches (artifact a) \"since c0\") (terminal :result diff))
         (on (matches (artifact a) \"done\") (terminal :result answer)))"
    );
    let mut play = Play::before(&state(&body)).repository("");
    assert_eq!(play.go().answers("a", "done").ended(), "diff");
    let mut play = Play::of(&state(&body));
    assert_eq!(play.answers("a", "done").ended(), "answer");
}
