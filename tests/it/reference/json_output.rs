//! The output of each command with `--json`, and each document of the page, is the kept one.

use std::fmt::Write as _;
use std::fs;

use regex::Regex;

use super::{example_runs, root};
use crate::support::Test;

/// The calls whose output is kept, in the order of execution.
const CALLS: [&str; 50] = [
    "list",
    "list --status paused",
    "pending",
    "recover",
    "status t",
    "status p",
    "status g",
    "status s",
    "tree t",
    "tree p",
    "tree g",
    "tree b",
    "show t main",
    "show t main.1",
    "show t main.2",
    "show t main.3",
    "show p main",
    "show g main",
    "show g main --step 1",
    "show b main",
    "costs t",
    "costs p",
    "costs s",
    "record t -o recorded",
    "diff t p",
    "diff t t",
    "diff b s",
    "diff t b main",
    "answer t",
    "answer t DONE.md=this",
    "rules t",
    "hold p main",
    "tell p main x",
    "status p",
    "pending",
    "release p main",
    "stop g",
    "retry t --dry-run",
    "branch t --at 1 --dry-run",
    "rewind t --to 1 --dry-run",
    "clean g t --dry-run",
    "signal l",
    "signal l --retract",
    "facts",
    "worktrees t",
    "worktrees t --prune",
    "trust graph",
    "check wrong",
    "workflow define talk.lisp",
    "workflow list",
];

/// The documents of the page that are kept, for the same runs.
const DOCUMENTS: [&str; 15] = [
    "/api/runs",
    "/api/questions",
    "/api/workflows",
    "/api/runs/t",
    "/api/runs/p",
    "/api/runs/t/agents",
    "/api/runs/t/costs",
    "/api/runs/t/log",
    "/api/runs/t/graph",
    "/api/runs/t/timeline",
    "/api/runs/t/agents/main",
    "/api/runs/t/agents/main.3",
    "/api/runs/p/agents/main",
    "/api/runs/t/agents/main.1/turns/1/0",
    "/api/runs/t/agents/main.1/diff",
];

/// Replaces what differs from one test to the next: paths, times, sessions, checksums, durations.
struct Neutral {
    patterns: Vec<(Regex, &'static str)>,
}

impl Neutral {
    fn of(test: &Test) -> Self {
        let folder = test.flow().parent().expect("a folder").to_owned();
        let patterns = [
            (regex::escape(&folder.display().to_string()), "/TEST"),
            (regex::escape(&root().display().to_string()), "/ROOT"),
            (
                r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".to_owned(),
                "UUID",
            ),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z".to_owned(), "TIME"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?".to_owned(), "TIME"),
            (r"[A-Z][a-z]{2} \d+, \d\d:\d\d UTC".to_owned(), "TIME"),
            (r"\b[0-9a-f]{40,64}\b".to_owned(), "HASH"),
            (r"\b[0-9a-f]{7}\b".to_owned(), "HASH"),
            (
                r#""(bytes|duration_ms|span_ms|model_ms|at|began|due|begun|asked|ended|since|until|started_at|asked_at)": \d+"#.to_owned(),
                r#""$1": 0"#,
            ),
            (r#""version": "[^"]*""#.to_owned(), r#""version": "V""#),
            (r#""claude": "[^"]*""#.to_owned(), r#""claude": "CLAUDE""#),
            // A path that is cut has no whole name of its folder.
            (r"/\S*/\.tmp\w*…".to_owned(), "/TEST…"),
        ];
        let pattern =
            |(pattern, with): (String, _)| (Regex::new(&pattern).expect("a pattern"), with);
        Self { patterns: patterns.map(pattern).into_iter().collect() }
    }

    fn text(&self, text: &str) -> String {
        let replace = |text: String, (pattern, with): &(Regex, &str)| {
            pattern.replace_all(&text, *with).into_owned()
        };
        self.patterns.iter().fold(text.to_owned(), replace)
    }
}

/// Compares a text with the kept one; `RAYMOND_RENEW=1` writes it.
fn assert_kept(name: &str, text: &str) {
    let kept = root().join("tests/fixtures").join(name);
    if std::env::var_os("RAYMOND_RENEW").is_some() {
        fs::write(&kept, text).expect("written");
    }
    let known = fs::read_to_string(&kept).unwrap_or_default();
    let differs = known.lines().zip(text.lines()).position(|(one, other)| one != other);
    let around = |text: &str| {
        let from = differs.unwrap_or(usize::MAX).saturating_sub(8);
        text.lines().skip(from).take(16).collect::<Vec<_>>().join("\n")
    };
    assert!(
        known == text,
        "{name} differs; if that is meant: RAYMOND_RENEW=1 cargo test --test it json_output\n--- kept\n{}\n--- now\n{}",
        around(&known),
        around(text)
    );
}

#[test]
fn output_of_each_command_matches_the_kept_file() {
    let test = example_runs::start();
    let neutral = Neutral::of(&test);
    let mut printed = String::new();
    for call in CALLS {
        let words: Vec<&str> = call.split(' ').chain(["--json"]).collect();
        let outcome = test.raymond(&words);
        outcome.code_in(&[0, 1, 64, 65]);
        let _ = writeln!(printed, "$ raymond {call} --json\n{}", neutral.text(&outcome.stdout));
    }
    assert_kept("json-output.txt", &printed);
}

#[test]
fn documents_of_the_page_match_the_kept_files() {
    let test = example_runs::start();
    let neutral = Neutral::of(&test);
    let page = test.serve(&[]);
    let mut printed = String::new();
    for path in DOCUMENTS {
        let reply = page.client.get(path).json();
        let shown = serde_json::to_string_pretty(&reply).expect("JSON");
        let _ = writeln!(printed, "GET {path}\n{}\n", neutral.text(&shown));
    }
    assert_kept("page-documents.txt", &printed);
}
