//! Help at the width of the terminal, and manual pages.

use std::fs;

use crate::support::{Test, pair};

#[test]
fn help_wraps_at_the_width_of_the_terminal() {
    let test = pair();
    let mut screen = test.on_screen(&["resume", "--help"], (400, 60));
    assert_eq!(screen.wait_for_exit(), Some(0));
    let written = screen.all_written();
    let lines = console::strip_ansi_codes(&written);
    let wide: Vec<&str> =
        lines.lines().filter(|line| line.trim_end().chars().count() > 60).collect();
    assert_eq!(wide, Vec::<&str>::new(), "{lines}");
}

#[test]
fn man_writes_a_page_for_each_command() {
    let test = pair();
    test.raymond(&["man", "pages/man1"]).ok().stderr_has("man pages/man1/raymond.1");
    let page =
        |name: &str| fs::read_to_string(test.flow().join("pages/man1").join(name)).expect("a page");
    assert!(page("raymond.1").contains("raymond\\-run(1)"));
    assert!(page("raymond-clean.1").contains("\\-\\-older\\-than"));
    assert!(page("raymond-workflow-watch.1").contains(".TH"));
    assert!(!test.flow().join("pages/man1/raymond-help.1").exists());
}

#[test]
fn short_help_shows_what_most_need_and_all_the_rest() {
    let test = pair();
    let short = test.raymond(&["help", "run"]).ok().stdout.clone();
    assert!(short.contains("--budget") && !short.contains("--warm-for"), "{short}");
    assert_eq!(short.matches("\nOptions:\n").count(), 1, "{short}");
    test.raymond(&["help", "run", "--all"]).ok().stdout_has("--warm-for");
    test.raymond(&["run", "--help", "--all"]).ok().stdout_has("--warm-for");
    test.raymond(&["help", "check", "--all"]).ok().stdout_has("RF101");
    test.raymond(&["help", "--all"]).ok().stdout_has("worktrees");
    test.raymond(&["help", "run", "START.md", "--", "--help"]).code(64);
    assert!(test.calls().is_empty(), "help runs nothing");
}

#[test]
fn unknown_command_has_hint_to_the_right_command() {
    let test = pair();
    for (words, expected) in [
        (&["kill", "x"][..], "kill: no such command, file or run; did you mean `raymond stop`?"),
        (&["rnu", "x"], "did you mean `raymond run`?"),
        (&["frobnicate", "x"], "`raymond help --all` lists the commands"),
        (&["-q", "run", "START.md"], "put the command first: raymond run"),
        (&["run", "START.md", "--input", "the", "sea"], "put a text with spaces in quotes"),
    ] {
        test.raymond(words).code(64).stderr_has(expected);
    }
    test.raymond(&["START.md", "--bogus"]).code(64).stderr_has("--bogus");
    assert!(test.calls().is_empty());
}

#[test]
fn new_copies_each_sample_and_overwrites_nothing() {
    let test = Test::new();
    for sample in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/workflows")).expect("samples")
    {
        let sample = sample.expect("an entry");
        if !sample.path().is_dir() {
            continue;
        }
        let name = sample.file_name().into_string().expect("text");
        let folder = format!("my {name}");
        let made = test.raymond(&["new", &folder, "--from", &name]);
        made.ok().stderr_has(&format!("raymond test 'my {name}'"));
        assert_eq!(made.stdout, format!("{folder}\n"));
        test.raymond(&["check", &folder]).ok();
    }
    let start = test.flow().join("my haiku/START.md");
    fs::write(&start, "mine").expect("written");
    test.raymond(&["new", "my haiku"]).code(64).stderr_has("my haiku exists");
    assert_eq!(fs::read_to_string(&start).expect("it stays"), "mine");
    test.raymond(&["new", "x", "--from", "toor"]).code(64).stderr_has("did you mean tour?");
    test.raymond(&["new", "a\u{1b}b"]).code(64);
    test.raymond(&["new"]).code(64).stderr_has("raymond new NAME");
    assert!(!test.flow().join("x").exists());
}
