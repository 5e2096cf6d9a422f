//! `planner-worker-review`, in the words of its first specification.

use super::SampleProgram;

const SEED: &str =
    include_str!("../../../../crates/lang/src/program/tests/planner-worker-review.lisp");

#[test]
fn sample_text_equals_the_example_of_the_specification() {
    let program = SampleProgram::new("planner-worker-review").program();
    let (comment, below) = program.split_once("\n\n").expect("a comment, and the program");
    assert!(comment.lines().all(|line| line.starts_with(';')), "{comment}");
    assert_eq!(below, SEED);
}

#[test]
fn planner_and_implementer_alternate_until_satisfied_signal() {
    let sample = SampleProgram::new("planner-worker-review");
    let mut run = sample.start("f", &[]);
    run.until(":awaiting \"(signal plan/ready :key f)\"");
    sample.signal("plan/ready", "f", "");
    run.until(":awaiting \"(signal plan/summary :key f)\"");
    sample.signal("plan/summary", "f", "Add a --dry-run flag");
    run.until("agent-request main#1/handoff-request/1 :to planner");
    run.until("Share your plan with implementer: Add a --dry-run flag");
    run.until("(artifact implementer) is empty");
    run.until("agent-request main#1/implementer-fix/1 :to implementer");
    run.until("Planner feedback:").until("nothing looks at it");
    run.until("agent-request main#1/review-request/2").until("The copy step skips writing now");
    sample.signal("review/satisfied", "f", "");
    let shown = run.ends(0);
    assert!(shown.contains(":state complete :status completed"), "{shown}");
}

#[test]
fn satisfied_signal_before_the_run_completes_it_after_one_review() {
    let sample = SampleProgram::new("planner-worker-review");
    for (label, value) in [("plan/summary", "Add it"), ("plan/ready", ""), ("review/satisfied", "")]
    {
        sample.signal(label, "f", value);
    }
    let ended = sample.run(&["--label", "f"]);
    ended.assert_outcome(0, "answered 2 requests as planner");
    assert!(!ended.told.contains("implementer-fix"), "{}", ended.told);
}
