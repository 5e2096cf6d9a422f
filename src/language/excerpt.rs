//! Shows a mistake in a file: the line, and a caret under the place.

use std::iter::repeat_n;
use std::path::Path;

use unicode_width::UnicodeWidthChar;

use super::diagnostic::Diagnostic;
use super::source::WorkflowSource;
use crate::domain::id::{Folder, StateName};
use crate::domain::printable::is_unprintable;

/// The number of characters of a long line that are shown before the place, and after it.
const BEFORE: usize = 60;
const AFTER: usize = 60;

/// Returns a diagnostic, followed by its line of the file and a caret.
pub fn shown(found: &Diagnostic, text: &str) -> String {
    match excerpt(text, found.line, found.column) {
        Some(excerpt) => format!("{found}\n{excerpt}"),
        None => found.to_string(),
    }
}

/// Returns the line of a program with a caret under the place of a diagnostic; `None` for other files.
pub fn excerpt_in(found: &Diagnostic, source: &dyn WorkflowSource) -> Option<String> {
    if !found.code.starts_with("SX") {
        return None;
    }
    let path = Path::new(&found.path);
    let name = StateName::parse(path.file_name()?.to_str()?).ok()?;
    let here = source.path(&name);
    let text = match path.parent()?.strip_prefix(Path::new(&here).parent()?).ok()?.to_str()? {
        "" => source.read(&name).ok()?,
        below => source.within(&Folder::parse(below).ok()?).ok()?.read(&name).ok()?,
    };
    excerpt(&text, found.line, found.column)
}

/// Returns a line of a text and a caret under the column, both counted from 1, or `None` if there is no such line,
/// or it is empty. Only the part of a long line near the place is shown.
pub fn excerpt(text: &str, line: u64, column: u64) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line = text.split('\n').nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.trim().is_empty() {
        return None;
    }
    let column = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let from = column.saturating_sub(BEFORE);
    let (mut shown, mut below) = (String::new(), String::new());
    if from > 0 {
        shown.push('…');
        below.push(' ');
    }
    let mut rest = line.chars().skip(from);
    for c in rest.by_ref().take(column - from) {
        shown.push(visible(c));
        if c == '\t' {
            below.push('\t');
        } else {
            below.extend(repeat_n(' ', visible(c).width().unwrap_or(0)));
        }
    }
    shown.extend(rest.by_ref().take(AFTER).map(visible));
    if rest.next().is_some() {
        shown.push('…');
    }
    Some(format!("{shown}\n{below}^"))
}

/// Returns a character, or a visible substitute for a control character.
fn visible(c: char) -> char {
    let is_hidden = c != '\t' && (is_unprintable(c) || c.width().is_none());
    if is_hidden { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::diagnostic::Severity;
    use proptest::prelude::*;

    #[test]
    fn caret_is_under_reported_column() {
        let found = Diagnostic {
            path: "a.lisp".into(),
            line: 2,
            column: 3,
            code: "SX304",
            severity: Severity::Error,
            message: "unknown state `b`".into(),
        };
        let text = "(state a\n  (goto b))\n";
        let expected = "a.lisp:2:3: SX304 unknown state `b`\n  (goto b))\n  ^";
        assert_eq!(shown(&found, text), expected);
        let elsewhere = Diagnostic { line: 9, ..found };
        assert_eq!(shown(&elsewhere, text), "a.lisp:9:3: SX304 unknown state `b`");
    }

    #[test]
    fn caret_is_aligned_after_tabs_wide_and_combining_characters() {
        let table = [
            ("\tx", 2, "\tx\n\t^"),
            ("日本 x", 4, "日本 x\n     ^"),
            ("e\u{301} x", 4, "e\u{301} x\n  ^"),
            ("a\u{1b}[31mb\r", 7, "a\u{fffd}[31mb\n      ^"),
            ("ab", 3, "ab\n  ^"),
            ("\u{feff}a", 1, "a\n^"),
        ];
        for (text, column, expected) in table {
            assert_eq!(excerpt(text, 1, column).as_deref(), Some(expected), "{text:?}");
        }
        assert_eq!(excerpt("", 1, 1), None);
        assert_eq!(excerpt("a\n \r\n", 2, 1), None);
    }

    #[test]
    fn long_line_is_truncated_around_column() {
        let text = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let shown = excerpt(&text, 1, 1001).expect("a line");
        let expected = format!("…{}x{}…\n {}^", "a".repeat(60), "b".repeat(59), " ".repeat(60));
        assert_eq!(shown, expected);
    }

    proptest! {
        #[test]
        fn excerpt_at_any_location_is_at_most_two_lines(text in any::<String>(), line in 0..5u64, column: u64) {
            if let Some(shown) = excerpt(&text, line, column) {
                prop_assert!(shown.ends_with('^') && shown.lines().count() <= 2);
            }
        }
    }
}
