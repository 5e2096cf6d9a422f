//! The differences between the files of a run and those of its workflow's folder, as texts for people.

use std::path::Path;

use crate::domain::workflow_pins::{PinDifference, WorkflowPins, is_test_path};
use crate::language::line_difference::line_difference_up_to;
use crate::store::capture::WorkflowCapture;
use crate::store::pinned::kept_text;

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

/// Returns a difference: the changed lines with some lines around them. Of files that only tests read, it is only named.
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
mod tests {
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
