//! Errors that `raymond check` finds in anything the first state leads to: the run is refused before it costs.

use crate::support::{Test, always};

fn answering() -> Test {
    Test::new().rule(always().reply("<result>ok</result>"))
}

#[test]
fn errors_in_reachable_files_refuse_run_before_it_starts() {
    let test = answering()
        .prompt("START.md", "Fork WORK.md, or <gotto>WORK.md</gotto>. Else <result>x</result>.")
        .prompt("WORK.md", "---\nmodle: opus\n---\n<result>x</result>")
        .prompt("UNREACHED.md", "---\nmodle: opus\n---\nx");
    let expected = "START.md:1:18: RF104 the text shows <gotto>, which is not a tag; did you mean <goto>?\nWORK.md:2:1: RF002 unknown key `modle`; did you mean `model`?\nerror: 2 errors in the files that START.md leads to; nothing was started; fix them, or start the workflow as it is: --no-check\n";
    for command in ["run", "start"] {
        let outcome = test.raymond(&[command, "START.md", "--id", "u"]);
        let folder = format!("{}/", test.flow().display());
        let told = outcome.stderr.replace(&folder, "");
        outcome.code(65).assert(told.ends_with(expected), "all errors");
    }
    assert!(test.calls().is_empty(), "no turn was asked");
    test.raymond(&["list"]).ok().stdout_lacks("u ");
    test.run(&["START.md", "--no-check"]).ok().ended("main", "ok");
}

#[test]
fn all_errors_of_unreadable_first_state_refuse_run() {
    let test = answering()
        .prompt("START.md", "---\nmodle: opus\neffrot: high\n---\n<goto>WORK.md</goto>")
        .prompt("WORK.md", "---\nmodle: opus\n---\n<result>x</result>");
    let checked = test.raymond(&["check", "START.md"]).stdout.clone();
    let errors: Vec<&str> = checked.lines().map(|line| line.trim_start_matches("./")).collect();
    assert_eq!(errors.len(), 3, "{checked}");
    let outcome = test.run(&["START.md"]);
    outcome.code(65).stderr_has("error: 3 errors in the files that ").stderr_has("--no-check");
    for error in &errors {
        outcome.stderr_has(error.trim_end());
    }
    let unchecked = test.run(&["START.md", "--no-check"]);
    unchecked
        .code(65)
        .stderr_has(errors[0])
        .stderr_has(errors[1])
        .stderr_lacks("WORK.md")
        .stderr_has("the first state of a workflow must be valid, even with --no-check");
    assert!(test.calls().is_empty(), "no turn was asked");
}

#[test]
fn mistake_in_text_of_first_state_is_skipped_by_no_check() {
    let test = answering().prompt("START.md", "<gotto>START.md</gotto>");
    test.run(&["START.md"]).code(65).stderr_has("RF104");
    test.run(&["START.md", "--no-check"]).ok().ended("main", "ok");
}

#[test]
fn errors_of_manifest_are_refused_with_those_of_first_state() {
    let test = answering()
        .prompt("START.md", "---\nmodle: opus\n---\nx")
        .file("raymond.yaml", b"modle: opus\nbudgit: 3\n");
    let outcome = test.run(&["START.md", "--no-check"]);
    outcome
        .code(65)
        .stderr_has("raymond.yaml:1:1: RF003")
        .stderr_has("raymond.yaml:2:1: RF003")
        .stderr_has("START.md:2:1: RF002")
        .stderr_has("error: 3 errors in raymond.yaml and the files that ");
}

#[test]
fn errors_in_unreachable_files_and_warnings_start_run() {
    let test = answering()
        .prompt("START.md", "{{unfilled}} `<goto>GONE.md</goto>`")
        .prompt("UNREACHED.md", "---\nmodle: opus\n---\nx")
        .file("replies.yaml", b"START.md: x\n");
    test.raymond(&["check", "."]).code(65);
    test.run(&["START.md"]).ok().stderr_lacks("RF");
}

#[test]
fn error_of_program_that_prompt_leads_to_is_shown_with_its_line() {
    let test = answering().prompt("START.md", "Go on: <goto>p.lisp</goto>").prompt(
        "p.lisp",
        "(workflow w\n  (roles (worker :agent-kind \"claude-code\"))\n  (state only\n    (action (run-folder :agent wroker :start \"START.md\"))))",
    );
    let outcome = test.run(&["START.md"]);
    outcome
        .code(65)
        .stderr_has("p.lisp:4:")
        .stderr_has("\n      (action (run-folder")
        .stderr_has("--no-check");
    assert!(test.calls().is_empty(), "no turn was asked");
}

#[test]
fn resume_refuses_no_check() {
    let test = answering().prompt("START.md", "start");
    test.run(&["START.md"]).ok();
    test.raymond(&["run", "t", "--no-check"]).code(64).stderr_has("--no-check is fixed");
}
