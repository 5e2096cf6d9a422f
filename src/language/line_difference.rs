//! The lines in which two texts differ, for people.

use std::fmt::Write as _;

/// The most lines of a difference that are shown.
pub const MAX_DIFFERENCE_LINES: usize = 40;

/// The most bytes of a line that are shown.
const MAX_LINE_BYTES: usize = 200;

/// The longest texts that are compared line by line, in bytes.
const MAX_COMPARED_BYTES: usize = 1024 * 1024;

/// Returns the difference of two texts as a unified diff without its head; `None` if they are too long to be compared.
pub fn line_difference(before: &str, after: &str) -> Option<String> {
    line_difference_up_to(before, after, MAX_DIFFERENCE_LINES)
}

/// Returns the difference of two texts in at most so many lines, and one more that counts the rest.
pub fn line_difference_up_to(before: &str, after: &str, max_lines: usize) -> Option<String> {
    if before.len() + after.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let difference = similar::TextDiff::from_lines(before, after);
    let mut unified = difference.unified_diff();
    let text = unified.context_radius(2).missing_newline_hint(false).to_string();
    let mut shown = String::new();
    let count = text.lines().count();
    for line in text.lines().take(max_lines) {
        let cut = line.floor_char_boundary(MAX_LINE_BYTES);
        shown.push_str(&line[..cut]);
        shown.push_str(if cut < line.len() { "…\n" } else { "\n" });
    }
    if count > max_lines {
        let _ = writeln!(shown, "… {} more lines", count - max_lines);
    }
    Some(shown.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_bounded() {
        assert_eq!(
            line_difference("a\nb\nc", "a\nB\nc").expect("short"),
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
        );
        let lines: Vec<String> =
            (0..500).map(|line| format!("{line} {}", "x".repeat(300))).collect();
        let shown = line_difference("", &lines.join("\n")).expect("short enough");
        assert_eq!(shown.lines().count(), MAX_DIFFERENCE_LINES + 1);
        assert!(shown.ends_with("more lines") && shown.len() < 10_000);
        assert_eq!(line_difference("", &"x".repeat(MAX_COMPARED_BYTES + 1)), None);
        assert_eq!(line_difference("a", "a").expect("short"), "");
    }
}
