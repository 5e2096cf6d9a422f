//! Failures of requests, roles and programs, and how the program or the restart policy handles them.

use super::{ask, program, route};
use crate::support::when;

#[test]
fn failed_request_fails_the_instance_at_its_await() {
    let test = program(&format!("(state s\n  {})", ask("a", "work", "r")))
        .rule(when("work").error(400, "no such model"));
    let ended = test.run(&["p.lisp", "--max-restarts", "0"]);
    ended.code(1);
    ended
        .stdout_has("p.lisp:4:")
        .stdout_has("the request r failed: ")
        .stdout_has("say where to continue: :on-error STATE");
    ended.failed("main.1");
}

#[test]
fn failed_request_continues_at_the_on_error_state() {
    let test = program(
        "(state s (action (send-prompt :agent a :template work :request-id r))
            (await (transcript-response :request-id r :on-error other)))
         (state other (action (send-prompt :agent a :template again :request-id r2))
            (await (transcript-response :request-id r2)) (terminal :result (response r2)))",
    )
    .rule(when("work").error(400, "no such model"))
    .rule(when("again").reply("saved"));
    test.run(&["p.lisp", "--max-restarts", "0"]).ok().ended("main", "saved").failed("main.1");
    test.calls().last().expect("asked again").assert_fresh();
}

#[test]
fn restart_of_a_role_does_not_affect_the_program() {
    let test =
        program(&format!("(state s {} (terminal :result (response r)))", ask("a", "work", "r")))
            .rule(when("work").signal(9).once())
            .rule(when("work").reply("done"));
    test.run(&["p.lisp"]).ok().ended("main", "done");
    assert_eq!(test.events("turn_failed").len(), 1);
    assert_eq!(
        route(&test, "main"),
        ["s waiting (transcript-response :request-id r)", "s completed"]
    );
}

#[test]
fn failed_instance_lets_a_running_request_finish_and_starts_no_other() {
    let test = program(
        "(state s (action (send-prompt :agent a :template one :request-id r1) (send-prompt :agent a :template two :request-id r2))
            (terminal :status failed :result \"no more\"))",
    )
    .rule(when("one").reply("1"))
    .rule(when("two").reply("2"));
    let ended = test.run(&["p.lisp"]);
    ended.code(1).failed("main");
    ended.stdout_has("no more");
    assert_eq!(test.prompts(), ["one"], "what was not begun is not asked");
    test.assert_no_survivors();
}

#[test]
fn run_waits_for_open_requests_of_ended_program() {
    let test = program(
        "(state s (action (send-prompt :agent a :template one) (send-prompt :agent a :template two)))",
    )
    .rule(when("one").reply("1"))
    .rule(when("two").reply("2"));
    test.run(&["p.lisp"]).ok().ended("main.1", "answered 2 requests as a");
    assert_eq!(test.prompts(), ["one", "two"]);
}
