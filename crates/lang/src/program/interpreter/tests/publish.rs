//! The states that a program publishes for programs of other runs.

use super::Play;

/// The assertion of the execution.
const INSTANCE: &str =
    "assert workflow-instance l (workflow-instance :definition w :label l :context ((k v)))";

fn published(states: &str) -> Play {
    Play::of(&format!("(workflow w (metadata (publish-state true)) {states})"))
}

#[test]
fn each_state_and_the_end_are_published() {
    let mut play = published(
        "(state one (wait (signal go))) (state two (branch (on (signal twice) (goto one))) (action (assert x)))",
    );
    assert_eq!(play.done, [INSTANCE, "assert workflow/state l running one"]);
    play.fact("twice", "", "").fact("go", "", "");
    let shown = ["one", "two", "one", "two"]
        .map(|state| format!("assert workflow/state l running {state}"));
    assert_eq!(play.done[1..4], shown[..3], "it goes round");
    let play = published("(state one (action (assert x)))");
    assert_eq!(
        play.done,
        [
            INSTANCE,
            "assert workflow/state l running one",
            "assert x  ",
            "assert workflow/state l completed"
        ]
    );
    assert_eq!(play.completed_in(), "one");
}

#[test]
fn failure_is_published_before_program_ends() {
    let play = published("(state one (terminal :status failed :result bad))");
    assert_eq!(play.done[2..], ["assert workflow/state l failed"]);
    assert!(play.ended().ends_with(": bad"), "{}", play.ended());
    let play = published("(state one (for-each x in (1 2) (wait (signal go :key x) :timeout 1)))");
    let mut play = play;
    play.after(2000);
    assert_eq!(play.done[2..], ["assert workflow/state l failed"]);
    assert!(play.ended().contains("did not come in time"), "{}", play.ended());
}

#[test]
fn program_goes_on_if_its_state_cannot_be_published() {
    let mut play =
        Play::before("(workflow w (metadata (publish-state true)) (state one (action (log x))))");
    play.fails_outside = Some("the label is too long".to_owned());
    play.go();
    assert_eq!(play.completed_in(), "one");
    let why = "warning: its state could not be published: the label is too long";
    assert_eq!(play.shown, [why, why, "x", why]);
}

#[test]
fn program_publishes_nothing_unless_asked() {
    let play = Play::of("(workflow w (state one (action (log x))))");
    assert!(play.done.is_empty());
}
