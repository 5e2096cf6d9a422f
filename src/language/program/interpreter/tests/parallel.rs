//! `for-each`: bodies that run side by side.

use super::{Play, program, state};

const ASK: &str = "(send-prompt :agent @who :template \"to ~a\" :args (@who)) (await (transcript-response :request-id look))";

#[test]
fn bodies_run_side_by_side_and_join() {
    let text = state(&format!(
        "(for-each who in (a b) {ASK} (action (log \"~a said ~a\" @who (response look))))
         (terminal :result (response look))"
    ));
    let mut play = Play::of(&text);
    assert_eq!(play.asked, ["a: to a", "b: to b"]);
    assert_eq!(
        play.awaiting(),
        "(and (transcript-response :request-id look/a) (transcript-response :request-id look/b))"
    );
    play.answers("b", "fine");
    assert_eq!(play.said, ["b said fine"], "it does not wait for the other");
    assert_eq!(play.awaiting(), "(transcript-response :request-id look/a)");
    assert_eq!(play.answers("a", "good").ended(), "## a\n\ngood\n\n## b\n\nfine");
}

#[test]
fn each_body_loops_waits_and_takes_facts_by_itself() {
    let text = state(
        "(for-each who in (a b)
           (loop
             (wait (signal job :key @who :consume true :as job))
             (branch (on (matches @job stop) (break)))
             (action (log \"~a ~a\" @who @job) (assert done :key @who)))
           (wait (signal go) :timeout \"1s\" :on-timeout s))
         (terminal :result over)",
    );
    let mut play = Play::of(&text);
    assert!(play.waits_for_outside() && play.due_in().is_none());
    play.fact("job", "b", "1").fact("job", "b", "2").fact("job", "a", "3");
    assert_eq!(play.said, ["b 1", "b 2", "a 3"]);
    play.fact("job", "b", "stop");
    assert_eq!(play.due_in(), Some(1000));
    assert!(play.awaiting().contains("(signal job :key a)"), "{}", play.awaiting());
    play.fact("go", "", "").fact("job", "a", "stop");
    assert_eq!(play.ended(), "over");
    assert_eq!(play.done.iter().filter(|one| one.starts_with("take")).count(), 5);
}

#[test]
fn goto_out_of_a_body_leaves_for_each() {
    let text = program(&[
        "(state s (for-each who in (a b) (for-each x in (1 2) (wait (signal go :key @who))) (goto t)))",
        "(state t (wait (signal end)))",
    ]);
    let mut play = Play::of(&text);
    assert_eq!(play.execution().position.parallel.len(), 2);
    assert_eq!(play.fact("go", "b", "").awaiting(), "(signal end)");
    assert!(play.execution().position.parallel.is_empty());
    assert_eq!(play.fact("end", "", "").completed_in(), "t");
}

#[test]
fn failure_in_a_body_fails_the_program_at_its_place() {
    let mut play = Play::of(&state(&format!("\n(for-each who in (a b)\n{ASK})")));
    let error = play.fails("a", "no").ended().to_owned();
    assert!(error.starts_with("p.lisp:4:") && error.contains("look/a failed"), "{error}");
}

#[test]
fn body_with_an_activity_resumes_where_it_was() {
    let text = state(
        "(for-each who in (a b) (assert one :key @who) (assert two :key @who) (wait (signal go)))",
    );
    let mut play = Play::of(&text);
    assert_eq!(play.done, ["assert one a ", "assert two a ", "assert one b ", "assert two b "]);
    assert_eq!(play.fact("go", "", "").completed_in(), "s");
}
