//! The run that a command is about: the beginning of an id, the last one, or a choice at the terminal.

use crate::support::{Test, pair, when};

const SIZE: (u16, u16) = (24, 100);

fn with_runs(ids: &[&str]) -> Test {
    let test = pair();
    for id in ids {
        test.run(&["START.md", "--id", id]).ok();
    }
    test
}

#[test]
fn beginning_of_an_id_names_the_only_run_that_has_it() {
    let test = with_runs(&["tour-1", "tour-12", "other"]);
    assert_eq!(test.raymond(&["status", "oth", "--json"]).ok().json()["run"], "other");
    assert_eq!(test.raymond(&["tree", "tour-1", "--json"]).ok().json()["run"], "tour-1");
    for command in ["status", "log", "tree", "costs", "answer", "stop", "resume", "facts"] {
        test.raymond(&[command, "tour-12"]).ok();
        test.raymond(&[command, "o"]).ok();
        test.raymond(&[command, "tour"])
            .code(64)
            .stderr_has("2 runs begin with tour: tour-1, tour-12; write more of the id");
        test.raymond(&[command, "tuor-1"]).code(64).stderr_has("did you mean tour-1");
    }
    test.raymond(&["show", "o", "main"]).ok().stdout_has("led");
    test.raymond(&["run", "oth"]).code(64).stderr_has("no such run");
}

#[test]
fn last_flag_names_the_run_that_was_started_last() {
    let test = with_runs(&["b", "a"]);
    test.raymond(&["resume", "b"]).ok();
    assert_eq!(test.raymond(&["status", "--last", "--json"]).ok().json()["run"], "a");
    test.raymond(&["show", "--last", "main"]).ok().stdout_has("led");
    test.raymond(&["resume", "--last"]).ok().stdout_has("led");
    test.raymond(&["tell", "--last", "main", "b"]).code(64).stderr_has("main");
    test.raymond(&["status", "a", "--last"]).code(64).stderr_has("--last");
    test.raymond(&["log", "--last", "main"]).ok().stdout_has("led");
    test.raymond(&["show", "--last", "man"]).code(64).stderr_has("man");
    for command in ["retry", "stop", "hold", "release"] {
        test.raymond(&[command, "--last", "main"]).code(64).stderr_has("main");
    }
    test.raymond(&["tell", "main", "hello", "--last", "--json"]).code(64).stderr_has("main");
}

#[test]
fn answer_takes_the_last_run_before_answers() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("DONE.md", "heard {{answer}}")
        .rule(when("start").reply("<ask next=\"DONE.md\">Which?</ask>"))
        .rule(when("heard this").reply("<result>well</result>"));
    test.run(&["START.md"]).code(2);
    test.raymond(&["answer", "DONE.md=this"]).code(64).stderr_has("--last");
    test.raymond(&["answer", "t", "--last"]).code(64).stderr_has("name two runs");
    test.raymond(&["answer", "--last", "DONE.md=this"]).ok().stdout_has("is answered");
    test.raymond(&["resume", "--last"]).ok().ended("main", "well");
}

#[test]
fn command_without_run_needs_last_flag_if_nobody_can_be_asked() {
    let test = pair();
    test.raymond(&["status"]).code(64).stderr_has("no runs in").stderr_has("raymond run");
    test.run(&["START.md"]).ok();
    for command in ["status", "log", "tree", "costs", "answer", "stop", "resume", "worktrees"] {
        test.raymond(&[command]).code(64).stderr_has("give --last");
    }
    test.raymond(&["show", "main"]).code(64).stderr_has("give --last");
}

#[test]
fn command_without_run_asks_on_terminal() {
    let test = with_runs(&["older", "newer"]);
    let mut screen = test.on_screen(&["status"], SIZE);
    screen.wait_for(&[" 1  newer  completed", " 2  older  completed", "which run? 1-2"]);
    screen.keys("2\r").wait_for(&["run older finished"]);
    assert_eq!(screen.wait_for_exit(), Some(0));

    let mut screen = test.on_screen(&["status"], SIZE);
    screen.wait_for(&["which run?"]).keys("new\r").wait_for(&["run newer finished"]);
    assert_eq!(screen.wait_for_exit(), Some(0));

    let mut screen = test.on_screen(&["status"], SIZE);
    screen.wait_for(&["which run?"]).keys("\r").wait_for(&["no run was chosen"]);
    assert_eq!(screen.wait_for_exit(), Some(64));
}
