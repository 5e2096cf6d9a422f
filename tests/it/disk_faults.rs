//! Faults of the disk, one after another: whatever call on a file fails, nothing is lost, and nothing is done or paid for
//! twice.
//!
//! `tests/faults/faulty.c` makes a call of raymond fail by a seccomp filter, so calls that bypass libc fail, too. A test
//! tries some calls of each kind, with `RAYMOND_TEST_FAULTS=all` all of them.

use std::path::Path;

use crate::support::{FAULTY, RaymondOutcome, Test, alive, wait_until, when};

/// The number of calls of a kind that fail in an ordinary test.
const SAMPLES: usize = 5;

/// A kind of calls that fail, and how: the number of an error, or `short`.
const FAULTS: [(&str, &str); 7] = [
    ("write", "28"),
    ("write", "5"),
    ("write", "short"),
    ("sync", "5"),
    ("rename", "28"),
    ("open", "24"),
    ("full", "28"),
];

/// A workflow, and what is true of it after any faults.
struct Scenario {
    workflow: fn() -> Test,
    target: &'static str,
    check: fn(&Test, &str),
}

impl Scenario {
    /// Lets the chosen calls of each kind fail, resumes the run, and checks it; returns how often a fault was hit.
    fn sweep(&self, program: &Path, faults: &[(&str, &str)]) -> usize {
        let mut tried = 0;
        for &(kind, how) in faults {
            let whole = (self.workflow)();
            let outcome = self.run(program, &whole, (kind, 0, how));
            outcome.assert(outcome.status.success(), "a run without faults succeeds");
            (self.check)(&whole, "without faults");
            let calls = calls(&whole);
            assert!(calls > 0, "{kind}: there are such calls");
            for at in chosen(calls) {
                self.try_fault(program, (kind, at, how));
                tried += 1;
            }
        }
        tried
    }

    fn try_fault(&self, program: &Path, (kind, at, how): (&str, usize, &str)) {
        let context = format!("{kind} {at} fails with {how}");
        let test = (self.workflow)();
        let mut outcome = self.run(program, &test, (kind, at, how));
        // A run that does not come about may say that a file of the workflow cannot be read.
        let is_right = outcome.status.success()
            || outcome.status.code() == Some(74)
            || !test.run_dir().exists();
        outcome.assert(is_right, &format!("{context}: exit 0 or 74"));
        if !outcome.status.success() {
            outcome =
                if test.run_dir().exists() { test.resume(&[]) } else { test.run(&[self.target]) };
        }
        outcome.assert(outcome.status.success(), &format!("{context}: the resumed run succeeds"));
        assert!(test.events("agent_failed").is_empty(), "{context}: an agent has failed");
        (self.check)(&test, &context);
    }

    fn run(
        &self,
        program: &Path,
        test: &Test,
        (kind, at, how): (&str, usize, &str),
    ) -> RaymondOutcome {
        let log = test.root().join("counted");
        let program = program.to_str().expect("text");
        let (root, at) = (test.root().join(""), at.to_string());
        let words = [kind, &at, how, root.to_str().expect("text"), log.to_str().expect("text")];
        test.run_by(program, &words, &[self.target])
    }
}

/// Returns the number of calls that were counted.
fn calls(test: &Test) -> usize {
    std::fs::read_to_string(test.root().join("counted")).expect("the log").lines().count()
}

/// Returns the calls that fail, out of so many: some that are spread evenly, or all.
fn chosen(calls: usize) -> Vec<usize> {
    (1..=calls).rev().step_by(step(calls)).collect()
}

/// Returns the distance from one call that fails to the next.
fn step(calls: usize) -> usize {
    let all = std::env::var_os("RAYMOND_TEST_FAULTS").is_some();
    if all { 1 } else { calls.div_ceil(SAMPLES).max(1) }
}

/// Returns a workflow of prompts with a fork and a call.
fn prompts() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("SUB.md", "sub")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.01))
        .rule(when("work").reply("<result>worked</result>").cost(0.01))
        .rule(when("next").reply(r#"<call return="SUB.md">SUB.md</call>"#).cost(0.01))
        .rule(when("sub").reply("<result>found</result>").cost(0.01))
}

fn each_turn_was_paid_once(test: &Test, context: &str) {
    let mut prompts = test.prompts();
    prompts.sort();
    assert_eq!(prompts, ["next", "start", "sub", "sub", "work"], "{context}: the turns");
    assert_eq!(test.status()["total_cost_usd"], 0.05, "{context}: the cost");
}

/// Returns a graph that writes files and runs commands, each once.
fn operations() -> Test {
    let graph = r#"
name: flow
version: "1.0.0"
description: Writes files and runs commands.
entry_preconditions: []
initial_state: { flags: {}, computed: {} }
start_node: a
nodes:
  a:
    type: action
    actions:
      - { type: write_file, path: note.txt, content: "noted" }
      - { type: append_to_file, path: lines.txt, content: "line\n" }
      - { type: bash_exec, command: "echo paid >> ../out/once", once: true }
      - { type: bash_exec, command: "echo said; echo paid >> ../out/twice", store_as: computed.said }
      - { type: write_file, path: last.txt, content: "${computed.said.stdout}" }
    on_success: done
    on_failure: failed
endings:
  done: { type: success, message: Done }
  failed: { type: error, message: "${computed.last_error}" }
"#;
    Test::new().file("workflow.yaml", graph.as_bytes())
}

fn each_operation_was_done_once(test: &Test, context: &str) {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let (flow, out) = (test.flow(), test.root().join("out"));
    let found = [
        read(&flow.join("note.txt")),
        read(&flow.join("lines.txt")),
        read(&out.join("once")),
        read(&out.join("twice")),
        read(&flow.join("last.txt")),
    ];
    assert_eq!(found, ["noted", "line\n", "paid\n", "paid\n", "said\n"], "{context}");
}

const PROMPTS: Scenario =
    Scenario { workflow: prompts, target: "START.md", check: each_turn_was_paid_once };

const OPERATIONS: Scenario =
    Scenario { workflow: operations, target: "workflow.yaml", check: each_operation_was_done_once };

#[test]
#[expect(clippy::print_stdout, reason = "the figures of a whole sweep")]
fn no_fault_repeats_a_turn() {
    let Some(program) = &*FAULTY else { return };
    println!("{} faults", PROMPTS.sweep(program, &FAULTS));
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures of a whole sweep")]
fn no_fault_repeats_or_fails_an_operation() {
    let Some(program) = &*FAULTY else { return };
    println!("{} faults", OPERATIONS.sweep(program, &FAULTS));
}

#[test]
fn no_fault_of_a_resume_repeats_anything() {
    let Some(program) = &*FAULTY else { return };
    for &(kind, how) in &FAULTS {
        let mut at = 1;
        // The disk of the first run is full after it has begun; then a call of the resume fails.
        loop {
            let mut full = 20;
            let test = loop {
                let test = operations();
                OPERATIONS.run(program, &test, ("full", full, "28")).code(74);
                if test.run_dir().exists() {
                    break test;
                }
                full += 5;
            };
            let log = test.root().join("counted");
            let (root, number) = (test.root().join(""), at.to_string());
            let plain = |path: &Path| path.to_str().expect("text").to_owned();
            let words = [kind, &number, how, &plain(&root), &plain(&log)];
            let arguments = ["run", "--backoff", "1ms..5ms", "t"];
            let again = test.start_by(&plain(program), &words, &arguments).wait();
            let context = format!("{kind} {at} of the resume fails with {how}");
            let is_right = again.status.code().is_some_and(|code| code != 1);
            again.assert(is_right, &format!("{context}: no agent fails"));
            if !again.status.success() {
                test.resume(&[]).ok();
            }
            each_operation_was_done_once(&test, &context);
            let reached = calls(&test);
            if reached < at {
                break;
            }
            at += step(reached);
        }
    }
}

#[test]
fn turn_runs_on_while_the_journal_fails_and_is_adopted() {
    let Some(program) = &*FAULTY else { return };
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("FAST.md", "fast")
        .prompt("SLOW.md", "slow")
        .rule(when("start").reply(r#"<fork next="FAST.md">SLOW.md</fork>"#))
        .rule(when("slow").hold_before("slow").reply("<result>slow</result>"))
        .rule(when("fast").hold_before("fast").reply("<result>fast</result>"));
    let log = test.root().join("counted");
    let plain = |path: &Path| path.to_str().expect("text").to_owned();
    let words = ["write", "-1", "28", &plain(&test.journal_file()), &plain(&log)];
    let arguments = ["run", "--id", "t", "START.md"];
    let running = test.start_by(&plain(program), &words, &arguments);
    wait_until("both turns run", || test.calls().len() == 3);
    std::fs::write(log.with_extension("now"), "").expect("the disk is full from now on");
    test.release("fast");
    running.wait().code(74).stderr_has("running turns finish on their own");
    let slow = test.calls_with("slow").remove(0).pid;
    assert!(alive(slow), "raymond has ended, and the turn runs on");
    test.raymond(&["status", "t"]).ok().stdout_has("1 of its processes still run");
    test.release("slow");
    test.resume(&[]).ok().stdout_has("slow");
    assert!(test.is_done(slow), "it came to its end by itself");
    assert_eq!(test.calls().len(), 3, "no turn is paid for again");
}

#[test]
fn stop_ends_the_operation_that_a_run_without_a_journal_waits_for() {
    let Some(program) = &*FAULTY else { return };
    let graph = r#"
name: slow
version: "1.0.0"
description: Takes long.
entry_preconditions: []
initial_state: { flags: {}, computed: {} }
start_node: a
nodes:
  a:
    type: action
    actions: [{ type: bash_exec, command: "touch ../out/begun; exec sleep 600" }]
    on_success: done
    on_failure: done
endings:
  done: { type: success, message: Done }
"#;
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("FAST.md", "fast")
        .file("slow.yaml", graph.as_bytes())
        .rule(when("start").reply(r#"<fork next="FAST.md">slow.yaml</fork>"#))
        .rule(when("fast").hold_before("fast").reply("<result>fast</result>"));
    let log = test.root().join("counted");
    let plain = |path: &Path| path.to_str().expect("text").to_owned();
    let words = ["write", "-1", "28", &plain(&test.journal_file()), &plain(&log)];
    let arguments = ["run", "--id", "t", "--trust", "START.md"];
    let running = test.start_by(&plain(program), &words, &arguments);
    wait_until("the command runs", || test.root().join("out/begun").exists());
    wait_until("the turn runs", || test.calls().len() == 2);
    std::fs::write(log.with_extension("now"), "").expect("the disk is full from now on");
    test.release("fast");
    test.raymond(&["stop", "t", "--wait"]).ok();
    running.wait().code(74).stderr_has("raymond waits for running operations (1)");
}
