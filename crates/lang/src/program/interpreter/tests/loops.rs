//! Loops, and moves to other states.

use super::{AWAIT, Play, SEND, program, state};

fn ends_with(text: &str, place: &str, why: &str) {
    let play = Play::of(text);
    let error = play.ended();
    assert!(error.starts_with(place) && error.contains(why), "{error}");
}

#[test]
fn states_run_in_order_without_goto() {
    let log = |name: &str| format!("(state {name} (action (log \"{name}\")))");
    let play = Play::of(&program(&[&log("one"), &log("two"), &log("three")]));
    assert_eq!(play.shown, ["one", "two", "three"]);
    assert_eq!(play.completed_in(), "three");
}

#[test]
fn a_goto_leaves_all_loops() {
    let deep = "(state s (loop (loop (action (log \"in\") (wait (signal x))) (branch (on (signal x) (goto t))))))";
    let mut play =
        Play::of(&program(&[deep, "(state u (action (log \"never\")))", "(state t (terminal))"]));
    assert_eq!(play.fact("x", "", "").shown, ["in"]);
    assert_eq!(play.completed_in(), "t");
}

#[test]
fn loop_repeats_until_terminal() {
    let text = state(&format!(
        "(loop {SEND} {AWAIT} (branch (on (matches (response r) stop) (terminal :result over))))"
    ));
    let mut play = Play::of(&text);
    for _ in 0..20 {
        play.answers("a", "more");
    }
    assert_eq!(play.answers("a", "stop").ended(), "over");
    assert_eq!(play.asked.len(), 21);
}

#[test]
fn loop_fails_after_max_iterations() {
    let text = format!(
        "(workflow w (metadata (max-iterations 3)) (roles (a))\n(state s\n(loop {SEND} {AWAIT})))"
    );
    let mut play = Play::of(&text);
    play.answers("a", "1").answers("a", "2").answers("a", "3");
    let error = play.ended();
    assert!(error.starts_with("p.lisp:3:1: the loop has gone round 3 times"), "{error}");
    assert_eq!(play.asked.len(), 3);
}

#[test]
fn loop_iteration_that_never_blocks_fails_program() {
    let text = program(&["(state s", "(loop (action (log \"x\"))))"]);
    ends_with(&text, "p.lisp:3:1: ", "round 1 of the loop never blocked");
    let mut second = Play::of(&state("(loop (wait (signal x)))"));
    let error = second.fact("x", "", "").ended().to_owned();
    assert!(error.contains("round 2 of the loop never blocked"), "{error}");
}

#[test]
fn await_in_branch_counts_as_blocking_for_loop() {
    let text = state(
        "(loop (branch (on (signal x) (action (send-prompt :agent a :template t :request-id q) (await (transcript-response :request-id q))))
         (otherwise (wait (signal x)))))",
    );
    let mut play = Play::of(&text);
    play.fact("x", "", "").answers("a", "1").answers("a", "2");
    assert_eq!(play.asked.len(), 3);
}

#[test]
fn consuming_fact_counts_as_blocking() {
    let mut play = Play::before(&state("(loop (wait (signal job :consume true)))"));
    for key in ["1", "2", "3"] {
        play.assert("job", key, "");
    }
    assert_eq!(play.go().awaiting(), "(signal job)");
    assert_eq!(play.done.len(), 3);
}

#[test]
fn goto_cycle_without_blocking_fails_program() {
    let text = program(&["(state s (action (log \"x\")))", "(state t (goto s))"]);
    ends_with(&text, "p.lisp:3:", "without ever blocking");
    let looping = program(&["(state s (action (assert l)) (goto s))"]);
    ends_with(&looping, "p.lisp:2:", "without ever blocking");
}

#[test]
fn too_many_actions_without_blocking_fail_program() {
    let logs = "(log \"x\")".repeat(11_000);
    ends_with(
        &state(&format!("(action {logs})")),
        "p.lisp:2:",
        "10000 things without ever blocking",
    );
}

#[test]
fn sequential_states_do_not_count_as_iterations() {
    let text = "(workflow w (metadata (max-iterations 2))
        (state a (action (log \"a\"))) (state b (action (log \"b\"))) (state c (action (log \"c\")))
        (state d (terminal :result over)))";
    assert_eq!(Play::of(text).ended(), "over");
}

#[test]
fn goto_cycle_that_prompts_fails_after_max_iterations() {
    let text = format!(
        "(workflow w (metadata (max-iterations 3)) (roles (a))\n(state s {SEND} {AWAIT})\n(state t (goto s)))"
    );
    let mut play = Play::of(&text);
    play.answers("a", "1").answers("a", "2").answers("a", "3").answers("a", "4");
    let error = play.ended();
    assert!(error.starts_with("p.lisp:3:10: it has gone to the state s 3 times"), "{error}");
    assert_eq!(play.asked.len(), 4, "the first entry is no move");
}

#[test]
fn moves_by_timeout_and_by_failure_count_as_goto() {
    let text = "(workflow w (metadata (max-iterations 2))\n(state s (wait (signal x) :timeout \"1s\" :on-timeout s)))";
    let mut play = Play::of(text);
    play.after(1000).after(1000).after(1000);
    assert!(play.ended().contains("gone to the state s 2 times"), "{}", play.ended());
    let text = "(workflow w (metadata (max-iterations 2)) (roles (a))\n(state s (action (send-prompt :agent a :template x :request-id r)) (await (transcript-response :request-id r :on-error s))))";
    let mut play = Play::of(text);
    play.fails("a", "no").fails("a", "no").fails("a", "no");
    assert!(play.ended().contains("gone to the state s 2 times"), "{}", play.ended());
    assert_eq!(play.asked.len(), 3);
    let head = "(workflow w (metadata (max-iterations 2))\n(state s (action";
    let text = format!("{head} (user-input :prompt q :as o :timeout \"1s\" :on-timeout s))))");
    let mut play = Play::of(&text);
    play.after(1000).after(1000).after(1000);
    assert!(play.ended().contains("gone to the state s 2 times"), "{}", play.ended());
    for action in ["run :command x", "start-workflow other"] {
        let mut play = Play::before(&format!("{head} ({action} :as o :on-error s))))"));
        play.outputs.extend((0..4).map(|_| Err("no".to_owned())));
        play.go();
        assert!(play.ended().contains("gone to the state s 2 times"), "{}", play.ended());
        assert_eq!((play.done.len(), play.outputs.len()), (3, 1), "{action}");
    }
}

#[test]
fn loop_with_max_ends_after_its_rounds() {
    let text = state(&format!("(loop :max 2\n{SEND} {AWAIT})"));
    let mut play = Play::of(&text);
    play.answers("a", "1").answers("a", "2");
    assert!(play.ended().contains("gone round 2 times, its :max"), "{}", play.ended());
    let tail = "(state t (terminal :result enough))";
    let text = program(&[&format!("(state s (loop :max 2 :on-max t {SEND} {AWAIT}))"), tail]);
    let mut play = Play::of(&text);
    assert_eq!(play.answers("a", "1").answers("a", "2").ended(), "enough");
    let more = text.replace("(workflow w", "(workflow w (metadata (max-iterations 1))");
    let mut play = Play::of(&more);
    assert_eq!(play.answers("a", "1").answers("a", "2").ended(), "enough", ":max counts alone");
}

#[test]
fn break_leaves_the_innermost_loop_and_continue_begins_its_next_round() {
    let text = state(&format!(
        "(loop
           (loop {SEND} {AWAIT}
             (branch (on (matches (response r) \"^again$\") (continue))
                     (on (matches (response r) \"^enough$\") (branch (otherwise (break)))))
             (action (log \"end of a round\")))
           (action (log \"after the inner\"))
           (break)
           (action (log \"never\")))
         (terminal :result over)"
    ));
    let mut play = Play::of(&text);
    play.answers("a", "again").answers("a", "more").answers("a", "enough");
    assert_eq!(play.ended(), "over");
    assert_eq!(play.shown, ["end of a round", "after the inner"]);
}

#[test]
fn continue_without_waiting_fails_program() {
    let text = state("(loop (branch (otherwise (continue))) (wait (signal x)))");
    ends_with(&text, "p.lisp:2:", "round 1 of the loop never blocked");
}
