//! Errors that name what was probably meant, and times as people and programs read them.

use std::fs;

use crate::support::{Test, always, pair};

#[test]
fn misspelt_command_with_arguments_is_named() {
    let test = pair();
    for arguments in [&["chekc", "START.md"][..], &["lst", "--json"], &["chekc"]] {
        let outcome = test.raymond(arguments);
        let command = if arguments[0] == "lst" { "list" } else { "check" };
        outcome.code(64).stderr_has("did you mean").stderr_has(&format!("raymond {command}`?"));
    }
    test.raymond(&["START.md", "more"]).code(64).stderr_has("unexpected argument 'more'");
}

#[test]
fn missing_path_of_check_and_graph_has_a_similar_path() {
    let test = pair();
    for command in ["check", "graph"] {
        let outcome = test.raymond(&[command, "STRAT.md"]);
        outcome.code(64).stderr_has("no such file or folder; did you mean START.md?");
    }
    test.raymond(&["check", "nothing/like/it"]).code(64).stderr_has("no such file or folder");
}

#[test]
fn invalid_limit_age_or_directory_is_explained() {
    let test = pair();
    test.raymond(&["list", "--limit", "0"]).code(64).stderr_has("write a number of 1 or more");
    let age = test.raymond(&["clean", "--older-than", "7"]);
    age.code(64).stderr_has("`7` has no unit; write 7d for days");
    let man = test.raymond(&["man", "START.md"]);
    man.code(64).stderr_has("START.md: this is a file; name a directory");
    test.run(&["START.md"]).ok();
    let none = test.raymond(&["worktrees", "t", "--prune"]);
    none.ok().stderr_has("so there is nothing to remove");
}

#[test]
fn times_are_local_for_people_and_utc_in_json() {
    let test = pair().env("TZ", "Asia/Kolkata");
    test.run(&["START.md", "--log-file", "log", "--log-level", "debug"]).ok();
    let log = test.raymond(&["log", "t"]);
    assert!(
        log.ok().stdout.lines().all(|line| line[19..].starts_with("+05:30  ")),
        "{}",
        log.stdout
    );
    test.raymond(&["show", "t", "main"]).ok().stdout_has("IST");
    for command in
        [&["log", "t", "--json"][..], &["list", "--json"], &["show", "t", "main", "--json"]]
    {
        let json = test.raymond(command);
        json.ok().stdout_has("Z\"").stdout_lacks("+05:30").stdout_lacks("IST");
    }
    let log = fs::read_to_string(test.flow().join("log")).unwrap_or_default();
    assert!(log.lines().all(|line| line.contains("+05:30 ")), "{log}");

    let test = pair().env("TZ", "No/Where");
    test.run(&["START.md"]).ok();
    test.raymond(&["log", "t"]).ok().stdout_has("+00:00  ");
}

#[test]
fn reason_of_failure_is_readable_whole_on_eighty_columns() {
    let why = "it wrote nothing that could be used, because the file that it had to read was never there at all";
    let test = Test::new().prompt("START.md", "start").rule(always().exit(3).stderr(why));
    test.run(&["START.md", "--max-restarts", "0"]).code(1);
    let whole = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").contains(why);
    for command in [&["status", "t"][..], &["tree", "t"], &["run", "t"]] {
        let mut screen = test.on_screen(command, (24, 80));
        assert_eq!(screen.wait_for_exit(), Some(i32::from(command[0] == "run")));
        let written = screen.all_written();
        let plain = console::strip_ansi_codes(&written);
        assert!(whole(&plain), "{command:?}: {plain}");
        let fits = |line: &str| line.trim_end().chars().count() <= 80;
        assert!(plain.lines().all(fits), "{plain}");
    }
    let mut screen = test.on_screen(&["top", "t"], (24, 80));
    screen.wait_for(&["✗ main"]).keys("\r").wait_until("the whole reason", whole).keys("qq");
    assert_eq!(screen.wait_for_exit(), Some(0));
}
