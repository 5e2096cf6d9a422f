//! Texts that do not name the machine and the run that they are of.
//!
//! A prompt may have the paths of the run in it, such as that of the results of a join, and its id. They differ in
//! each run, so a cassette has marks in their place.

use std::path::Path;

use raymond_model::id::RunId;

/// The directory of all runs.
const RUNS: &str = "[raymond:dir]";

/// The id of the run.
const RUN: &str = "[raymond:run]";

/// The working directory of the run.
const CWD: &str = "[raymond:cwd]";

/// The shortest path that is replaced, in bytes: `/` and `/x` would be found in ordinary text.
const MIN_PATH_BYTES: usize = 4;

/// The marks in recorded texts, with the texts of one run that they stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableMarks {
    run: RunId,
    /// The texts with their marks, the longest first.
    marks: Vec<(String, &'static str)>,
}

impl PortableMarks {
    /// Returns the marks of a run.
    pub fn of(run: &RunId, dir: &Path, cwd: &Path) -> Self {
        let path = |path: &Path| {
            path.to_str().filter(|path| path.len() >= MIN_PATH_BYTES).map(str::to_owned)
        };
        let mut marks: Vec<(String, &'static str)> = Vec::new();
        marks.extend(path(dir).map(|dir| (dir, RUNS)));
        marks.extend(path(cwd).map(|cwd| (cwd, CWD)));
        marks.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        if is_unmistakable(run) {
            marks.push((run.to_string(), RUN));
        } else {
            // A short id is replaced in paths alone, because it may be an ordinary word.
            marks.push((format!("{RUNS}/runs/{run}"), "[raymond:dir]/runs/[raymond:run]"));
            marks
                .push((format!("{RUNS}/worktrees/{run}"), "[raymond:dir]/worktrees/[raymond:run]"));
        }
        Self { run: run.clone(), marks }
    }

    /// Returns a text with marks.
    pub fn marked(&self, text: &str) -> String {
        self.marks.iter().fold(text.to_owned(), |text, (own, mark)| replaced(&text, own, mark))
    }

    /// Returns a text with the mark of the run wherever its id is no part of a longer name, even if it may be a word.
    pub fn without_id(&self, text: &str) -> String {
        replaced(text, self.run.as_str(), RUN)
    }

    /// Returns a text with what the marks stand for.
    pub fn filled(&self, text: &str) -> String {
        if !text.contains("[raymond:") {
            return text.to_owned();
        }
        let text = text.replace(RUN, self.run.as_str());
        let paths = self.marks.iter().rev().filter(|(_, mark)| [RUNS, CWD].contains(mark));
        paths.fold(text, |text, (own, mark)| text.replace(mark, own))
    }
}

/// Returns whether an id is one that raymond chose, with the time and four further characters, or that of a branch.
fn is_unmistakable(run: &RunId) -> bool {
    let branch = run.as_str().rsplit_once("-b");
    let is_of_branch = |rest: &str| rest.len() == 7 && rest.bytes().all(|c| c.is_ascii_hexdigit());
    if branch.is_some_and(|(_, rest)| is_of_branch(rest)) {
        return true;
    }
    let parts: Vec<&str> = run.as_str().rsplitn(4, '-').collect();
    let digits =
        |part: &str, length| part.len() == length && part.bytes().all(|c| c.is_ascii_digit());
    matches!(parts[..], [chance, time, date, _] if chance.len() == 4 && digits(time, 6) && digits(date, 8))
}

/// Replaces a name or path where it is no part of a longer one.
fn replaced(text: &str, own: &str, mark: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut new = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(own) {
        let (before, after) = (&rest[..at], &rest[at + own.len()..]);
        let longer = after.starts_with(is_part)
            || (before.ends_with(is_part) && !own.starts_with('['))
            || (own.starts_with('/') && before.ends_with('/'));
        new.push_str(before);
        new.push_str(if longer { own } else { mark });
        rest = after;
    }
    new + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(run: &str) -> PortableMarks {
        let run = RunId::parse(run).expect("an id");
        PortableMarks::of(&run, Path::new("/home/me/w/.raymond"), Path::new("/home/me/w"))
    }

    #[test]
    fn paths_and_ids_of_a_run_become_those_of_another() {
        let (one, other) = (marks("tour-20260115-143022-1a2b"), marks("t"));
        let text =
            "read /home/me/w/.raymond/runs/tour-20260115-143022-1a2b/results/x and /home/me/w/a";
        let marked = one.marked(text);
        assert_eq!(marked, "read [raymond:dir]/runs/[raymond:run]/results/x and [raymond:cwd]/a");
        let filled = other.filled(&marked);
        assert_eq!(filled, "read /home/me/w/.raymond/runs/t/results/x and /home/me/w/a");
        assert_eq!(other.marked(&filled), marked);
        assert_eq!(other.filled("run [raymond:run]"), "run t");
        assert_eq!(one.filled(&marked), text);
    }

    #[test]
    fn ids_of_branches_are_marked() {
        for id in ["t-b3c4d5e6", "tour-20260115-143022-1a2b-b3c4d5e6"] {
            assert_eq!(marks(id).marked(&format!("in {id}")), "in [raymond:run]");
        }
        assert_eq!(marks("t-b3c4").marked("in t-b3c4"), "in t-b3c4");
        assert_eq!(marks("t-b3c4").without_id("in t-b3c4, t-b3c4d"), "in [raymond:run], t-b3c4d");
    }

    #[test]
    fn longer_names_and_short_ids_are_left_alone() {
        let marks = marks("t");
        for text in ["/home/me/work", "/x/home/me/w/a", "t", "a t b", "//home/me/w"] {
            assert_eq!(marks.marked(text), text);
        }
    }
}
