//! `raymond test`: cases that hold and that do not, their mistakes, goldens, reports, kills.

mod cassettes;
mod coverage;
mod killed;
mod live;

use serde_json::Value;

use crate::support::{RaymondOutcome, Test};

const CASES: &str = "cases:
  - name: by A
    input: a
    expect:
      path: [START.md, A.md]
      result: done by A
      agents: 1
      turns_at_most: 2
      no_warning: true
  - name: by B
    replies: { START.md: [<goto>B.md</goto>] }
    expect:
      path: [START.md, A.md]
      result: /^done/
";

fn flow(cases: &str) -> Test {
    let policy = "---\nallowed_transitions:\n  - { tag: goto, target: A.md }\n  - { tag: goto, target: B.md }\n  - { tag: goto, target: C.md }\n---\nBegin.";
    Test::new()
        .prompt("START.md", policy)
        .prompt("A.md", "A")
        .prompt("B.md", "B {{input}}")
        .prompt("C.md", "C")
        .file("replies.yaml", b"START.md: [<goto>A.md</goto>]\nA.md: [<result>done by A</result>]\nB.md: [<result>done by B</result>]\n")
        .file("tests/ways.yaml", cases.as_bytes())
}

fn test_of(test: &Test, arguments: &[&str]) -> RaymondOutcome {
    test.raymond(&[&["test"], arguments].concat())
}

/// Returns what is left of directories of cases in the temporary directory of a test.
fn left(test: &Test) -> usize {
    let entries = std::fs::read_dir(test.root().join("tmp")).expect("a directory");
    entries.count()
}

#[test]
fn failed_case_shows_the_first_difference_and_the_line_of_the_expectation() {
    let test = flow(CASES);
    std::fs::create_dir(test.root().join("tmp")).expect("made");
    let test = test.env("TMPDIR", "../tmp");
    let outcome = test_of(&test, &[]);
    outcome.code(1).stdout_has("ok   .: by A").stdout_has("FAIL .: by B");
    outcome.stdout_has("tests/ways.yaml:13:24: expected A.md as step 2 of main; found B.md");
    outcome.stdout_has("> B.md   <- expected A.md");
    outcome
        .stdout_has("2 cases, 1 passed, 1 failed")
        .stdout_has("3 of 4 states, 2 of 3 transitions");
    test_of(&test, &["--case", "by A", "--coverage"])
        .ok()
        .stdout_has("never taken: START.md: <goto>C.md</goto>");
    assert_eq!(left(&test), 0, "no directory of a case is left");
    assert!(!test.dir().exists() && test.calls().is_empty(), "the user's runs are not touched");
}

#[test]
fn case_neither_configures_git_nor_writes_out_of_its_directory() {
    for path in [".git/config", "sub/.git", ".gitattributes"] {
        let own = format!(
            "cases:\n  - name: hostile\n    git: true\n    files: {{ {path}: '[core]' }}\n    expect: {{ agents: 1 }}\n"
        );
        test_of(&flow(&own), &[]).code_in(&[1, 65]).stdout_has("write elsewhere");
    }
}

#[test]
fn update_fails_a_case_whose_golden_has_no_text() {
    let case = "expect:\n  files: { x.md: { golden: x.md } }\n";
    let test = flow(&format!("replies: {{ A.md: [<result>one</result>] }}\n{case}"));
    test_of(&test, &["--update"])
        .code(1)
        .stdout_has("expected the file x.md; found it is not there");
    assert!(!test.flow().join("tests/x.md").exists());
}

#[test]
fn errors_of_a_workflow_are_shown_in_lines_without_advice_that_a_case_cannot_take() {
    let test = flow("expect: { agents: 1 }\n");
    let wrong = "---\nallowed_transitions: [{ tag: goto, target: NOPE.md }]\n---\nx";
    std::fs::write(test.flow().join("A.md"), wrong).expect("written");
    let outcome = test_of(&test, &[]);
    outcome.code(1).stdout_has("NOPE.md").stdout_lacks("--no-check").stdout_lacks("\\n");
}

#[test]
fn file_of_cases_is_named_by_any_path() {
    let test = flow(CASES);
    for path in ["ways.yaml", "./ways.yaml", "../tests/ways.yaml", "."] {
        let outcome = test.shell(&format!("cd tests && \"$0\" test {path} --case 'by A'")).wait();
        outcome.ok().stdout_has("1 case, all passed");
    }
}

#[test]
fn golden_is_not_written_through_a_link() {
    let own = "cases:\n  - name: by A\n    expect: { result: { golden: goldens/a.txt } }\n";
    let test = flow(own);
    let outside = test.root().join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::os::unix::fs::symlink(&outside, test.flow().join("tests/goldens")).expect("linked");
    test_of(&test, &["--update"]).stderr_has("leads out of the workspace");
    assert_eq!(std::fs::read_dir(&outside).expect("there").count(), 0);
    std::fs::remove_file(test.flow().join("tests/goldens")).expect("removed");
    std::fs::rename(test.flow().join("tests"), outside.join("tests")).expect("moved");
    std::os::unix::fs::symlink(outside.join("tests"), test.flow().join("tests")).expect("linked");
    test_of(&test, &["--update"]).code(74).stderr_has("a link leads out of the workflow's folder");
    assert!(!outside.join("tests/goldens").exists());
}

#[test]
fn json_and_junit_have_each_case_and_its_differences() {
    let test = flow(CASES);
    let report = test.root().join("report.xml");
    let outcome = test_of(&test, &["--json", "--junit", report.to_str().expect("a path")]);
    let json = outcome.code(1).json();
    assert_eq!((&json["passed"], &json["failed"]), (&Value::from(1), &Value::from(1)));
    let failed = &json["cases"][1];
    assert_eq!((&failed["name"], &failed["status"]), (&"by B".into(), &"failed".into()));
    assert_eq!(failed["mismatches"][0]["line"], 13);
    let xml = std::fs::read_to_string(&report).expect("a report");
    let read = roxmltree::Document::parse(&xml).expect("XML");
    let tags = |name| read.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!((tags("testcase"), tags("failure")), (2, 1), "{xml}");
}

#[test]
fn every_kind_of_expectation_can_fail() {
    let broken = [
        ("path: { main: [START.md] }", "the end of the path of main after 1 steps"),
        ("path: { main.1: [A.md] }", "no agent main.1; the agents are main"),
        ("path: { set: [START.md, A.md, C.md] }", "C.md in the path of all agents"),
        ("path: { set: [START.md] }", "no other states in the path of all agents"),
        ("result: other", "the result of main is \"other\"; found \"done by A\""),
        ("result: { contains: other }", "contains other"),
        ("result: { fields: { score: 8 } }", "has score: 8"),
        ("result: { schema: { type: object } }", "is JSON that matches the schema"),
        ("agents: 2", "2 agents; found 1: main"),
        ("turns_at_most: 1", "at most 1 turns; found 2 turns"),
        ("files: { a.md: true }", "the file a.md is there"),
        ("files: { given.md: false }", "the file given.md is not there"),
        ("files: { given.md: { contains: other } }", "the file given.md contains other"),
        ("facts: { a/b: x }", "the fact a/b with x; found it does not hold"),
        ("failure: crash", "a failure by crash; found no agent has failed"),
        ("status: paused", "status paused; found completed"),
        ("exit: 75", "exit code 75; found 0"),
    ];
    let case = |(expect, _): &(&str, &str)| {
        format!(
            "  - name: {expect:?}\n    files: {{ given.md: text }}\n    expect: {{ {expect} }}\n"
        )
    };
    let cases: String = broken.iter().map(case).collect();
    let outcome = test_of(&flow(&format!("cases:\n{cases}")), &[]);
    outcome.code(1).stdout_has(&format!("{} cases, 0 passed", broken.len()));
    for (_, message) in broken {
        outcome.stdout_has(message);
    }
}

#[test]
fn run_that_fails_pauses_or_waits_is_what_its_case_expects() {
    let cases = "cases:
  - name: failed
    replies: { START.md: [{ fail: refused }] }
    expect: { failure: { agent: main, cause: rejected, message: would fail too }, exit: 1 }
  - name: restarted
    replies: { START.md: [{ fail: crash }, <goto>A.md</goto>] }
    expect: { result: done by A, turns_at_most: 3 }
  - name: paused
    settings: { budget: 0.01 }
    replies: { START.md: [{ reply: <goto>A.md</goto>, cost: 0.02 }] }
    expect: { status: paused, cost_at_most: 0.02 }
  - name: asked
    replies: { START.md: ['<ask next=\"A.md\">Which?</ask>'] }
    expect: { status: failed }
  - name: files
    files: { a.md: one }
    replies: { A.md: [{ reply: <result>x</result>, files: { b.md: two }, delete: [a.md] }] }
    expect: { files: { a.md: false, b.md: { contains: two } } }
";
    let outcome = test_of(&flow(cases), &[]);
    outcome
        .stdout_has("ok   .: failed")
        .stdout_has("ok   .: restarted")
        .stdout_has("ok   .: paused");
    outcome.stdout_has("ok   .: files");
}

#[test]
fn mistakes_of_a_case_have_their_places_and_hints() {
    let wrong = [
        (
            "tests: [{ expect: { path: [A.md] } }]",
            "1:1: unknown key `tests`; did you mean `cases`?",
        ),
        ("expect: { states: [A.md] }", "1:11: unknown key `states`; did you mean `path`?"),
        ("settings: { agent: x }\nexpect: { path: [A.md] }", "1:13: unknown key `agent`; cases"),
        ("expcet: { path: [A.md] }", "1:1: unknown key `expcet`; did you mean `expect`?"),
        ("input: x", "1:1: the key `expect` is missing here"),
        ("expect: { path: [D.md] }", "1:18: unknown state D.md in .; did you mean"),
        ("expect: { status: done }", "1:19: `done` is not a known status; write one of completed"),
        (
            "expect: { failure: crsh }",
            "1:20: `crsh` is not a known cause of a failure; did you mean `crash`?",
        ),
        ("entry: B2.md\nexpect: {}", "1:8: unknown state B2.md in .; did you mean B.md?"),
        ("settings: { budget: lots }\nexpect: {}", "1:21: invalid value 'lots'"),
        (
            "settings: { budgte: 1 }\nexpect: {}",
            "1:13: unknown key `budgte`; did you mean `budget`?",
        ),
        ("replies: { D.md: [x] }\nexpect: {}", "1:12: nothing in . asks for the replies of D.md"),
        ("replies: { A.md: [{ fail: boom }] }\nexpect: {}", "1:27: `boom` is not a failure"),
        ("replies: none.yaml\nexpect: {}", "1:10: the replies tests/none.yaml cannot be read"),
        (
            "cassette: tapes\nreplies: x.yaml\nexpect: {}",
            "1:1: a case has `replies` or a `cassette`, not both",
        ),
        ("strict_replay: true\nexpect: {}", "1:1: `strict_replay` is about a cassette"),
        ("cassette: ../tapes\nexpect: {}", "1:11: `../tapes` is not the path of a file here"),
        (
            "cassette: tapes\nexpect: {}",
            "1:11: cassette: no folder `tapes` here; make one with `raymond record RUN -o DIR`",
        ),
        ("files: { ../x: y }\nexpect: {}", "1:10: `../x` is not the path of a file here"),
        ("entry: ../flow/A.md\nexpect: {}", "1:8: `../flow/A.md` is not the path of a file here"),
        ("", "1:1: this file has no case"),
        ("cases: []", "1:1: this list has no case"),
        (
            "expect: { result: { golden: .//ways.yaml } }",
            "1:29: `.//ways.yaml` would be a file of cases",
        ),
        (
            "expect: { results: x }",
            "1:20: a mapping is expected here, such as `main: …`, not a text",
        ),
        ("expect: { files: x }", "1:18: a mapping is expected here, such as `notes.txt: …`"),
        (
            "expect: { facts: [x] }",
            "1:18: a mapping is expected here, such as `LABEL: …`, not a list",
        ),
        ("expect: { exit: 300 }", "1:17: an exit code is at most 255"),
        (
            "expect: { result: { golden: ways.yaml } }",
            "1:29: `ways.yaml` would be a file of cases; put the golden in a separate folder",
        ),
    ];
    for (case, message) in wrong {
        let test = flow(case);
        let outcome = test_of(&test, &[]);
        outcome.code(65).stderr_has(&format!("tests/ways.yaml:{message}"));
        let (place, _) = message.split_once(": ").expect("a place");
        let checked = test.raymond(&["check", "."]);
        checked.code(65).stdout_has(&format!("tests/ways.yaml:{place}: RF008 "));
    }
}

#[test]
fn folder_without_cases_and_unknown_case_are_named() {
    let test = Test::new().prompt("START.md", "x");
    test_of(&test, &[])
        .code(64)
        .stderr_has("no cases found; write one into the folder of a workflow");
    test_of(&test, &["nowhere"]).code(64).stderr_has("there is no such file or folder");
    test_of(&test, &["START.md"]).code(64).stderr_has("this is not a file of cases");
    let test = flow(CASES);
    test_of(&test, &["--case", "by Z"])
        .code(64)
        .stderr_has("none of the 2 cases has `by Z` in its name");
}

#[test]
fn golden_is_made_and_renewed_by_update_alone() {
    let case =
        "expect:\n  result: { golden: goldens/result.txt }\n  files: { x.md: { golden: x.md } }\n";
    let replies = "replies: { A.md: [{ reply: <result>one</result>, files: { x.md: two } }] }\n";
    let test = flow(&format!("{replies}{case}"));
    let golden = test.flow().join("tests/goldens/result.txt");
    let missing = test_of(&test, &[]);
    missing
        .code(1)
        .stdout_has("the file goldens/result.txt is missing beside the case; --update creates it");
    assert!(!golden.exists());
    test_of(&test, &["--update"]).ok().stderr_has("tests/goldens/result.txt: written");
    assert_eq!(std::fs::read_to_string(&golden).expect("there"), "one\n");
    test_of(&test, &["--update"]).ok().stderr_has("no golden has changed");
    std::fs::write(&golden, "other\n").expect("written");
    test_of(&test, &[]).code(1).stdout_has("line 1 is \"one\", not \"other\"");
}

#[test]
fn case_that_takes_too_long_is_ended() {
    let cases = "time_limit: 300ms\nreplies: { A.md: [{ reply: x, delay: 5m }] }\nexpect: { path: [START.md, A.md] }\n";
    let outcome = test_of(&flow(cases), &[]);
    outcome.code(1).stdout_has("it had not ended after 300ms; give it a longer `time_limit`");
}

#[test]
fn interrupted_test_leaves_nothing_behind() {
    let cases =
        "replies: { A.md: [{ reply: x, delay: 5m }] }\nexpect: { path: [START.md, A.md] }\n";
    let test = flow(cases);
    std::fs::create_dir(test.root().join("tmp")).expect("made");
    let test = test.env("TMPDIR", "../tmp");
    let mut running = test.start(&["test"]);
    let waits = |test: &Test| {
        let dirs = std::fs::read_dir(test.root().join("tmp")).expect("a directory").flatten();
        let journal = |dir: &std::path::Path| dir.join("0/runs/runs/case/journal.jsonl");
        let length =
            |dir: &std::path::Path| std::fs::metadata(journal(dir)).map_or(0, |file| file.len());
        dirs.into_iter().any(|dir| length(&dir.path()) > 0)
    };
    running.wait_for("a run of the case", waits).interrupt();
    running.wait().code(130).stderr_has("interrupted; nothing of the cases is left");
    assert_eq!(left(&test), 0, "no directory of a case is left");
}

#[test]
fn workflow_that_runs_commands_needs_trust() {
    let graph = "name: g\nversion: '1'\nstart_node: go\ninitial_state: { flags: {}, computed: {} }\nnodes:\n  go:\n    type: action\n    actions: [{ type: bash_exec, command: 'echo hi' }]\n    on_success: good\n    on_failure: bad\nendings:\n  good: { type: success, message: fine }\n  bad: { type: error, message: not fine }\n";
    let test = Test::new()
        .file("workflow.yaml", graph.as_bytes())
        .file("tests/main.yaml", b"expect: { path: [go] }\n")
        .env("RAYMOND_TRUST", "false");
    test_of(&test, &[]).code(1).stdout_has("the run did not begin (exit code 77)");
    test_of(&test, &["--trust"]).ok();
    test_of(&test, &[]).code(1).stdout_has("the run did not begin (exit code 77)");
}

#[test]
fn kill_sweep_kills_and_resumes_after_each_record() {
    let test = flow(CASES);
    let outcome = test_of(&test, &["--case", "by A", "--kill-sweep"]);
    outcome.ok().stdout_has(" kills)");
    let json = test_of(&test, &["--case", "by A", "--kill-sweep", "--json"]).ok().json();
    assert!(json["cases"][0]["kills"].as_u64() >= Some(3), "{json}");
    assert_eq!(json["cases"][0]["kill_differences"], Value::Array(Vec::new()));
}

#[test]
fn cases_of_all_samples_pass() {
    let workflows = concat!(env!("CARGO_MANIFEST_DIR"), "/workflows");
    let outcome = test_of(&Test::new(), &[workflows]);
    outcome.ok().stdout_has("all passed");
    let samples = std::fs::read_dir(workflows).expect("a directory").flatten();
    for sample in samples.filter(|sample| sample.path().is_dir()) {
        outcome.assert(sample.path().join("tests").is_dir(), "each sample has cases");
    }
}
