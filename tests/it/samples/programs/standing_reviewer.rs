//! `standing-reviewer`: pushes, and the agents that review them.

use super::SampleProgram;
use crate::support::wait_until;

const LISTENS: &str = ":status waiting :awaiting \"(signal git/push)\"";
const PUSHES: [&str; 5] = ["a..b", "b..c", "c..d", "d..e", "e..f"];

/// Returns how often a push was given to a reviewer.
fn reviewed(shown: &str, push: &str) -> usize {
    shown.matches(&format!("Someone has pushed {push}.")).count()
}

#[test]
fn each_push_is_reviewed_until_a_stop_signal() {
    let sample = SampleProgram::new("standing-reviewer");
    sample.signal("git/push", "1", PUSHES[0]);
    let mut run = sample.start("r", &[]);
    run.until("Someone has pushed a..b.").until("LGTM").until(LISTENS);
    for (key, push) in ["2", "3"].iter().zip(&PUSHES[1..]) {
        sample.signal("git/push", key, push);
        run.until(&format!("Someone has pushed {push}.")).until("src/copy.rs:12").until(LISTENS);
    }
    assert_eq!(sample.facts("review/done").len(), 3);
    assert_eq!(sample.facts("review/done")["a..b"], "LGTM");
    sample.signal("git/push", "stop", "stop");
    run.ends(0);
    sample.assert_result("r", "stopped");
    assert!(sample.facts("git/push").is_empty());
}

#[test]
fn two_reviewers_review_each_push_once() {
    let sample = SampleProgram::new("standing-reviewer");
    let mut runs = [sample.start("r1", &[]), sample.start("r2", &[])];
    for run in &mut runs {
        run.until(LISTENS);
    }
    for (key, push) in ["1", "2", "3", "4", "5"].iter().zip(PUSHES) {
        sample.signal("git/push", key, push);
    }
    let done = || sample.facts("review/done").len() == PUSHES.len();
    wait_until("a review of each push", done);
    for _ in &runs {
        sample.signal("git/push", "stop", "stop");
        wait_until("one of them takes it", || sample.facts("git/push").is_empty());
    }
    let shown = runs.map(|run| run.ends(0));
    for push in PUSHES {
        let times = shown.each_ref().map(|shown| reviewed(shown, push));
        assert_eq!(times.iter().sum::<usize>(), 1, "{push}: {shown:?}");
    }
}

#[test]
fn failed_review_is_recorded_and_the_next_push_is_awaited() {
    let sample = SampleProgram::new("standing-reviewer").replies(&[("reviewer", &["LGTM"])]);
    let mut run = sample.start("r", &[]);
    run.until(LISTENS);
    sample.signal("git/push", "1", PUSHES[0]);
    run.until("LGTM").until(LISTENS);
    sample.signal("git/push", "2", PUSHES[1]);
    run.until("b..c could not be reviewed").until(LISTENS);
    assert_eq!(sample.facts("review/failed").into_keys().collect::<Vec<_>>(), ["b..c"]);
    sample.signal("git/push", "stop", "stop");
    run.ends(0);
}
