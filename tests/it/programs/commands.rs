//! Commands of programs: their values, the trust that they need, and what a kill in the middle of one means.

use super::{logged, outcome, program, written};
use crate::support::Test;

/// Returns a test whose program does these actions; the state `bad` comes after it.
fn acts(actions: &str) -> Test {
    let bad = if actions.contains(":as x") { "@x/stderr" } else { "none" };
    written(&format!(
        "(workflow w (state s (action {actions})) (state t (terminal :result done))
          (state bad (terminal :result {bad})))"
    ))
}

/// Returns the lines of a file in the run's directory.
fn lines(test: &Test, file: &str) -> Vec<String> {
    let content = std::fs::read_to_string(test.flow().join(file)).unwrap_or_default();
    content.lines().map(str::to_owned).collect()
}

#[test]
fn output_and_exit_code_of_command_decide_a_branch() {
    let test = written(
        "(workflow w
          (state s
            (loop
              (action (run :command \"echo more >> log; test $(wc -l < log) -ge 3; code=$?; pwd; echo $1-$2 >&2; exit $code\"
                :args (@label \"$(touch evil)\") :cwd sub :as check))
              (branch (on (equals @check/exit-code 0) (break))))
            (action (log \"~a ~a\" @check @check/stderr))
            (terminal :result @check/exit-code)))",
    )
    .file("sub/x", b"");
    test.run(&["p.lisp"]).ok().ended("main", "0");
    assert_eq!(lines(&test, "sub/log").len(), 3);
    assert!(!test.flow().join("sub/evil").exists(), "a value is not read as code");
    let cwd = test.flow().join("sub").canonicalize().expect("a path");
    assert_eq!(logged(&test), [format!("{} t-$(touch evil)", cwd.display())]);
    test.raymond(&["log", "t"]).ok().stdout_has("p.lisp#s (round 1): runs `echo more >> log; ");
}

#[test]
fn command_without_a_name_has_to_succeed() {
    let test = acts("(run :command \"echo oh >&2; exit 3\")");
    let ended = test.run(&["p.lisp"]);
    let error = ended.code(1).failed("main");
    assert!(error.contains("p.lisp:1:30: ") && error.contains("code 3: oh"), "{error}");
    acts("(run :command \"echo oh >&2; exit 3\" :as x :on-error bad)")
        .run(&["p.lisp"])
        .ok()
        .ended("main", "oh");
    acts("(run :command true :as x :on-error bad)").run(&["p.lisp"]).ok().ended("main", "done");
}

#[test]
fn output_of_commands_is_shown() {
    let test = acts("(run :command \"echo said; echo oh >&2; exit 3\" :as x :on-error bad)");
    let ended = test.run(&["p.lisp"]);
    let why = "warning: (run :command \"echo said; echo oh >&2; exit 3\") exited with code 3: oh";
    ended.ok().stderr_has(why);
    let shown = test.raymond(&["show", "t", "main"]);
    shown
        .ok()
        .stdout_has("    stdout\n      said\n    stderr\n      oh\n    exit code 3\n")
        .stdout_has(why);
    let json = test.raymond(&["show", "t", "main", "--json"]).ok().json().to_string();
    assert!(
        json.contains("\"command\":{\"exit_code\":3,\"stdout\":\"said\\n\",\"stderr\":\"oh\\n\"}"),
        "{json}"
    );

    let test = acts("(run :command \"echo again\" :as x :idempotent true :on-error bad)");
    test.run(&["p.lisp"]).ok();
    let shown = test.raymond(&["show", "t", "main"]);
    shown.ok().stdout_has("    stdout\n      again\n    exit code of @x 0\n");
}

#[test]
fn command_that_takes_too_long_or_has_no_directory_fails() {
    let test = acts("(run :command \"while :; do sleep 1; done\" :timeout 1 :as x :on-error bad)");
    test.run(&["p.lisp"]).ok().stdout_has("`sh`");
    let test = acts("(run :command true :cwd gone :as x :on-error bad)");
    test.run(&["p.lisp"]).ok().stdout_has("no directory");
}

#[test]
fn program_with_command_needs_trust() {
    let program =
        "(require lib.lisp) (workflow w (state s (action (check) (run :command \"touch own\"))))";
    let test = Test::new()
        .file("workflow.lisp", program.as_bytes())
        .file("lib.lisp", b"(defn check ()\n  (run :command \"touch ran\"))")
        .env("RAYMOND_TRUST", "false");
    for told in ["lib.lisp:2:3: runs commands", "workflow.lisp:1:57: runs commands", "touch ran"] {
        test.run(&["."]).code(77).stderr_has(told);
    }
    test.raymond(&["trust", "."]).ok().stdout_has("run: touch own");
    test.run(&[".", "--id", "a"]).ok();
    assert!(test.flow().join("ran").exists() && test.flow().join("own").exists());
    let test = test.file("lib.lisp", b"(defn check ()\n  (run :command \"touch other\"))");
    test.run(&[".", "--id", "b"]).code(77).stderr_has("lib.lisp changed");
    test.raymond(&["trust", "."]).ok().stdout_has("run: touch other");
}

#[test]
fn advised_command_trusts_a_folder_without_a_first_state() {
    let test = acts("(run :command \"touch ran\")").env("RAYMOND_TRUST", "false");
    let refused = test.run(&["p.lisp"]);
    let advice = refused.code(77).stderr.split_once("trust the folder: raymond trust ");
    let (_, advice) = advice.expect("an advice");
    let (path, _) = advice.split_once(',').expect("its end");
    test.raymond(&["trust", path]).ok();
    test.run(&["p.lisp"]).ok();
}

#[test]
fn command_is_run_once_however_often_raymond_is_killed() {
    let run = |number: usize| {
        format!(
            "(run :command \"echo {number} >> log\" :unless \"grep -qx {number} log 2>/dev/null\")
             (run :command \"echo x{number} >> log\" :once true)
             (run :command \"echo y{number} >> log; tail -1 log\" :as y)"
        )
    };
    let all: String = (0..3).map(run).collect();
    let test =
        written(&format!("(workflow w (state s (action {all})) (state t (terminal :result @y)))"));
    let point = |count: usize| {
        if count.is_multiple_of(2) { "operation.after:1" } else { "operation.before:1" }
    };
    let mut deaths = 0;
    let mut test = test.env("RAYMOND_FAILPOINT", point(0));
    let mut last = test.run(&["p.lisp"]);
    while last.killed() {
        deaths += 1;
        assert!(deaths < 60, "it comes to no end");
        let next = if deaths < 18 { point(deaths) } else { "none:1" };
        test = test.env("RAYMOND_FAILPOINT", next);
        last = test.resume(&[]);
    }
    last.ok().ended("main", "y2");
    assert!(deaths >= 9, "{deaths}");
    let expected: Vec<String> = (0..3)
        .flat_map(|number| [format!("{number}"), format!("x{number}"), format!("y{number}")])
        .collect();
    assert_eq!(lines(&test, "log"), expected);
}

#[test]
fn command_that_was_killed_in_the_middle_follows_its_class() {
    let command = "echo begun >> log; while [ ! -e go ]; do sleep 0.05; done; echo ended >> log";
    let table = [
        ("", "WF502", 1),
        (":once true", "WF502", 1),
        (":idempotent true", "done", 2),
        (":unless \"test -e done\"", "done", 2),
    ];
    for (meaning, result, times) in table {
        let test = acts(&format!("(run :command \"{command}\" {meaning} :as x :on-error bad)"));
        let mut live = test.spawn(&["p.lisp"]);
        live.wait_file(&test.flow().join("log"));
        live.kill9();
        let mut live = test.spawn_resumed(&[]);
        let mut written = vec!["begun"];
        if times == 2 {
            // The first one is ended before the second one begins, so only that can see `go`.
            live.wait_for("it runs again", |test| lines(test, "log").len() == 2);
            std::fs::write(test.flow().join("go"), "").expect("written");
            written.extend(["begun", "ended"]);
        }
        live.wait().ok().stdout_has(result);
        test.assert_no_survivors();
        let log = lines(&test, "log");
        assert_eq!(log, written, "{meaning}");
    }
}

#[test]
fn run_stopped_in_a_command_resumes_there() {
    let command = "echo begun >> log; while [ ! -e go ]; do sleep 0.05; done";
    let test = acts(&format!("(run :command \"{command}\" :idempotent true)"));
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_file(&test.flow().join("log"));
    test.raymond(&["status", "t"]).ok();
    live.interrupt();
    live.wait().code(130);
    std::fs::write(test.flow().join("go"), "").expect("written");
    test.resume(&[]).ok().ended("main", "done");
    assert_eq!(lines(&test, "log").len(), 2);
}

#[test]
fn failed_program_names_its_state() {
    let test = program("(state s (action (run :command false)))");
    let ended = test.run(&["p.lisp"]);
    ended.code(1);
    let advanced = test.events("program_advanced");
    let activity = &advanced[0]["position"]["activity"]["command"]["command"];
    assert_eq!(activity, "false", "it is due before it begins");
    assert_eq!(advanced.last().expect("a record")["status"], "failed");
    let test = program("(state s (action (run :command true)))");
    let ended = test.run(&["p.lisp"]);
    assert_eq!(outcome(ended.ok(), "main")["state"], "s");
}
