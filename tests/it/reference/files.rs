//! Files: each file of a run is on the page, and each file of the page exists at some time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

use super::page::{listed, rows, spans};
use super::{example_runs, reference};
use crate::support::Test;

/// The files that exist only for a moment that a test cannot catch, after a crash, or with an engine.
const UNSEEN_FILES: [&str; 15] = [
    "runs/RUN/steps/PROCESS.prompt",
    "runs/RUN/steps/PROCESS.compact",
    "runs/RUN/steps/TURN.unkept",
    "runs/RUN/steps/OPERATION.begun",
    "runs/RUN/steps/OPERATION.look/",
    "worktrees/RUN/AGENT.index",
    "hosts/NAME/",
    "hosts/NAME/worker",
    "hosts/NAME/runs/RUN/",
    "hosts/NAME/workspaces/RUN/",
    "hosts/NAME/worktrees/RUN/",
    "workspaces/RUN/",
    "runs/RUN/engine.json",
    "runs/RUN/inbox/shared/NAME",
    "engines/HASH/",
];

/// A file or a directory of the page.
struct PathPattern {
    path: String,
    /// The paths that it matches; those of directories have a `/` at their end.
    matches: Regex,
    /// The directories above it.
    above: Vec<Regex>,
}

impl PathPattern {
    /// Returns the pattern of a path, in which words in capitals stand for any name. With `is_free`, a
    /// directory may have any content.
    fn new(path: String, is_free: bool) -> Self {
        let upper = Regex::new("[A-Z]+").expect("a pattern");
        let regex = |path: &str, ending: &str| {
            let path = upper.replace_all(&regex::escape(path), "[^/]+").into_owned();
            Regex::new(&format!("^{path}{ending}$")).expect("a pattern")
        };
        let matches = regex(&path, if is_free && path.ends_with('/') { ".*" } else { "" });
        let above = path.match_indices('/').map(|(end, _)| regex(&path[..=end], "")).collect();
        Self { path, matches, above }
    }

    /// Returns whether it matches a path, or the path is a directory above it.
    fn includes(&self, path: &str) -> bool {
        self.matches.is_match(path) || self.above.iter().any(|route| route.is_match(path))
    }
}

/// Returns the patterns below the directory of runs, and those below the user's state: the page lists them in
/// sections whose text begins with `Below`, and in the first section.
fn patterns() -> (Vec<PathPattern>, Vec<PathPattern>) {
    let page = reference("files.md");
    let (mut runs, mut state) = (Vec::new(), Vec::new());
    for section in page.split("\n#").skip(1) {
        let base = section.split("Below ").nth(1).and_then(|rest| spans(rest).next());
        let base = match base {
            Some(base) => base,
            None if section.contains("# The directory of all runs\n") => "",
            None => continue,
        };
        for row in rows(section) {
            let is_free = !row.join(" ").contains("](#");
            for name in listed(&format!("| {} |", row[0])) {
                if base.starts_with('$') {
                    state.push(PathPattern::new(name, is_free));
                } else {
                    runs.push(PathPattern::new(format!("{base}{name}"), is_free));
                }
            }
        }
    }
    (runs, state)
}

/// Adds the paths of everything below a directory; directories end with a `/`.
fn paths(below: &Path, before: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(below).expect("a directory").flatten() {
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            paths(&entry.path(), &format!("{name}/"), found);
            found.insert(format!("{name}/"));
        } else {
            found.insert(name);
        }
    }
}

/// Returns the files of all runs, and of the user's state, while the runs wait and while a turn is held.
fn files_of_runs() -> (BTreeSet<String>, BTreeSet<String>) {
    let test = example_runs::start();
    let (mut left, mut kept) = (BTreeSet::new(), BTreeSet::new());
    test.raymond(&["answer", "t", "DONE.md=this"]).ok();
    paths(&test.dir(), "", &mut left);
    test.resume(&[]).ok();
    test.raymond(&["signal", "talk/released", "--key", "p"]).ok();
    test.raymond(&["resume", "p"]).ok();
    let mut live = test.start(&["run", "HELD.md", "--id", "h"]);
    live.wait_for("the held turn", |test| !test.calls_with("held").is_empty());
    paths(&test.dir(), "", &mut left);
    paths(&test.root().join("home/.local/state/raymond"), "", &mut kept);
    test.release("go");
    live.wait().ok();
    test.raymond(&["run", "AGAIN.md", "--dir", ".raymond"]).ok();
    replay_with_a_file(&test);
    test.raymond(&["branch", "t", "--id", "k", "--at", "1", "--on-wait", "exit"]);
    paths(&test.dir(), "", &mut left);
    paths(&test.flow().join(".raymond"), "", &mut left);
    (left, kept)
}

/// Replays a recorded run that changed a file.
fn replay_with_a_file(test: &Test) {
    test.raymond(&["run", "AGAIN.md", "--id", "r"]).ok();
    test.raymond(&["record", "r", "-o", "recorded"]).ok();
    let turns = test.flow().join("recorded/turns.jsonl");
    let lines = fs::read_to_string(&turns).expect("a cassette");
    let files = r#""files":[{"path":"made","tool":"Write","content":"x"}],"duration_ms""#;
    fs::write(&turns, lines.replacen("\"duration_ms\"", files, 1)).expect("written");
    test.raymond(&["run", "AGAIN.md", "--id", "c", "--agent", "replay:recorded"]).ok();
}

#[test]
fn files_lists_what_runs_leave() {
    let ((runs, state), (left, kept)) = (patterns(), files_of_runs());
    let mut wrong = Vec::new();
    for (patterns, found) in [(&runs, &left), (&state, &kept)] {
        for path in found {
            let is_told = patterns.iter().any(|pattern| pattern.includes(path));
            wrong.extend((!is_told).then(|| format!("{path} is there and not listed")));
        }
        for pattern in patterns {
            let is_seen = found.iter().any(|path| pattern.matches.is_match(path));
            if is_seen == UNSEEN_FILES.contains(&pattern.path.as_str()) {
                let how = if is_seen { "seen, too" } else { "listed and never seen" };
                wrong.push(format!("{} is {how}", pattern.path));
            }
        }
    }
    assert!(left.len() > 50 && kept.len() > 3, "{left:?} {kept:?}");
    assert!(wrong.is_empty(), "files.md: {wrong:#?}");
}
