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
    let stage = SampleProgram::new("standing-reviewer");
    stage.signal("git/push", "1", PUSHES[0]);
    let mut run = stage.start("r", &[]);
    run.until("Someone has pushed a..b.").until("LGTM").until(LISTENS);
    for (key, push) in ["2", "3"].iter().zip(&PUSHES[1..]) {
        stage.signal("git/push", key, push);
        run.until(&format!("Someone has pushed {push}.")).until("src/copy.rs:12").until(LISTENS);
    }
    assert_eq!(stage.facts("review/done").len(), 3);
    assert_eq!(stage.facts("review/done")["a..b"], "LGTM");
    stage.signal("git/push", "stop", "stop");
    run.ends(0);
    stage.assert_result("r", "stopped");
    assert!(stage.facts("git/push").is_empty());
}

#[test]
fn two_reviewers_review_each_push_once() {
    let stage = SampleProgram::new("standing-reviewer");
    let mut runs = [stage.start("r1", &[]), stage.start("r2", &[])];
    for run in &mut runs {
        run.until(LISTENS);
    }
    for (key, push) in ["1", "2", "3", "4", "5"].iter().zip(PUSHES) {
        stage.signal("git/push", key, push);
    }
    let done = || stage.facts("review/done").len() == PUSHES.len();
    wait_until("a review of each push", done);
    for _ in &runs {
        stage.signal("git/push", "stop", "stop");
        wait_until("one of them takes it", || stage.facts("git/push").is_empty());
    }
    let shown = runs.map(|run| run.ends(0));
    for push in PUSHES {
        let times = shown.each_ref().map(|shown| reviewed(shown, push));
        assert_eq!(times.iter().sum::<usize>(), 1, "{push}: {shown:?}");
    }
}

#[test]
fn failed_review_is_recorded_and_the_next_push_is_awaited() {
    let stage = SampleProgram::new("standing-reviewer").replies(&[("reviewer", &["LGTM"])]);
    let mut run = stage.start("r", &[]);
    run.until(LISTENS);
    stage.signal("git/push", "1", PUSHES[0]);
    run.until("LGTM").until(LISTENS);
    stage.signal("git/push", "2", PUSHES[1]);
    run.until("b..c could not be reviewed").until(LISTENS);
    assert_eq!(stage.facts("review/failed").into_keys().collect::<Vec<_>>(), ["b..c"]);
    stage.signal("git/push", "stop", "stop");
    run.ends(0);
}
