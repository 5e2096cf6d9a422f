//! The live view of a run on a pseudo-terminal.

use std::process::{Command, Output, Stdio};

use crate::support::{TerminalScreen, Test, pair, when};

/// Runs the tour on a terminal that `script` makes; returns all that it printed.
fn on_a_terminal(variables: &[(&str, &str)], options: &str) -> String {
    let place = tempfile::tempdir().expect("a temporary folder");
    let raymond = env!("CARGO_BIN_EXE_raymond");
    let line = format!("{raymond} run workflows/tour --agent scripted --id t {options}");
    let output: Output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm-256color")
        .env("RAYMOND_DIR", place.path())
        .env("HOME", place.path())
        .envs(variables.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .expect("script, of util-linux, starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn live_view_shows_agents_with_states_and_ends_with_the_results() {
    let text = on_a_terminal(&[], "");
    let text = console::strip_ansi_codes(&text);
    assert!(text.contains("no model is called"), "{text}");
    assert!(text.contains("t · 1 running · "), "the headline: {text}");
    assert!(text.contains("main.1  POSTCARD.md"), "a worker's row: {text}");
    let (_, end) = text.rsplit_once("Agent main terminated with result: ").expect("the last agent");
    assert!(end.contains("run t finished"), "{end}");
    assert!(!end.contains("running"), "the live view is taken away: {end}");
}

#[test]
fn colours_are_forced_and_forbidden_by_option_and_variable() {
    let is_coloured = |test: Test, options: &[&str]| {
        let outcome = test.run(&[&["START.md"], options].concat());
        let stderr = outcome.ok().stderr.clone();
        let log = test.raymond(&[&["log", "t"], options].concat()).ok().stdout.clone();
        assert_eq!(stderr.contains("\u{1b}[32m"), log.contains("\u{1b}[32m"), "{stderr}\n{log}");
        stderr.contains('\u{1b}')
    };
    assert!(!is_coloured(pair(), &[]));
    assert!(is_coloured(pair(), &["--color", "always"]));
    assert!(is_coloured(pair().env("FORCE_COLOR", "1"), &[]));
    assert!(!is_coloured(pair().env("FORCE_COLOR", "1"), &["--color=never"]));
    assert!(!is_coloured(pair().env("FORCE_COLOR", "1").env("NO_COLOR", "1"), &[]));
}

/// Returns a workflow in which START forks that many workers, which last until `go`, and waits for them.
fn fan_out(workers: usize) -> Test {
    let items: Vec<String> = (1..=workers).map(|item| format!("file-{item}.rs")).collect();
    let fork =
        format!("<fork next=\"JOIN.md\" each='{}'>WORKER.md</fork>", serde_json::json!(items));
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("JOIN.md", "---\njoin: all\n---\nmerge")
        .rule(when("start").reply(&fork))
        .rule(when("work on").times(5).cost(0.5).reply("<result>done</result>"))
        .rule(when("work on").hold_before("go").cost(0.5).reply("<result>done</result>"))
        .rule(when("merge").reply("<result>merged</result>"))
}

/// The arguments of a run of [`fan_out`].
const FAN_OUT: [&str; 8] = ["run", "START.md", "--id", "t", "--stagger", "0s", "--max-procs", "3"];

/// Asserts that nothing of the live view is left on a screen.
fn assert_no_fragments(screen: &TerminalScreen) {
    let text = screen.text();
    for part in ["of 30 (", "queued", "3 running", "starting", "… and", "file-", "about $"] {
        assert!(!text.contains(part), "{part:?} is left:\n{text}");
    }
}

#[test]
fn fan_out_of_many_is_one_row_with_items_and_the_end_is_a_table() {
    let test = fan_out(30);
    let mut screen = test.on_screen(&FAN_OUT, (24, 100));
    screen.wait_for(&["WORKER.md  5 of 30 (16%)", "3 running, 22 queued", "$2.50"]);
    screen.wait_for(&["  file-", "waits for 25 more of 30 agents", "about $15.00 in all"]);
    assert!(!screen.text().contains("file-20.rs"), "{}", screen.text());
    test.release("go");
    screen.wait_for(&["run t finished"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert_no_fragments(&screen);
    let row = screen.row("WORKER.md  ");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[..5], ["WORKER.md", "30", "30", "0", "$15.00"], "{}", screen.text());
    screen.wait_for(&["Agent main terminated with result: merged", "raymond tree t --all"]);
    assert!(!screen.text().contains("Agent main.7"), "{}", screen.text());
}

#[test]
fn each_step_of_a_small_run_has_a_line_above_the_live_view() {
    let test = pair();
    let mut screen = test.on_screen(&["run", "START.md", "--id", "t"], (24, 100));
    screen.wait_for(&["run t finished"]);
    screen.wait_for(&["main  START.md → NEXT.md", "main.1  WORKER.md → worked (result)"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert_no_fragments(&screen);
}

#[test]
fn resize_and_ctrl_c_leave_no_fragments_of_the_live_view() {
    let test = fan_out(30);
    let mut screen = test.on_screen(&FAN_OUT, (24, 100));
    screen.wait_for(&["5 of 30 (16%)", "3 running"]);
    screen.resize(12, 40).wait_until("narrow rows", |text| {
        text.contains("5 of 30 (16%)") && text.lines().all(|line| line.chars().count() <= 40)
    });
    screen.resize(24, 100).wait_for(&["3 running, 22 queued"]);
    let rows = screen.text().lines().filter(|line| line.contains("5 of 30 (16%)")).count();
    assert_eq!(rows, 1, "{}", screen.text());
    screen.keys("\u{3}").wait_for(&["interrupt again to end them at"]).keys("\u{3}");
    assert_eq!(screen.wait_for_exit(), Some(130));
    assert_no_fragments(&screen);
    screen.wait_for(&["paused: stopped by an interrupt"]);
    test.assert_no_survivors();
}

#[test]
fn verbose_run_has_a_line_for_each_agent_and_quiet_run_only_for_the_first() {
    let test = fan_out(30);
    test.release("go");
    let verbose = test.run(&["START.md", "--stagger", "0s", "-v"]);
    verbose.ok().ended("main", "merged").ended("main.30", "done");
    verbose.stderr_has("main.30  WORKER.md → done (result)");
    let quiet = test.run(&["START.md", "--stagger", "0s", "-q", "--id", "u"]);
    assert_eq!(quiet.ok().stdout, "merged", "nothing else, byte for byte");
    assert_eq!(quiet.stderr.lines().count(), 1, "{}", quiet.stderr);
    test.run(&["START.md", "-q", "-v", "--id", "x"]).code(64);
}

#[test]
fn run_of_two_thousand_agents_prints_progress_instead_of_steps() {
    let items: Vec<usize> = (1..=2000).collect();
    let replies = serde_json::json!({
        "START.md": [format!("<fork next=\"JOIN.md\" each='{}'>WORKER.md</fork>", serde_json::json!(items))],
        "WORKER.md": ["<result>did {{item}}</result>"],
        "JOIN.md": ["<result>merged</result>"],
    });
    let test = Test::new()
        .prompt("START.md", "---\nmax_fan_out: 2000\n---\nstart")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("JOIN.md", "---\njoin: all\n---\nmerge")
        .file("replies.yaml", replies.to_string().as_bytes());
    let outcome = test.run(&["START.md", "--agent", "scripted", "--stagger", "0s"]);
    outcome.ok().ended("main", "merged").stderr_has("WORKER.md  all 2000 ended");
    assert!(outcome.stderr.lines().count() < 30, "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().count(), 5, "{}", outcome.stdout);
    let tree = test.raymond(&["tree", "t"]);
    tree.ok().stdout_has("2000 agents, main.1 … main.2000");
    let costs = test.raymond(&["costs", "t"]);
    costs.ok().stdout_has("2000 agents of WORKER.md");
}

#[test]
fn no_color_variable_disables_all_colours() {
    let text = on_a_terminal(&[("NO_COLOR", "1")], "");
    let colours = text.split("\u{1b}[").skip(1).filter(|code| {
        let end = code.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        code[end..].starts_with('m') && &code[..end] != "0"
    });
    assert_eq!(colours.count(), 0, "{text:?}");
}

#[test]
fn json_log_replaces_live_view() {
    let text = on_a_terminal(&[], "--log-format json");
    assert!(!text.contains("running, 0 waiting") && !text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("\"target\":\"raymond::people\""), "{text}");
}

#[test]
fn run_calls_people_through_a_terminal_that_can() {
    let test = Test::new()
        .env("TERM_PROGRAM", "ghostty")
        .prompt("START.md", "start")
        .prompt("NEXT.md", "they said {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Shall I?</ask>"#))
        .rule(when("they said").reply("<result>ok</result>"));
    let mut screen = test.on_screen(&["run", "START.md", "--id", "t"], (24, 100));
    screen.wait_for(&["Shall I?", "1 for a person"]).keys("yes\r");
    assert_eq!(screen.wait_for_exit(), Some(0));
    let written = screen.all_written();
    let asks = "\u{1b}]777;notify;raymond t;main of run t asks NEXT.md: Shall I?";
    let is_over = "\u{1b}]777;notify;raymond t;run t finished";
    assert!(written.contains(asks) && written.contains(is_over), "{written:?}");
    let order = [
        "\u{1b}[22;2t",
        "\u{1b}]2;raymond t · needs you\u{1b}\\\u{1b}]9;4;4;0\u{1b}\\",
        "\u{1b}]9;4;0;0\u{1b}\\\u{1b}[23;2t",
    ];
    let mut rest = written.as_str();
    for part in order {
        let found = rest.split_once(part);
        let (_, after) = found.unwrap_or_else(|| panic!("{part:?} is not in {rest:?}"));
        rest = after;
    }
}
