//! Files: each that is there is on the page, and each on the page is there at some time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

use super::page::{listed, rows, spans};
use super::{reference, scene};

/// What is on the page, and is there for a moment that a test cannot hold on to, or after a crash.
const NOT_SEEN: [&str; 5] = [
    "runs/RUN/steps/PROCESS.prompt",
    "runs/RUN/steps/PROCESS.compact",
    "runs/RUN/steps/TURN.unkept",
    "runs/RUN/steps/OPERATION.look/",
    "worktrees/RUN/AGENT.index",
];

/// A file or a directory of the page.
struct Pattern {
    path: String,
    /// The paths that it tells of; those of directories have a `/` at their end.
    told: Regex,
    /// The directories on the way to it.
    ways: Vec<Regex>,
}

impl Pattern {
    /// Words in capitals stand for any name. `is_free`: what is in the directory is told nowhere.
    fn new(path: String, is_free: bool) -> Self {
        let upper = Regex::new("[A-Z]+").expect("a pattern");
        let regex = |path: &str, ending: &str| {
            let path = upper.replace_all(&regex::escape(path), "[^/]+").into_owned();
            Regex::new(&format!("^{path}{ending}$")).expect("a pattern")
        };
        let told = regex(&path, if is_free && path.ends_with('/') { ".*" } else { "" });
        let ways = path.match_indices('/').map(|(end, _)| regex(&path[..=end], "")).collect();
        Self { path, told, ways }
    }

    /// Whether it tells of a path, or the path is a directory on the way to it.
    fn has(&self, path: &str) -> bool {
        self.told.is_match(path) || self.ways.iter().any(|way| way.is_match(path))
    }
}

/// Returns what the sections of the page list whose text begins with `Below`, and the first, by the directory that
/// they are below.
fn patterns() -> (Vec<Pattern>, Vec<Pattern>) {
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
                    state.push(Pattern::new(name, is_free));
                } else {
                    runs.push(Pattern::new(format!("{base}{name}"), is_free));
                }
            }
        }
    }
    (runs, state)
}

/// Returns the paths of all that is below a directory; directories end with a `/`.
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

/// Returns what all runs leave, and what is there while they wait and while a turn is held.
fn left() -> (BTreeSet<String>, BTreeSet<String>) {
    let test = scene::used();
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
    paths(&test.flow().join(".raymond"), "", &mut left);
    (left, kept)
}

#[test]
fn files_lists_what_runs_leave() {
    let ((runs, state), (left, kept)) = (patterns(), left());
    let mut wrong = Vec::new();
    for (patterns, found) in [(&runs, &left), (&state, &kept)] {
        for path in found {
            let is_told = patterns.iter().any(|pattern| pattern.has(path));
            wrong.extend((!is_told).then(|| format!("{path} is there and not listed")));
        }
        for pattern in patterns {
            let is_seen = found.iter().any(|path| pattern.told.is_match(path));
            if is_seen == NOT_SEEN.contains(&pattern.path.as_str()) {
                let how = if is_seen { "seen, too" } else { "listed and never seen" };
                wrong.push(format!("{} is {how}", pattern.path));
            }
        }
    }
    assert!(left.len() > 50 && kept.len() > 3, "{left:?} {kept:?}");
    assert!(wrong.is_empty(), "files.md: {wrong:#?}");
}
