//! Completions: what a shell is told when it asks for the words that may come next.

use crate::support::{Test, pair};

/// Returns what raymond answers a shell that completes the last of these words.
fn asked(test: &Test, shell: &str, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "COMPLETE={shell} _CLAP_COMPLETE_INDEX={} exec \"$0\" -- {}",
        words.len() - 1,
        quoted.join(" ")
    );
    let outcome = test.shell(&script).wait();
    let lines = outcome.ok().stdout.lines();
    // fish and zsh get a description behind each word.
    lines.map(|line| line.split(['\t', ':']).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn shells_complete_runs_with_the_newest_first() {
    let test = pair();
    test.run(&["START.md", "--id", "first"]).ok();
    test.run(&["START.md", "--id", "second"]).ok();
    for shell in ["bash", "zsh", "fish"] {
        let all = asked(&test, shell, &["raymond", "status", ""]);
        assert_eq!(all[..2], ["second", "first"], "{shell}: {all:?}");
        assert_eq!(asked(&test, shell, &["raymond", "log", "fi"]), ["first"], "{shell}");
    }
    test.run(&["START.md", "--id", "spent", "--budget", "0.01"]).code(75);
    assert_eq!(asked(&test, "bash", &["raymond", "resume", "s"]), ["spent"]);
    assert_eq!(asked(&test, "bash", &["raymond", "clean", "s"]), ["second"]);
    let run = asked(&test, "bash", &["raymond", "run", "s"]);
    assert!(run.contains(&"spent".to_owned()), "{run:?}");
}

#[test]
fn shells_complete_agents_of_the_run_on_the_line() {
    let test = pair();
    test.run(&["START.md"]).ok();
    for shell in ["bash", "zsh", "fish"] {
        let agents = asked(&test, shell, &["raymond", "show", "t", "main"]);
        assert_eq!(agents, ["main", "main.1"], "{shell}");
        let agents = asked(&test, shell, &["raymond", "log", "t", "--agent", "main."]);
        assert_eq!(agents, ["main.1"], "{shell}");
    }
    assert!(asked(&test, "bash", &["raymond", "show", "none", "main"]).is_empty());
}

#[test]
fn shells_complete_commands_defined_programs_and_files() {
    let test =
        pair().file("p.lisp", include_bytes!("../../../workflows/standing-reviewer/workflow.lisp"));
    test.raymond(&["workflow", "define", "p.lisp"]).ok();
    let mut commands = asked(&test, "fish", &["raymond", "wor"]);
    commands.sort();
    assert_eq!(commands, ["worker", "workflow", "worktrees"]);
    let targets = asked(&test, "fish", &["raymond", "workflow", "start", "st"]);
    assert_eq!(targets, ["standing-reviewer"]);
    let paths = asked(&test, "bash", &["raymond", "check", "STA"]);
    assert_eq!(paths, ["START.md"]);
}

#[test]
fn scripts_ask_the_program() {
    let test = pair();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = test.raymond(&["completions", shell]);
        assert!(script.ok().stdout.contains("COMPLETE"), "{shell}: {}", script.stdout);
    }
    test.shell("COMPLETE=other exec \"$0\" list").wait().ok();
}
