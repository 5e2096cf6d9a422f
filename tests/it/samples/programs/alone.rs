//! `self-review`, `best-of-two` and `three-reviewers`, which wait only for their own agents.

use super::SampleProgram;

const INPUT: [&str; 2] = ["--input", "A name for a command"];

/// The error of a role without replies.
const NO_REPLIES: &str = "has no replies";

#[test]
fn self_review_revises_until_reviewer_approves() {
    let result = "Steps fall like first snow / the journal keeps every one / nothing melts away";
    let ended = SampleProgram::new("self-review").run(&INPUT);
    ended.assert_outcome(0, &format!("Agent main terminated with result: {result}\n"));
    ended.assert_outcome(0, "answered 2 requests as second-look");
}

#[test]
fn self_review_completes_at_once_if_first_draft_is_approved() {
    let sample = SampleProgram::new("self-review")
        .replies(&[("author", &["tidy"]), ("second-look", &["**APPROVED**"])]);
    sample.run(&INPUT).assert_outcome(0, "Agent main terminated with result: tidy\n");
}

#[test]
fn self_review_fails_at_max_iterations() {
    let sample = SampleProgram::new("self-review")
        .replies(&[("author", &["tidy"; 6]), ("second-look", &["NOT APPROVED: too short."; 6])]);
    let ended = sample.run(&INPUT);
    ended.assert_outcome(1, "max-iterations");
    ended.assert_outcome(1, "answered 5 requests as second-look");
}

#[test]
fn best_of_two_takes_the_answer_chosen_by_the_judge() {
    let table = [
        ("B\nIts name says what it does.", "stale"),
        ("**B**, clearly.", "stale"),
        ("Answer B\nIts name says what it does.", "stale"),
        ("A\nB is too long.", "brooms"),
    ];
    for (verdict, result) in table {
        let sample = SampleProgram::new("best-of-two").replies(&[
            ("bold", &["brooms"]),
            ("careful", &["stale"]),
            ("judge", &[verdict]),
        ]);
        let ended = sample.run(&INPUT);
        ended.assert_outcome(0, &format!("Agent main terminated with result: {result}\n"));
        ended.assert_outcome(0, "answered 1 request as judge");
    }
    let result = "Agent main terminated with result: git stale-branches\n";
    SampleProgram::new("best-of-two").run(&INPUT).assert_outcome(0, result);
}

#[test]
fn best_of_two_takes_the_only_answer_when_the_other_role_fails() {
    for (writer, failed) in [("bold", "main.2"), ("careful", "main.1")] {
        let ended = SampleProgram::new("best-of-two").replies(&[(writer, &["it"])]).run(&INPUT);
        ended.assert_outcome(0, "Agent main terminated with result: it\n");
        ended.assert_outcome(0, &format!("Agent {failed} failed: "));
        ended.assert_outcome(0, NO_REPLIES);
        assert!(!ended.told.contains("asks judge"), "{}", ended.told);
    }
}

#[test]
fn best_of_two_fails_without_any_answer_or_without_a_judgement() {
    SampleProgram::new("best-of-two").replies(&[]).run(&INPUT).assert_outcome(1, NO_REPLIES);
    let sample =
        SampleProgram::new("best-of-two").replies(&[("bold", &["it"]), ("careful", &["it"])]);
    sample.run(&INPUT).assert_outcome(1, "Agent main failed: in workflow.lisp: ");
}

#[test]
fn three_reviewers_are_asked_until_all_approve() {
    let sample = SampleProgram::new("three-reviewers");
    let text = sample.program();
    let lines = text.lines().skip_while(|line| !line.starts_with('(')).count();
    assert!(lines <= 15, "{lines} lines");
    let ended = sample.run(&INPUT);
    let result = "fn millis(text: &str) -> Option<u64> { text.parse().ok() }";
    ended.assert_outcome(0, &format!("Agent main terminated with result: {result}\n"));
    ended.assert_outcome(0, "answered 2 requests as style");
    ended.assert_outcome(0, "it has none of the words APPROVE, REVISE");
}
