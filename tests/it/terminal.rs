//! The live view of a run on a pseudo-terminal.

use std::process::{Command, Output, Stdio};

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
    assert!(text.contains("no model is called"), "{text}");
    assert!(text.contains("t · 1 running, 0 waiting · "), "the headline: {text}");
    assert!(text.contains("main.1  POSTCARD.md"), "a worker's row: {text}");
    let (_, end) = text.rsplit_once("Agent main terminated with result: ").expect("the last agent");
    assert!(end.contains("run t finished"), "{end}");
    assert!(!end.contains("running"), "the live view is taken away: {end}");
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
