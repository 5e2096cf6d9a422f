//! `raymond top` on a terminal: beside a live run, on a dead one, key by key.

use rustix::process::Signal;

use crate::support::{Test, always, crowd, held, pair, when};

const SIZE: (u16, u16) = (24, 100);
const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";
const LEFT: &str = "\u{1b}[D";
const RIGHT: &str = "\u{1b}[C";
const CONTROL_C: &str = "\u{3}";

/// Returns a workflow with an agent whose tool works, and one whose turn has no output yet; both last until
/// `go`.
fn at_work() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.25))
        .rule(when("work").tool("Grep").hold_tool("go").reply("<result>found it</result>"))
        .rule(when("next").hold_before("go").reply("<result>led</result>"))
}

#[test]
fn live_run_shows_each_agent_at_work_and_then_its_result() {
    let test = at_work();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(3);
    let mut screen = test.on_screen(&["top"], SIZE);
    screen.wait_for(&["t  running", "2 running", "$0.25 spent", "Grep"]);
    assert!(screen.row("▶ main.1").contains("WORKER.md"), "{}", screen.text());
    assert!(screen.row("▶ main ").contains("NEXT.md"), "{}", screen.text());

    screen.keys("j").keys(ENTER).wait_for(&["the last messages of main.1", "▸ Grep"]);
    test.release("go");
    screen.wait_for(&["→ done", "found it", "the turn is over"]);
    live.wait().ok();
    screen.keys(ESCAPE).wait_for(&["t  completed", "✓ main", "✓ main.1", "found it"]);
    screen.keys("q");
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert!(!screen.text().contains("main.1"), "{}", screen.text());
}

#[test]
fn filter_shows_only_matching_agents() {
    let test = at_work();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(3);
    let mut screen = test.on_screen(&["top", "t"], SIZE);
    screen.wait_for(&["WORKER.md", "NEXT.md"]);
    let only = |text: &str| text.contains("main.1") && !text.contains("NEXT.md");
    screen.keys("/WORK").wait_until("only the worker", only).wait_for(&["show only: work"]);
    screen.keys(ENTER).wait_for(&["only agents with `work`: 1"]);
    screen.keys(ESCAPE).wait_for(&["NEXT.md"]);
    screen.keys("f").wait_for(&["only failed agents: 0"]);
    screen.keys("r").wait_for(&["only running agents: 2", "main.1", "NEXT.md"]);
    screen.keys("?").wait_for(&["any key: back", "stop the run, after a question"]);
    screen.keys("x").wait_for(&["only running agents: 2"]);
    screen.keys(CONTROL_C);
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.release("go");
    live.wait().ok();
}

#[test]
fn many_siblings_fold_into_a_row_that_opens_and_closes() {
    let test = crowd();
    let mut live = test.spawn(&["START.md", "--max-procs", "16"]);
    live.wait_crowd();
    let mut screen = test.on_screen(&["top"], (30, 120));
    let row = "▸ 14 agents";
    screen.wait_for(&[row, "1 stuck · 1 running · 1 failed · 11 finished", "$0.11"]);
    let folded = |text: &str| text.contains(row) && !text.contains("main.14");
    screen.wait_until("those that stand out", |text| {
        folded(text) && ["! main.3 ", "▶ main.7 ", "✗ main.5 "].iter().all(|one| text.contains(one))
    });
    screen.keys("j").keys(ENTER).wait_for(&["▾ 14 agents", "✓ main.1 ", "✓ main.14"]);
    screen.keys("jj").keys(LEFT).keys(LEFT).wait_until("folded again", folded);
    screen.keys(RIGHT).wait_for(&["▾ 14 agents", "✓ main.14"]).keys("j").keys(ENTER);
    screen.wait_for(&["the last messages of main.3"]).keys(ESCAPE).wait_for(&["▾ 14 agents"]);
    let each = |text: &str| text.contains("✓ main.14") && !text.contains("14 agents");
    screen.keys("k").keys(ENTER).wait_until("folded", folded).keys("o").wait_until("each", each);
    screen.keys("o").wait_until("folded at last", folded).keys("q");
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.release("go");
    live.wait().code(2);
}

#[test]
fn stop_key_stops_the_run_after_confirmation() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let mut screen = test.on_screen(&["top"], SIZE);
    screen.wait_for(&["1 running"]).keys("s").wait_for(&["Stop it? y or n"]);
    screen.keys("n").wait_for(&["q quit"]);
    assert!(test.events("command_received").is_empty());
    screen.keys("s").wait_for(&["Stop it? y or n"]).keys("y").wait_for(&["it stops once"]);
    live.wait_event("command_received", 1);
    test.release("go");
    live.wait().code(130);
    screen.wait_for(&["t  paused", "paused: stopped on request", "waits: the run is paused"]);
    screen.keys("sy").wait_for(&["it is not live"]).keys("q");
    assert_eq!(screen.wait_for_exit(), Some(0));
}

#[test]
fn killed_run_is_shown_and_followed_when_resumed() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    let mut screen = test.on_screen(&["top"], SIZE);
    screen.wait_for(&[
        "t  interrupted",
        "waits for the run to be resumed",
        "`raymond resume t` resumes it",
    ]);
    screen.keys(ENTER).wait_for(&["no output yet"]).keys(ESCAPE);
    test.release("go");
    test.resume(&[]).ok();
    screen.wait_for(&["t  completed", "✓ main"]).keys(ENTER).wait_for(&["<result>ok</result>"]);
    screen.keys("qq");
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.assert_no_survivors();
}

#[test]
fn resize_redraws_the_screen_and_sigterm_exits_130() {
    let test = pair().env("NO_COLOR", "1");
    test.run(&["START.md"]).ok();
    let mut screen = test.on_screen(&["top"], SIZE);
    screen.wait_for(&["t  completed", "✓ main.1", "q quit"]);
    screen.resize(5, 30).wait_until("a small screen", |text| {
        text.lines().next().is_some_and(|line| line.ends_with('…')) && !text.contains("main.1")
    });
    screen.resize(24, 100).wait_for(&["✓ main.1", "q quit"]);
    screen.signal(Signal::TERM);
    assert_eq!(screen.wait_for_exit(), Some(130));
    let written = screen.written();
    let colours = written.split("\u{1b}[").skip(1).filter(|code| {
        let end = code.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        let is_colour = |part: &str| matches!(part.parse(), Ok(30..=38 | 40..=48 | 90..=107));
        code[end..].starts_with('m') && code[..end].split(';').any(is_colour)
    });
    assert_eq!(colours.count(), 0, "{written:?}");
}

#[test]
fn newest_live_run_of_several_is_shown() {
    let test = held();
    test.run(&["NEXT.md", "--id", "old"]).ok();
    let mut first = test.spawn(&["START.md", "--id", "first"]);
    first.wait_calls(2);
    let mut second = test.spawn(&["START.md", "--id", "second"]);
    second.wait_calls(3);
    let mut screen = test.on_screen(&["top"], SIZE);
    screen.wait_for(&["second  running", "the newest of 2 live runs"]).keys("q");
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.release("go");
    first.wait().ok();
    second.wait().ok();
}

#[test]
fn missing_terminal_or_run_exits_64_with_a_hint() {
    let test = Test::new().rule(always().reply("x"));
    test.raymond(&["top"]).code(64).stderr_has("raymond tree RUN").stderr_has("status RUN");
    let mut screen = test.on_screen(&["top"], SIZE);
    screen.wait_for(&["no runs in", "raymond run PATH"]);
    assert_eq!(screen.wait_for_exit(), Some(64));
    let mut screen = test.on_screen(&["top", "none"], SIZE);
    screen.wait_for(&["no run none"]);
    assert_eq!(screen.wait_for_exit(), Some(64));
}
