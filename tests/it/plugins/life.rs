//! The life of a plug-in: its start, its restarts and its end; it is never left behind.

use super::{LOOKS_ON, held, lines, told, with};
use crate::support::{Test, alive, always, wait_until};

/// A plug-in that exits at a record, if the file `die` exists.
const DIES: &str = "hello()
for message in told():
    if message['type'] == 'record' and os.path.exists('die'):
        sys.exit(3)
";

fn die(test: &Test) {
    std::fs::write(test.flow().join("die"), "").expect("it is to die");
}

fn live_on(test: &Test) {
    std::fs::remove_file(test.flow().join("die")).expect("it is to live");
}

#[test]
fn crashed_plugin_is_restarted_at_its_journal_position() {
    let script = "hello('start')
for message in told():
    if message['type'] == 'consult': answer(message, verdict='proceed')
    if message['type'] == 'record' and not os.path.exists('died'):
        keep('died', '')
        sys.exit(3)
";
    let test = held(script, "");
    let mut live = test.spawn(&["START.md"]);
    live.wait_stderr("the plug-in p exited with code 3; raymond restarts it in ");
    live.wait_for("a second start", |test| told(test, "hello").len() == 2).wait_calls(1);
    test.release("go");
    live.wait().ok().ended("main", "well");
    let again = &told(&test, "hello")[1];
    assert_eq!((again["start"].as_u64(), again["seq"].as_u64()), (Some(2), Some(1)), "{again}");
    let records = told(&test, "record");
    let numbers: Vec<_> =
        records.iter().filter_map(|told| told["record"]["seq"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 3], "each is told once");
    test.assert_no_survivors();
}

#[test]
fn question_pending_at_a_crash_is_asked_again() {
    let script = "hello('start')
for message in told():
    if message['type'] == 'consult' and not os.path.exists('died'):
        keep('died', '')
        sys.exit(3)
    if message['type'] == 'consult': answer(message, verdict='stop', reason='at last')
";
    let test = with(script, "");
    let outcome = test.run(&["START.md"]);
    assert!(outcome.code(1).failed("main").contains("at last"));
    assert!(test.calls().is_empty());
    let asked = told(&test, "consult");
    assert_eq!((asked.len(), &asked[0]["question"]), (2, &asked[1]["question"]));
}

#[test]
fn run_continues_without_a_plugin_that_is_out_of_restarts() {
    let test = with("sys.exit(3)", "max_restarts: 2");
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "well");
    outcome.stderr_has(
        "exited with code 3, restarted 2 times within 10m: the run continues without it",
    );
}

#[test]
fn plugin_that_exits_with_code_0_is_not_restarted() {
    let test = held("hello()\nsys.exit(0)", "");
    let mut live = test.spawn(&["START.md"]);
    live.wait_stderr("exited with code 0: the run continues without it").wait_calls(1);
    test.release("go");
    live.wait().ok().stderr_lacks("started again");
}

#[test]
fn crash_of_a_required_plugin_pauses_the_run_which_can_resume() {
    let test = held(DIES, "required: true, restart: temporary");
    die(&test);
    let mut live = test.spawn(&["START.md"]);
    live.wait_stderr("the plug-in p exited with code 3; the run needs it");
    test.release("go");
    live.wait().code(75).stderr_has("the plug-in p: it is required, and has failed");
    assert_eq!(test.status()["pause"]["reason"], "plugin");
    live_on(&test);
    test.resume(&[]).ok().ended("main", "well");
    test.assert_no_survivors();
}

#[test]
fn plugin_that_cannot_start_is_named_and_refused_if_required() {
    let test = with(LOOKS_ON, "").file("raymond.yaml", b"plugins: [no-such-program --now]\n");
    let outcome = test.run(&["START.md"]);
    outcome.ok().ended("main", "well");
    outcome.stderr_has("the plug-in no-such-program cannot be started: no-such-program --now: no executable program `no-such-program`; the run continues without it");
    let manifest = b"plugins:\n  - { command: ./gone, required: true }\n";
    let test = with(LOOKS_ON, "").file("raymond.yaml", manifest);
    let outcome = test.run(&["START.md"]);
    outcome.code(69).stderr_has("the plug-in gone cannot be started").stderr_has("flow/gone");
    assert!(test.calls().is_empty() && !test.run_dir().exists());
}

#[test]
fn plugin_option_is_stored_with_the_run_and_can_be_replaced() {
    let test = held(LOOKS_ON, "").file("raymond.yaml", b"");
    let mut live = test.spawn(&["START.md", "--plugin", "python3 ./p.py one"]);
    live.wait_calls(1).interrupt();
    live.wait_stderr("interrupt");
    test.release("go");
    live.wait().code(130);
    let command = || {
        let plugins = &test.status()["settings"]["plugins"];
        plugins.as_array().map_or(0, Vec::len)
    };
    assert_eq!(command(), 1);
    let first = told(&test, "record").len() as u64;
    test.script(&[always().hold_before("later").reply("<result>well</result>")]);
    let mut live = test.spawn_resumed(&["--plugin", "python3 ./p.py two"]);
    live.wait_calls(2).interrupt();
    test.release("later");
    live.wait();
    assert_eq!(command(), 1, "it came in the place of the other");
    let again = &told(&test, "hello")[1];
    assert_eq!((again["seq"].as_u64(), again["start"].as_u64()), (Some(first), Some(1)));
}

#[test]
fn plugin_does_not_outlive_a_killed_raymond() {
    let test = held(&format!("keep('pid', str(os.getpid()))\n{LOOKS_ON}"), "");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1).wait_for("it runs", |test| told(test, "record").len() == 1);
    let pid = pids(&test)[0];
    live.kill9();
    wait_until("it ends with raymond", || !alive(pid));
    test.release("go");
    test.resume(&[]).ok().ended("main", "well");
    assert_eq!(told(&test, "hello").len(), 2, "it was started again");
    test.assert_no_survivors();
}

#[test]
fn plugin_that_outlives_raymond_is_ended_on_resume() {
    let script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)
keep('pid', str(os.getpid()))
hello()
for message in told(): pass
while True: time.sleep(600)
";
    let test = held(script, "");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1).wait_for("it runs", |test| told(test, "record").len() == 1);
    let first = pids(&test)[0];
    live.kill9();
    assert!(alive(first), "it is stubborn");
    test.release("go");
    test.resume(&["--no-plugins"]).ok().ended("main", "well");
    assert!(!alive(first));
    test.assert_no_survivors();
}

fn pids(test: &Test) -> Vec<i32> {
    let numbers = lines(test, "pid");
    numbers.iter().filter_map(|pid| pid.as_i64()?.try_into().ok()).collect()
}

#[test]
fn processes_started_by_a_plugin_end_with_it() {
    let script = "import subprocess\nsubprocess.Popen(['sleep', '600'])\nhello()\nfor message in told(): pass\n";
    let test = with(script, "");
    test.run(&["START.md"]).ok();
    test.assert_no_survivors();
}
