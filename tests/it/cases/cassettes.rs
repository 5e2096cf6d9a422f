//! Cases that are answered by a cassette beside them.

use super::{flow, test_of};
use crate::support::Test;

/// Returns a workflow with two cases that are answered by a cassette, which a run by the script of the workflow made.
fn recorded_flow() -> Test {
    let cases = "cases:
  - name: recorded
    cassette: tapes/by-a
    expect: { path: [START.md, A.md], result: done by A, no_warning: true }
  - name: strict
    input: something else
    cassette: tapes/by-a
    strict_replay: true
    expect: { path: [START.md, A.md], result: done by A }
";
    let test = flow(cases);
    test.run(&[".", "--agent", "scripted"]).ok();
    test.raymond(&["record", "t", "-o", "tests/tapes/by-a"]).ok();
    std::fs::remove_file(test.flow().join("replies.yaml")).expect("removed");
    test
}

#[test]
fn case_is_answered_by_the_cassette_beside_it() {
    let test = recorded_flow();
    test_of(&test, &[]).ok().stdout_has("2 cases, all passed");
    test_of(&test, &["--kill-sweep", "--case", "recorded"]).ok().stdout_has(" kills)");
    std::fs::write(test.flow().join("A.md"), "another prompt").expect("written");
    let changed = test_of(&test, &[]);
    changed.code(1).stdout_has("FAIL .: recorded").stdout_has("FAIL .: strict");
    changed
        .stdout_has("expected no warning and no reminder")
        .stdout_has("the prompt differs from the recorded one");
}

#[test]
fn cassette_through_a_link_or_of_another_workflow_is_refused() {
    let test = recorded_flow();
    let tapes = test.flow().join("tests/tapes");
    std::fs::rename(&tapes, test.root().join("tapes")).expect("moved");
    std::os::unix::fs::symlink(test.root().join("tapes"), &tapes).expect("linked");
    test_of(&test, &[]).code(65).stderr_has("tests/ways.yaml:3:15: cassette: the path");
    std::fs::remove_file(&tapes).expect("removed");
    std::fs::rename(test.root().join("tapes"), &tapes).expect("moved");
    std::fs::remove_file(test.flow().join("A.md")).expect("removed");
    test_of(&test, &[]).code(65).stderr_has("a recording of another workflow");
}
