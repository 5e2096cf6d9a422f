//! A terminal that is closed: a run in the foreground ends as after an interrupt, and one in the background
//! continues.

use rustix::process::Signal;

use crate::support::{Test, held, wait_until, when};

const SIZE: (u16, u16) = (24, 100);

#[test]
fn closed_terminal_leaves_none_of_seventy_processes() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work on {{item}}")
        .rule(when("start").times(70).reply(r#"<fork next="START.md" item="x">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("work").times(70).helper().ignore_term().hang())
        .rule(when("work").reply("<result>worked</result>"));
    let arguments = ["run", "START.md", "--id", "t", "--max-procs", "80", "--shutdown", "200ms"];
    let screen = test.on_screen(&arguments, SIZE);
    wait_until("70 workers", || test.helpers().len() == 70);
    assert_eq!(screen.hang_up(), Some(130));
    test.assert_no_survivors();
    assert_eq!(test.status()["status"], "paused");

    test.resume(&["--max-procs", "8"]).ok();
    assert_eq!(test.calls_with("work on x").len(), 140, "each was cut off once and answered once");
    test.assert_no_survivors();
}

#[test]
fn second_hangup_leaves_running_turns_their_grace() {
    let test = held();
    let mut live = test.shell(r#"exec env --default-signal=HUP "$0" run START.md --id t"#);
    live.wait_calls(1);
    live.signal(Signal::HUP);
    live.wait_stderr("interrupt");
    live.signal(Signal::HUP);
    test.release("go");
    live.wait().code(130);
    assert_eq!(test.events("step_finished").len(), 1, "the finished turn is kept");
    test.assert_no_survivors();
    test.resume(&[]).ok().ended("main", "ok");
}

#[test]
fn hangup_that_was_ignored_at_the_start_stays_ignored() {
    let test = held();
    let mut live = test.shell(r#"trap "" HUP; exec "$0" run START.md --id t"#);
    live.wait_calls(1);
    live.signal(Signal::HUP);
    test.release("go");
    live.wait().ok().ended("main", "ok");
}

#[test]
fn run_in_the_background_outlives_its_terminal() {
    let test = held();
    let mut screen = test.on_screen(&["start", "START.md", "--id", "t"], SIZE);
    assert_eq!(screen.wait_for_exit(), Some(0));
    wait_until("the first turn", || test.calls().len() == 1);
    let holder = std::fs::read_to_string(test.run_dir().join("lock")).expect("its holder");
    let stat = std::fs::read_to_string(format!("/proc/{holder}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a tail").split_whitespace().collect();
    assert_eq!(fields[3], holder, "a session of its own: {stat}");
    assert_eq!(fields[4], "0", "and no terminal: {stat}");
    screen.hang_up();
    test.release("go");
    wait_until("its end", || test.status()["status"] != "running");
    assert_eq!(test.status()["finished"][0]["result"], "ok");
    test.assert_no_survivors();
}
