//! The files of a run's root, with the folders beside it that explicit tags in them name; and their differences.

use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::id::{Folder, StateKind, StateName};
use crate::domain::sealed_terms::{PinDifference, WorkflowPins, is_test_path};
use crate::domain::transition::Transition;
use crate::language::diagnostic::line_difference_up_to;
use crate::language::prompt::frontmatter::why_no_entry;
use crate::language::prompt::workflow_map::FolderPrompt;
use crate::store::Error;
use crate::store::capture::WorkflowCapture;
use crate::store::pinned::kept_text;
use crate::store::workflow::WorkflowDir;

/// Reads the root of a run, with the folders beside it that explicit tags in the files lead to.
///
/// # Errors
/// As [`WorkflowCapture::of`].
pub(super) fn capture_root(root: &Path, apart: &Path) -> Result<WorkflowCapture, Error> {
    let mut capture = WorkflowCapture::of(root, apart)?;
    let Ok(top) = WorkflowDir::open(root) else { return Ok(capture) };
    let mut seen = BTreeSet::new();
    loop {
        let files = capture.files.iter();
        let mut named =
            files.flat_map(|(path, file)| named_in(path, &file.content, &top).unwrap_or_default());
        let Some(sibling) = named.find(|sibling| !seen.contains(sibling)) else {
            return Ok(capture);
        };
        if let Ok(folder) = top.below(&sibling) {
            capture.read(folder.root(), &format!("{sibling}/"), apart)?;
        }
        seen.insert(sibling);
    }
}

/// Returns the folders beside the root with a state that a prompt or a script leads to.
fn named_in(path: &str, content: &[u8], top: &WorkflowDir) -> Option<Vec<Folder>> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let take_apart = match StateKind::of(&StateName::parse(name).ok()?)? {
        StateKind::Prompt => FolderPrompt::of,
        StateKind::Script => FolderPrompt::of_script,
        StateKind::Graph | StateKind::Program => return None,
    };
    let text = str::from_utf8(content).ok().filter(|text| text.contains("-workflow"))?;
    let folder = Folder::parse(folder).ok();
    let here = top.at(folder.as_ref()).ok()?;
    let mut prompt = take_apart(text);
    prompt.resolve_names(&here);
    let targets = prompt.edges.iter().flat_map(|edge| edge.transition.states());
    let shown = prompt.shown.iter().filter_map(|tag| tag.transition.as_ref().ok());
    let shown = shown.flat_map(Transition::crossings);
    let shown = shown.map(|(path, state)| (path.clone(), state.clone()));
    let named = targets.filter_map(StateName::in_other_folder).chain(shown);
    let entered = named.filter(|(path, state)| why_no_entry(path, state, &here).is_none());
    let folders = entered.filter_map(|(path, _)| path.seen_from(folder.as_ref()).ok()?);
    Some(folders.filter_map(|folder| folder.sibling()).collect())
}

// The differences between the files of a run and those of its workflow's folder, as texts for people.

/// The longest difference that is shown of a file, in lines.
const MAX_LINES: usize = 200;

/// Returns the differences of a folder from the files of a run, a text each. `copy` is where the run keeps them.
pub(super) fn differences(
    pins: &WorkflowPins,
    copy: &Path,
    folder: &WorkflowCapture,
) -> Vec<String> {
    let shown = |(path, how): (String, PinDifference)| {
        difference(&path, how, &kept_text(copy, &path), folder)
    };
    pins.differences(&folder.pins()).into_iter().map(shown).collect()
}

/// Returns the difference of one file between two captures; `None` if it is the same.
pub(super) fn difference_of(
    path: &str,
    before: &WorkflowCapture,
    after: &WorkflowCapture,
) -> Option<String> {
    let differences = before.pins().differences(&after.pins());
    let (_, how) = differences.iter().find(|(changed, _)| changed == path)?;
    Some(difference(path, *how, &text(before, path), after))
}

/// Returns a difference: the changed lines with some lines around them. Of files that only tests read, it is only
/// named.
fn difference(path: &str, how: PinDifference, before: &str, after: &WorkflowCapture) -> String {
    let named = format!("{path}: {} since the run began", how.word());
    if is_test_path(path) {
        return named;
    }
    match line_difference_up_to(before, &text(after, path), MAX_LINES) {
        Some(lines) => format!("{named}\n{lines}").trim_end().to_owned(),
        None => format!("{named}; it is too long to be compared"),
    }
}

fn text(capture: &WorkflowCapture, path: &str) -> String {
    let file = capture.files.get(path);
    file.map(|file| String::from_utf8_lossy(&file.content).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod file_differences_tests {
    use super::*;

    #[test]
    fn files_of_tests_are_named_and_others_are_shown_in_short_lines() {
        let now = WorkflowCapture::default();
        let shown =
            |path: &str, before: &str| difference(path, PinDifference::Removed, before, &now);
        assert_eq!(
            shown("A.md", "one\n"),
            "A.md: removed since the run began\n@@ -1 +0,0 @@\n-one"
        );
        assert_eq!(
            shown("tests/cassettes/flow/turns.jsonl", "one\n"),
            "tests/cassettes/flow/turns.jsonl: removed since the run began"
        );
        let long = "x".repeat(10_000);
        assert!(shown("A.md", &long).lines().all(|line| line.len() < 300));
        assert_eq!(
            shown("A.md", &"x".repeat(2 * 1024 * 1024)),
            "A.md: removed since the run began; it is too long to be compared"
        );
    }
}
