//! The artifacts of roles.

use super::{AWAIT, Play, SEND, state};

const LOG: &str = "(action (log \"~a\" (artifact a)))";

#[test]
fn work_is_compared_with_where_the_instance_began() {
    let text = state(&format!("{SEND} {AWAIT} {LOG}"));
    let mut play = Play::before(&text).repository("");
    play.go().answers("a", "I have done it");
    assert_eq!(play.said, ["\"\" since c0 of \"\""]);
}

#[test]
fn where_there_is_no_repository_the_last_answer_is_the_work() {
    let mut play = Play::of(&state(&format!("{SEND} {AWAIT} {LOG}")));
    assert_eq!(play.answers("a", "I have done it").said, ["I have done it"]);
}

#[test]
fn each_directory_has_its_own_base() {
    let text = "(workflow w (roles (a :cwd one) (b :cwd two))
        (state s (action (send-prompt :agent a :template x :request-id x) (send-prompt :agent b :template y :request-id y))
            (await (and (transcript-response :request-id x) (transcript-response :request-id y)))
            (action (log \"~a, ~a\" (artifact a) (artifact b)))))";
    let mut play = Play::before(text).repository("two");
    play.go().answers("a", "done").answers("b", "done, too");
    assert_eq!(play.said, ["done, \"two\" since c0 of \"two\""]);
}

#[test]
fn who_was_never_asked_has_no_work_though_there_is_a_repository() {
    let mut play = Play::before(&state(LOG)).repository("");
    assert_eq!(
        play.go().said,
        ["warning: (artifact a) is empty: nothing has been asked of a so far", ""]
    );
}

#[test]
fn work_can_be_looked_at_by_a_condition() {
    let body = format!(
        "{SEND} {AWAIT} (branch (on (matches (artifact a) \"since c0\") (terminal :result diff))
         (on (matches (artifact a) \"done\") (terminal :result answer)))"
    );
    let mut play = Play::before(&state(&body)).repository("");
    assert_eq!(play.go().answers("a", "done").ended(), "diff");
    let mut play = Play::of(&state(&body));
    assert_eq!(play.answers("a", "done").ended(), "answer");
}
