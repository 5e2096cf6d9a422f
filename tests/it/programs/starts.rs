//! Programs that start other programs as runs of their own: once, within their own permission, and not for ever.

use serde_json::{Value, json};

use super::{logged, signal, written};
use crate::support::{Test, wait_until, when};

/// A program that asks about its context.
const CHILD: &str = "(workflow child (metadata (publish-state true)) (roles (a))
  (state s
    (action (send-prompt :agent a :template \"look at ~a in ~a\" :args (@context/item @label) :request-id r))
    (await (transcript-response :request-id r))
    (terminal :result (response r))))";

/// A program that starts the other one, and waits for its end.
const PARENT: &str = "(workflow parent
  (state s
    (action (start-workflow child.lisp :label feature-42 :context (item bees) :as run))
    (wait (signal workflow/state :key @run :equals completed))
    (terminal :result @run)))";

fn place() -> Test {
    place_with_child().rule(when("look at bees in feature-42").reply("honey"))
}

fn place_with_child() -> Test {
    written(PARENT).file("child.lisp", CHILD.as_bytes())
}

/// Returns the ids of the runs.
fn runs(test: &Test) -> Vec<String> {
    let listed = test.raymond(&["list", "--json"]).ok().json_items();
    let mut ids: Vec<String> =
        listed.iter().map(|run| run["run"].as_str().unwrap_or_default().to_owned()).collect();
    ids.sort();
    ids
}

/// Returns the settings that a run began with.
fn settings(test: &Test, run: &str) -> Value {
    let records = test.raymond(&["log", run, "--json"]).ok().json_lines();
    records[0]["settings"].clone()
}

#[test]
fn program_starts_another_and_waits_for_its_end() {
    let test = place();
    test.raymond(&["check", "p.lisp"]).ok();
    test.run(&["p.lisp"]).ok().ended("main", "feature-42");
    assert_eq!(logged(&test), ["has started child.lisp as the run feature-42"]);
    test.raymond(&["status", "feature-42", "--json"]).ok();
    wait_until("its end", || {
        test.raymond(&["status", "feature-42", "--json"]).json()["status"] == "completed"
    });
    let ended = test.raymond(&["status", "feature-42", "--json"]).ok().json();
    assert_eq!(ended["finished"][0]["result"], "honey");
    test.raymond(&["log", "t"]).ok().stdout_has("p.lisp#s: starts the workflow child.lisp");
    test.raymond(&["graph", "p.lisp"]).ok().stdout_has("start-workflow").stdout_has("child.lisp");
    let own = test.raymond(&["log", "feature-42"]);
    own.ok().stdout_has("run feature-42 starts at child.lisp, started by t (main#");
    let origin = &settings(&test, "feature-42")["started_by"];
    assert_eq!((&origin["run"], &origin["depth"]), (&json!("t"), &json!(1)));
    test.assert_no_survivors();
}

#[test]
fn defined_program_is_started_by_its_name_and_unknown_name_is_error() {
    let test = place();
    let test = test.file("p.lisp", PARENT.replace("child.lisp", "child").as_bytes());
    test.raymond(&["check", "p.lisp"]).code(65).stdout_has("SX315 no program `child` is defined");
    test.run(&["p.lisp"]).code(65).says("did you mean the file `child.lisp`?");
    test.raymond(&["workflow", "define", "child.lisp"]).ok();
    test.raymond(&["check", "p.lisp"]).ok();
    test.run(&["p.lisp"]).ok().ended("main", "feature-42");
}

#[test]
fn program_is_started_once_however_often_raymond_is_killed() {
    let points = [
        "activity.before",
        "activity.after",
        "append.before",
        "append.after",
        "sync.after",
        "replace.before",
        "replace.written",
        "replace.after",
        "effect.before",
    ];
    // It does not wait for the end of the other run, which may be killed, too.
    let program = "(workflow parent
      (state s
        (action (start-workflow child.lisp :label feature-42 :context (item bees) :as run) (log \"~a\" @run))
        (terminal :result @run)))";
    for point in points {
        for count in 1..=3 {
            let context = format!("{point}:{count}");
            let mut test =
                place().file("p.lisp", program.as_bytes()).env("RAYMOND_FAILPOINT", &context);
            let mut last = test.run(&["p.lisp"]);
            test = test.env("RAYMOND_FAILPOINT", "none:1");
            // The started run has the same failpoint, so it may be killed, too.
            let status =
                || test.raymond(&["status", "feature-42", "--json"]).json()["status"].clone();
            let other = test.run_dir().with_file_name("feature-42");
            let waits = || wait_until("its process ends", || status() != "running");
            if other.exists() {
                waits();
            }
            if last.killed() {
                last =
                    if test.run_dir().exists() { test.resume(&[]) } else { test.run(&["p.lisp"]) };
            }
            last.assert(last.status.code() == Some(0), &context);
            last.ended("main", "feature-42");
            waits();
            if status() == "interrupted" {
                test.raymond(&["resume", "feature-42"]).ok();
            }
            assert_eq!(status(), "completed", "{context}");
            assert_eq!(runs(&test), ["feature-42", "t"], "{context}");
            assert_eq!(test.calls_with("look at bees").len(), 1, "{context}");
            test.assert_no_survivors();
        }
    }
}

#[test]
fn label_of_another_run_is_refused_and_leads_to_the_state_of_the_error() {
    let program = "(workflow parent
      (state s
        (action (start-workflow child.lisp :label \"~a\" :args (@workflow-id) :as run :on-error taken))
        (terminal :status failed))
      (state taken (terminal :result @run/error)))";
    let test = place().file("p.lisp", program.as_bytes());
    test.run(&["p.lisp"]).ok().stdout_has("a run t already exists; give this one another `:label`");
    assert_eq!(runs(&test), ["t"]);
}

#[test]
fn program_that_starts_itself_ends_at_a_depth() {
    let program = "(workflow again (state s (action (start-workflow p.lisp))))";
    let test = written(program);
    test.run(&["p.lisp"]).ok();
    wait_until("eight further runs have ended", || {
        let listed = test.raymond(&["list", "--json"]).json_items();
        listed.len() == 9 && listed.iter().all(|run| run["status"] != "running")
    });
    let last = runs(&test).into_iter().max_by_key(String::len).expect("a run");
    let said = test.raymond(&["log", &last]);
    said.ok().stdout_has("8 runs have started each other down to this one, which is the limit");
    test.assert_no_survivors();
}

#[test]
fn state_of_an_earlier_run_of_the_same_name_does_not_count() {
    let test = place_with_child();
    test.raymond(&["signal", "workflow/state", "--key", "feature-42", "--value", "completed"]).ok();
    let test = test.rule(when("look at bees in feature-42").hold_before("go").reply("honey"));
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_for("the started run", |test| test.calls().len() == 1);
    let status = test.raymond(&["status", "t", "--json"]).ok().json();
    assert_eq!(status["status"], "running", "it took the state of an earlier run");
    test.release("go");
    live.wait().ok().ended("main", "feature-42");
}

#[test]
fn started_run_has_no_more_permission_and_budget_than_its_starter() {
    let program = "(workflow parent (roles (b))
      (state s
        (action (send-prompt :agent b :template \"first\" :request-id r)
          (await (transcript-response :request-id r))
          (start-workflow child.lisp :label feature-42 :context (item bees) :budget 0.75)
          (start-workflow child.lisp :label feature-43 :context (item bees) :on-error spent)
          (log \"both\"))
        (terminal))
      (state spent (terminal :result \"nothing is left\")))";
    let child = CHILD.replace("(publish-state true)", "(publish-state true) (max-budget-usd 5)");
    let test = written(program)
        .file("child.lisp", child.as_bytes())
        .rule(when("first").reply("done").cost(0.25))
        .rule(when("look at bees").hold_before("go").reply("honey"));
    test.run(&["p.lisp", "--budget", "1", "--permission-mode", "plan", "--allow-tool", "Read"])
        .ok()
        .ended("main", "nothing is left");
    assert_eq!(runs(&test), ["feature-42", "t"], "the first one was given the rest");
    test.release("go");
    wait_until("its end", || {
        test.raymond(&["status", "feature-42", "--json"]).json()["status"] == "completed"
    });
    let own = settings(&test, "feature-42");
    assert_eq!(own["budget_usd"], json!(0.75));
    assert_eq!(own["permission"], json!({"mode": "plan"}));
    assert_eq!(own["consent"]["every_state"], json!(["Read"]));
    assert_eq!(own["label"], "feature-42");
    assert_eq!(own["context"], json!({"item": "bees"}));
}

#[test]
fn started_run_and_its_starter_never_spend_more_than_the_budget() {
    let program = "(workflow parent (roles (b))
      (state s
        (action (start-workflow child.lisp :label feature-42 :context (item bees) :as run))
        (wait (signal workflow/state :key @run :equals completed))
        (wait (signal go))
        (action
          (send-prompt :agent b :template \"first\" :request-id r)
          (await (transcript-response :request-id r))
          (start-workflow child.lisp :label feature-43 :context (item bees) :budget 0.5 :as more :on-error less)))
      (state less
        (action (send-prompt :agent b :template \"second\" :request-id q)
          (await (transcript-response :request-id q)))
        (terminal)))";
    let test = written(program)
        .file("child.lisp", CHILD.as_bytes())
        .rule(when("first").reply("done").cost(0.5))
        .rule(when("second").reply("done").cost(0.5))
        .rule(when("look at bees").reply("honey").cost(0.1));
    let mut live = test.spawn(&["p.lisp", "--budget", "1"]);
    live.wait_for("the other one has ended", |test| {
        test.run_dir().with_file_name("feature-42").exists()
            && test.raymond(&["status", "feature-42"]).stdout.contains("completed")
    });
    assert_eq!(settings(&test, "feature-42")["budget_usd"], json!(0.5));
    wait_until("it is removed", || {
        test.raymond(&["clean", "feature-42", "--yes"]);
        !test.run_dir().with_file_name("feature-42").exists()
    });
    signal(&test, "go", "", "");
    let ended = live.wait();
    ended
        .code(75)
        .stderr_has("the budget of $1.00 is used up: $0.50 spent, $0.50 given to started runs");
    assert_eq!(test.calls_with("second").len(), 0, "what the other one was given is gone");
    let resumed = test.resume(&["--budget", "0.9"]);
    resumed.code(64).stderr_has("$1.00 that the run t has spent already or given to runs");
    test.resume(&["--budget", "2"]).ok();
    let told = "child.lisp is not started: the budget of this run is used up, or given to the runs that it has started";
    assert!(logged(&test).contains(&told.to_owned()), "{:?}", logged(&test));
    test.raymond(&["show", "t", "main"]).ok().stdout_has(told);
}

#[test]
fn program_of_an_untrusted_folder_is_not_started() {
    let program = "(workflow parent
      (state s
        (action (start-workflow builds :as run :on-error refused))
        (terminal :status failed))
      (state refused (terminal :result @run/error)))";
    let test = written(program).env("RAYMOND_TRUST", "false");
    let other = test.flow().with_file_name("other");
    std::fs::create_dir(&other).expect("a folder");
    let builds = "(workflow builds (state s (action (run :command \"touch built\"))))";
    std::fs::write(other.join("builds.lisp"), builds).expect("written");
    test.raymond(&["workflow", "define", "../other/builds.lisp"]).ok();
    let ended = test.run(&["p.lisp"]);
    ended.ok().stdout_has("is not trusted as it is now").stdout_has("touch built");
    assert_eq!(runs(&test), ["t"]);
    test.raymond(&["trust", "../other/builds.lisp"]).ok();
    let trusting = program.replace(":on-error refused", "").replace(":status failed", "");
    let test = test.file("again.lisp", trusting.as_bytes());
    test.raymond(&["run", "again.lisp", "--id", "again"]).ok();
    wait_until("it is built", || test.flow().join("built").exists());
    assert!(runs(&test).iter().any(|id| id.starts_with("again-main-")));
    test.assert_no_survivors();
}

#[test]
fn failure_of_the_awaited_run_ends_the_wait_for_its_completion() {
    let child = "(workflow child (metadata (publish-state true)) (state s (terminal :status failed :result no)))";
    let waits = |condition: &str| {
        PARENT.replace("(signal workflow/state :key @run :equals completed)", condition)
    };
    let test = written(PARENT).file("child.lisp", child.as_bytes());
    let ended = test.run(&["p.lisp"]);
    let why = ended.code(1).failed("main");
    assert!(why.contains("can never hold: the run feature-42 has ended as failed"), "{why}");

    let either = waits(
        "(or (signal workflow/state :key @run :equals completed) (signal workflow/state :key @run :equals failed))",
    );
    let test = written(&either).file("child.lisp", child.as_bytes());
    test.run(&["p.lisp"]).ok().ended("main", "feature-42");
    test.assert_no_survivors();
}

#[test]
fn stopped_run_reports_only_facts_that_decide_its_wait() {
    let test = written(
        "(workflow w (state s (wait (signal workflow/state :key f :equals completed)) (terminal :result done)))",
    );
    let ended = test.run(&["p.lisp", "--on-wait", "exit"]);
    ended
        .code(2)
        .stderr_has("once that run has come so far, resume")
        .stderr_lacks("raymond signal");
    signal(&test, "workflow/state", "f", "running s");
    test.raymond(&["list"]).ok().stdout_lacks("a fact has come");
    signal(&test, "workflow/state", "f", "failed");
    test.raymond(&["list"]).ok().stdout_has("a fact has come; resume it: raymond resume t");
    test.raymond(&["status", "t"]).ok().stdout_has("the run f is failed since it stopped");
    let why = test.resume(&[]);
    assert!(why.code(1).failed("main").contains("can never hold"));
}

#[test]
fn failing_disk_holds_the_run_that_starts_another_and_fails_nothing() {
    let program = "(workflow parent
      (state s
        (action
          (run :command \"rm -rf $RAYMOND_DIR/dataspace; touch $RAYMOND_DIR/dataspace\" :once true)
          (start-workflow child.lisp :label feature-42 :as run :on-error bad))
        (terminal :result @run))
      (state bad (terminal :status failed :result @run/error)))";
    let child = "(workflow child (state s (terminal)))";
    let test = written(program).file("child.lisp", child.as_bytes());
    test.run(&["p.lisp"]).code(74).stderr_has("dataspace").stderr_has("resume");
    assert_eq!(runs(&test), ["t"], "it is not made");
    let dataspace = test.run_dir().with_file_name("").with_file_name("dataspace");
    std::fs::remove_file(dataspace).expect("removed");
    test.resume(&[]).ok().ended("main", "feature-42");
}

#[test]
fn started_run_continues_after_its_starter_has_ended() {
    let child = "(workflow child (state s (wait (signal go)) (terminal :result gone)))";
    let program = "(workflow parent (state s (action (start-workflow child.lisp :label later))))";
    let test = place().file("p.lisp", program.as_bytes()).file("child.lisp", child.as_bytes());
    test.run(&["p.lisp"]).ok();
    assert_eq!(test.raymond(&["status", "later", "--json"]).ok().json()["status"], "running");
    signal(&test, "go", "", "");
    wait_until("its end", || {
        test.raymond(&["status", "later", "--json"]).json()["status"] == "completed"
    });
    test.assert_no_survivors();
}
