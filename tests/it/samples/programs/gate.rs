//! `gate`: CI and a person, either of which may object or not answer.

use super::SampleProgram;

const INPUT: [&str; 2] = ["--input", "Add a --dry-run flag"];
const CI: &str = ":awaiting \"(signal gate/ci :key f)\"";
const PERSON: &str = ":awaiting \"(signal gate/verdict :key f)\"";

#[test]
fn gate_returns_work_until_ci_passes_and_a_person_approves() {
    let sample = SampleProgram::new("gate");
    let mut run = sample.start("f", &INPUT);
    run.until("agent-request main#1/work/1 :to worker").until("Add a --dry-run flag").until(CI);
    sample.signal("gate/ci", "f", "failed: the copy is written");
    run.until("agent-request main#1/fix/1").until("failed: the copy is written").until(CI);
    sample.signal("gate/ci", "f", "passed");
    run.until(PERSON);
    sample.signal("gate/verdict", "f", "the help says nothing");
    run.until("agent-request main#1/change/1").until("the help says nothing").until(CI);
    sample.signal("gate/ci", "f", "passed");
    run.until(PERSON);
    sample.signal("gate/verdict", "f", "approved");
    run.ends(0);
    sample.assert_result("f", "The help text tells of it.");
    assert!(sample.facts("gate/ci").is_empty() && sample.facts("gate/verdict").is_empty());
}

#[test]
fn decision_on_earlier_work_does_not_count() {
    let sample = SampleProgram::new("gate");
    let mut run = sample.start("f", &INPUT);
    run.until(CI);
    sample.signal("gate/verdict", "f", "approved");
    sample.signal("gate/ci", "f", "failed");
    run.until("agent-response main#1/fix/1").until(CI);
    sample.signal("gate/ci", "f", "passed");
    run.until(PERSON);
    sample.signal("gate/ci", "f", "passed");
    sample.signal("gate/verdict", "f", "no");
    run.until("agent-response main#1/change/1").until(CI);
    sample.signal("gate/verdict", "f", "approved");
    sample.signal("gate/ci", "f", "passed, again");
    run.ends(0);
}

#[test]
fn signals_sent_before_the_run_count() {
    let sample = SampleProgram::new("gate");
    sample.signal("gate/ci", "f", "passed");
    sample.signal("gate/verdict", "f", "approved");
    sample.signal("gate/verdict", "another", "no");
    let run = [&["--label", "f"], &INPUT[..]].concat();
    sample.run(&run).assert_outcome(0, "Agent main terminated with result: The flag is there.\n");
    assert_eq!(sample.facts("gate/verdict").len(), 1, "that of the other run");
}

#[test]
fn gate_exits_while_it_waits_and_resumes_after_signals() {
    let sample = SampleProgram::new("gate");
    let run = [&["--label", "f", "--on-wait", "exit"], &INPUT[..]].concat();
    sample.run(&run).assert_outcome(2, "it waits for (signal gate/ci :key f)");
    sample.signal("gate/ci", "f", "passed");
    let again = ["run", "f", "--on-wait", "exit"];
    sample.run_command(&again).assert_outcome(2, "it waits for (signal gate/verdict :key f)");
    sample.signal("gate/verdict", "f", "approved");
    sample
        .run_command(&again)
        .assert_outcome(0, "Agent main terminated with result: The flag is there.\n");
}

#[test]
fn gate_fails_when_ci_or_the_person_exceeds_the_timeout() {
    let run = [&["--label", "f"], &INPUT[..]].concat();
    let sample = SampleProgram::new("gate").edit("\"2h\"", "\"1ms\"");
    sample.run(&run).assert_outcome(1, "nobody decided in time");
    let sample = SampleProgram::new("gate").edit("\"72h\"", "\"1ms\"");
    sample.signal("gate/ci", "f", "passed");
    sample.run(&run).assert_outcome(1, "nobody decided in time");
}
