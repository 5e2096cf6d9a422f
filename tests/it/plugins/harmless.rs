//! A plug-in that hangs, floods or writes nonsense delays the run at most once.

use super::{count, held, told, with};
use crate::support::{RaymondOutcome, Test, always, when};

/// Returns a workflow of several steps with this command as a plug-in.
fn beside(command: &str, options: &str) -> Test {
    let manifest = format!("plugins:\n  - {{ name: p, command: {command}, {options} }}\n");
    Test::new()
        .file("raymond.yaml", manifest.as_bytes())
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").times(5).reply("<reset>START.md</reset>"))
        .rule(always().reply("<result>well</result>"))
}

#[track_caller]
fn goes_on(test: &Test, warning: &str) -> RaymondOutcome {
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "well");
    assert_eq!(count(&outcome.stderr, warning), 1, "{}", outcome.stderr);
    test.assert_no_survivors();
    outcome
}

#[test]
fn silent_plugin_is_waited_for_once() {
    let test = beside("[sh, -c, 'exec sleep 600']", "deadline: 50ms");
    goes_on(&test, "the plug-in p did not answer within 50ms");
}

#[test]
fn plugin_that_ignores_sigterm_is_killed() {
    let script =
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nhello()\nwhile True: time.sleep(600)\n";
    let test = with(script, "");
    test.run(&["START.md"]).ok().stderr_has("the plug-in p was killed by signal 9");
    test.assert_no_survivors();
}

#[test]
fn late_answer_delays_the_run_once() {
    let script = "hello('start')
for message in told():
    if message['type'] == 'consult':
        while not os.path.exists('awake'): time.sleep(0.001)
        answer(message, verdict='proceed')
        keep('answered', '')
";
    let manifest = b"plugins:\n  - { command: python3 ./p.py, deadline: 200ms }\n";
    let test = held(script, "").file("raymond.yaml", manifest);
    let mut live = test.spawn(&["START.md"]);
    live.wait_stderr("did not answer within 200ms").wait_calls(1);
    std::fs::write(test.flow().join("awake"), "").expect("it is woken");
    let said_hello = test.flow().join("said.jsonl");
    live.wait_for("an answer", |_| said_hello.exists() && test.flow().join("answered").exists());
    test.release("go");
    live.wait().ok().ended("main", "well");
    test.assert_no_survivors();
}

#[test]
fn silent_required_plugin_pauses_the_run() {
    let test = beside("[sh, -c, 'exec sleep 600']", "deadline: 50ms, required: true");
    test.run(&["START.md"]).code(75).stderr_has("it is required, and did not answer within 50ms");
    assert!(test.calls().is_empty());
    test.assert_no_survivors();
}

#[test]
fn each_flood_of_output_is_dropped_with_one_warning() {
    let line = r#"'{"type":"verdict","id":9,"verdict":"proceed"}'"#;
    let test = beside(&format!("[\"yes\", {line}]"), "deadline: 50ms");
    goes_on(&test, "the plug-in p answered the question 9, which waits for no answer");
    let test = beside("[cat, /dev/zero]", "deadline: 50ms");
    goes_on(&test, "the plug-in p wrote a line of more than 1048576 bytes");
    let test = beside("[sh, -c, 'yes >&2']", "deadline: 50ms");
    goes_on(&test, "it says more than is shown within a minute");
}

#[test]
fn invalid_messages_are_warned_of_once() {
    let script = "print('hello?', flush=True)\nprint('hello!', flush=True)
print('{\"type\":\"verdict\",\"id\":77,\"verdict\":\"proceed\"}', flush=True)
hello('start')
for message in told():
    if message['type'] == 'consult': answer(message, verdict='proceed')
";
    let test = with(script, "");
    let outcome = test.run(&["START.md"]);
    outcome.ok().stderr_has("hello?").stderr_lacks("hello!").stderr_has("question 77");
    assert_eq!(count(&outcome.stderr, "is not a message"), 1, "{}", outcome.stderr);
    assert_eq!(told(&test, "consult").len(), 2, "its greeting counts all the same");
}

#[test]
fn plugin_of_another_protocol_version_is_not_consulted() {
    let script = "say(type='hello', version=1, consult=['start'])\nfor message in told(): pass\n";
    let test = with(script, "");
    test.run(&["START.md"])
        .ok()
        .stderr_has("speaks version 1 of the protocol, and this raymond speaks 2");
    assert!(told(&test, "consult").is_empty() && !told(&test, "record").is_empty());
    let test = with(script, "required: true");
    test.run(&["START.md"]).code(75).stderr_has("speaks another version");
}

#[test]
fn plugin_that_reads_nothing_misses_records_and_the_run_continues() {
    let script = "hello()\nwhile not os.path.exists('awake'): time.sleep(0.001)\nfor message in told(): pass\n";
    let test = with(script, "").prompt("WORKER.md", "work");
    let long = format!("<result>{}</result>", "x".repeat(400_000));
    test.script(&[
        when("start").times(40).reply(r#"<fork next="START.md">WORKER.md</fork>"#),
        when("start").hold_before("go").reply("<result>led</result>"),
        always().reply(&long),
    ]);
    let mut live = test.spawn(&["START.md"]);
    live.wait_stderr("the plug-in p does not read its input").wait_event("step_finished", 80);
    std::fs::write(test.flow().join("awake"), "").expect("it is woken");
    live.wait_for("it reads", |test| told(test, "record").len() > 10);
    test.release("go");
    live.wait().ok();
    let records = told(&test, "record");
    let missed: u64 = records.iter().filter_map(|told| told["missed"].as_u64()).sum();
    assert!(missed > 0 && missed + records.len() as u64 <= test.journal().len() as u64, "{missed}");
}

#[test]
fn stderr_of_a_plugin_is_shown() {
    let test =
        with("print('mind the gap', file=sys.stderr)\nhello()\nfor message in told(): pass\n", "");
    test.run(&["START.md"]).ok().stderr_has("the plug-in p says: mind the gap");
}
