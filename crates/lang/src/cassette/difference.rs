//! The difference of two prompts, for people.

use crate::diagnostic::line_difference;

/// Returns the difference of a recorded prompt from the one that is asked now, as a unified diff.
pub fn difference(recorded: &str, asked: &str) -> String {
    if let Some(lines) = line_difference(recorded, asked) {
        return format!("--- recorded\n+++ asked now\n{lines}").trim_end().to_owned();
    }
    let (recorded, asked) = (recorded.len(), asked.len());
    format!("the recorded prompt has {recorded} bytes, this one {asked}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_shows_changed_lines_and_the_sizes_of_long_texts() {
        let shown = difference("a\nb\nc", "a\nB\nc");
        assert_eq!(shown, "--- recorded\n+++ asked now\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c");
        let huge = "x".repeat(2 * 1024 * 1024);
        assert!(difference("", &huge).starts_with("the recorded prompt has 0 bytes"));
    }
}
