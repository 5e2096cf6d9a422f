//! Kills raymond at each boundary of a program, resumes the run, and compares: the same states and requests,
//! each prompt that was answered sent once, each fact asserted and taken once.

use raymond::fault::POINTS;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ask, holds, logged, program, route, signal};
use crate::graph::git;
use crate::support::{Test, wait_until, when};

const FILE: &str = "p.lisp";

/// A program with one of each: two concurrent roles, a loop with rounds, a branch, facts that are asserted,
/// taken and retracted, work in a repository, a folder, a timeout.
const PROGRAM: &str = "(workflow w
  (roles (a) (b) (c))
  (state s
    (wait (signal go :key @workflow-id))
    (action
      (send-prompt :agent a :template \"one ~a\" :args ((signal go :key @workflow-id)) :request-id r1)
      (send-prompt :agent b :template \"two\" :request-id r2))
    (await (and (transcript-response :request-id r1) (transcript-response :request-id r2)))
    (action (assert job :key one :value first) (assert job :key two :value second)))
  (state work
    (loop
      (branch
        (on (signal job)
          (wait (signal job :consume true :as job))
          (action (send-prompt :agent b :template \"do ~a after ~a\" :args (@job (feedback b)) :request-id r3)
            (await (transcript-response :request-id r3))))
        (otherwise (goto more)))))
  (state more
    (action
      (retract go :key @workflow-id)
      (run-folder :agent c :start \"sub/FIRST.md\" :input \"all\" :request-id r4)
      (await (transcript-response :request-id r4))
      (log \"~a\" (artifact a)))
    (wait (signal never) :timeout \"5ms\" :on-timeout end)
    (goto s))
  (state end (terminal :result (response r4))))";

fn place() -> Test {
    let test = Test::new()
        .file(FILE, PROGRAM.as_bytes())
        .prompt("sub/FIRST.md", "first of {{input}}")
        .prompt("sub/SECOND.md", "second")
        .rule(when("one now").reply("1").cost(0.01))
        .rule(when("two").reply("2").cost(0.01))
        .rule(when("do first after 2").reply("3").cost(0.01))
        .rule(when("do second after 3").reply("4").cost(0.01))
        .rule(when("first of all").reply("<goto>SECOND.md</goto>").cost(0.01))
        .rule(when("second").reply("<result>all done</result>").cost(0.01));
    signal(&test, "go", "t", "now");
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);
    test.file("poem", b"roses\n")
}

/// Returns everything that must be the same after a kill.
fn comparable_outcome(test: &Test) -> Value {
    let mut asked: Vec<String> =
        test.calls().iter().map(|call| format!("{} {}", call.agent(), call.prompt)).collect();
    asked.sort();
    let requests: Vec<Value> =
        test.events("role_requested").iter().map(|asked| asked["id"].clone()).collect();
    let mut responses: Vec<String> = test
        .events("role_responded")
        .iter()
        .map(|said| format!("{} {}", said["request"], said["response"]))
        .collect();
    responses.sort();
    let mut states = route(test, "main");
    states.dedup();
    states.retain(|state| !state.contains("(and "));
    let facts = test.raymond(&["facts", "--json"]).ok().json();
    json!({
        "asked": asked,
        "requests": requests,
        "responses": responses,
        "states": states,
        "logged": logged(test),
        "facts": facts,
        "cost": test.status()["total_cost_usd"],
    })
}

const RESULT: &str = "Agent main terminated with result: all done";

/// Resumes a run that was killed, or begins it if it never began.
fn resume(test: &Test) -> crate::support::RaymondOutcome {
    if test.run_dir().exists() { test.resume(&[]) } else { test.run(&[FILE]) }
}

/// Resumes a run to its end, and compares it with one that was not killed.
fn resume_and_compare(test: &Test, context: &str, whole: &Value) {
    let last = resume(test);
    last.assert(last.status.code() == Some(0), &format!("{context}: exit code 0"));
    last.assert(last.stdout.contains(RESULT), &format!("{context}: {RESULT}"));
    assert_eq!(comparable_outcome(test), *whole, "{context}");
    wait_until(&format!("{context}: no process is left behind"), || test.survivors().is_empty());
}

/// Kills raymond the `count`-th time a failpoint is reached, and compares the resumed run; returns whether
/// the failpoint was reached that often.
fn is_killed_at(point: &str, count: u32, whole: &Value) -> bool {
    let context = format!("killed at {point}, time {count}");
    let test = place().env("RAYMOND_FAILPOINT", format!("{point}:{count}"));
    let first = test.run(&[FILE]);
    let died = first.killed();
    first.assert(died || first.status.code() == Some(0), &context);
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    resume_and_compare(&test, &context, whole);
    died
}

fn whole() -> Value {
    let whole = place();
    let ended = whole.run(&[FILE]);
    ended.ok().ended("main", "all done");
    let expected = comparable_outcome(&whole);
    assert_eq!(expected["facts"], json!([]));
    assert!(
        expected["logged"][0].as_str().is_some_and(|work| work.contains("+roses")),
        "{expected}"
    );
    assert_eq!(expected["requests"].as_array().map(Vec::len), Some(5));
    assert_eq!(expected["asked"].as_array().map(Vec::len), Some(6));
    expected
}

#[test]
fn program_killed_at_any_point_has_same_outcome() {
    let whole = whole();
    let times = [1, 2, 4, 7];
    let dies = |point: &str| {
        let deaths = times.iter().take_while(|&&count| is_killed_at(point, count, &whole));
        deaths.count()
    };
    let deaths: Vec<(&str, usize)> = POINTS.into_iter().map(|point| (point, dies(point))).collect();
    for often in ["append.before", "sync.after", "activity.before", "activity.after"] {
        assert!(deaths.contains(&(often, times.len())), "{often}: {deaths:?}");
    }
    let lived: Vec<&str> = deaths
        .iter()
        .filter(|(_, count)| *count == 0)
        .map(|(point, _)| *point)
        .filter(|point| {
            // The facts have their journal before the run begins.
            let others = ["fork.", "snapshot.", "worktree.", "approval.", "message.", "migrate."];
            !others.iter().any(|other| point.starts_with(other))
        })
        .collect();
    assert_eq!(lived, ["operation.before", "operation.after", "inbox.before"]);
}

#[test]
fn program_killed_twice_has_same_outcome() {
    let whole = whole();
    let pairs = [
        ("activity.after:1", "activity.after:1"),
        ("activity.before:3", "dataspace.noted:1"),
        ("dataspace.written:2", "activity.before:1"),
        ("dataspace.applied:1", "dataspace.noted:1"),
        ("append.after:9", "adopt.before:1"),
        ("spawn.asked:3", "effect.before:2"),
        ("sync.after:12", "append.before:3"),
    ];
    for (first, second) in pairs {
        let context = format!("killed at {first}, then at {second}");
        let test = place().env("RAYMOND_FAILPOINT", first);
        test.run(&[FILE]);
        let test = test.env("RAYMOND_FAILPOINT", second);
        resume(&test);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        resume_and_compare(&test, &context, &whole);
    }
}

#[test]
fn turn_running_at_kill_is_adopted() {
    let asked = ask("a", "work", "r");
    for finished in [false, true] {
        let test = program(&format!("(state s {asked} (terminal :result (response r)))"))
            .rule(when("work").hold_before("go").reply("done").cost(0.01));
        let mut live = test.spawn(&[FILE]);
        live.wait_calls(1);
        live.signal(Signal::KILL);
        assert!(live.wait().killed());
        if finished {
            test.release("go");
            let pid = test.calls()[0].pid;
            wait_until("the turn has ended", || test.is_done(pid) || !crate::support::alive(pid));
        }
        let mut live = test.spawn_resumed(&[]);
        live.wait_event("run_resumed", 0);
        test.release("go");
        live.wait().ok().ended("main", "done");
        assert_eq!(test.prompts(), ["work"], "it is asked once");
        assert!(holds(&test).is_empty());
    }
}
