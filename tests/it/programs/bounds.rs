//! The limits of programs, and the values that they need.

use super::{ask, program, written};
use crate::support::always;

#[test]
fn endless_loops_and_goto_cycles_fail() {
    let limited = format!(
        "(workflow w (metadata (max-iterations 2)) (roles (a))\n(state s\n(loop {})))",
        ask("a", "go", "r")
    );
    let test = written(&limited).rule(always().reply("more"));
    test.run(&["p.lisp"]).code(1).stdout_has(
        "p.lisp:3:1: the loop has gone round 2 times; let it end by goto or terminal, or allow more: (metadata (max-iterations N))",
    );
    assert_eq!(test.calls().len(), 2);
    program("(state s\n(loop (action (log \"x\"))))")
        .run(&["p.lisp"])
        .code(1)
        .stdout_has("p.lisp:3:1: round 1 of the loop never blocked");
    program("(state s (action (log \"x\")))\n(state t (goto s))")
        .run(&["p.lisp"])
        .code(1)
        .stdout_has("without ever blocking");
}

#[test]
fn missing_context_or_branch_is_refused_with_the_option_to_give() {
    let test = program("(state s (terminal :result @context/who))");
    test.run(&["p.lisp"]).code(64).stderr_has("--context who=");
    assert!(!test.run_dir().exists());
    test.run(&["p.lisp", "--context", "who=me"]).ok().ended("main", "me");
    let test = program("(state s (terminal :result @branch))");
    test.run(&["p.lisp"]).code(64).stderr_has("--base-branch");
    assert!(!test.run_dir().exists());
}

#[test]
fn invalid_program_is_refused_before_the_run_starts() {
    let test = program("(state s (goto t))");
    test.run(&["p.lisp"]).code(65).stderr_has("p.lisp:2:");
    assert!(!test.run_dir().exists());
}

#[test]
fn program_pauses_at_its_budget_and_resumes_with_a_larger_budget() {
    let limited = format!(
        "(workflow w (metadata (max-budget-usd 0.05)) (roles (a))\n(state s\n(loop {} (branch (on (signal stop) (goto e)))))\n(state e (terminal :result over)))",
        ask("a", "go", "r")
    );
    let replies = "\"p.lisp#a\": [{ reply: more, cost: 0.02, repeat: true }]\n";
    let test = written(&limited).file("replies.yaml", replies.as_bytes());
    let run = ["run", "p.lisp", "--agent", "scripted", "--label", "it"];
    test.raymond(&run).code(75).stderr_has("the budget of $0.05 is used up");
    test.raymond(&["status", "it"]).ok().stdout_has("of $0.05");
    super::signal(&test, "stop", "", "");
    test.raymond(&["run", "it", "--budget", "1"]).ok().stdout_has("with result: over");
}
