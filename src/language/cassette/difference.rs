//! The difference of two prompts, for people.

use std::fmt::Write as _;

/// The most lines of a difference that are shown.
const MAX_LINES: usize = 40;

/// The most bytes of a line that are shown.
const MAX_LINE_BYTES: usize = 200;

/// The longest texts that are compared line by line, in bytes.
const MAX_COMPARED_BYTES: usize = 1024 * 1024;

/// Returns the difference of a recorded prompt from the one that is asked now, as a unified diff.
#[must_use]
pub fn difference(recorded: &str, asked: &str) -> String {
    if recorded.len() + asked.len() > MAX_COMPARED_BYTES {
        let (recorded, asked) = (recorded.len(), asked.len());
        return format!("the recorded prompt has {recorded} bytes, this one {asked}");
    }
    let difference = similar::TextDiff::from_lines(recorded, asked);
    let mut unified = difference.unified_diff();
    let text = unified.context_radius(2).missing_newline_hint(false).to_string();
    let mut shown = String::from("--- recorded\n+++ asked now\n");
    let count = text.lines().count();
    for line in text.lines().take(MAX_LINES) {
        let cut = line.floor_char_boundary(MAX_LINE_BYTES);
        shown.push_str(&line[..cut]);
        shown.push_str(if cut < line.len() { "…\n" } else { "\n" });
    }
    if count > MAX_LINES {
        let _ = writeln!(shown, "… {} more lines", count - MAX_LINES);
    }
    shown.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_shows_changed_lines_and_is_bounded() {
        let shown = difference("a\nb\nc", "a\nB\nc");
        assert_eq!(shown, "--- recorded\n+++ asked now\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c");
        let lines: Vec<String> =
            (0..500).map(|line| format!("{line} {}", "x".repeat(300))).collect();
        let long = lines.join("\n");
        let shown = difference("", &long);
        assert_eq!(shown.lines().count(), MAX_LINES + 3);
        assert!(shown.ends_with("more lines") && shown.len() < 10_000);
        let huge = "x".repeat(MAX_COMPARED_BYTES + 1);
        assert!(difference("", &huge).starts_with("the recorded prompt has 0 bytes"));
    }
}
