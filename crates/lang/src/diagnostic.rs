//! The problems found in a file of a workflow, in one shape for all languages, and how people are shown them.
//!
//! A file is read to its end; all problems are reported at once, in the order of their places.

use std::cell::Cell;
use std::fmt;
use std::fmt::Write as _;
use std::iter::repeat_n;
use std::path::Path;

use raymond_model::id::{Folder, StateName};
use raymond_model::tool_call::is_unprintable;
use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use super::hint::{closest, is_slip};
use super::source::SourcePlace;
use crate::source::WorkflowSource;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but perhaps not as intended.
    Warning,
    /// The file is right; this is worth knowing.
    Info,
}

impl Severity {
    /// Returns the words before a code.
    fn prefix(self) -> &'static str {
        match self {
            Self::Error => "",
            Self::Warning => "warning: ",
            Self::Info => "info: ",
        }
    }
}

/// A mistake at a place. Diagnostics sort in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// The file, as it is shown to people.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The code of this kind of mistake.
    pub code: &'static str,
    pub severity: Severity,
    /// The problem and its fix.
    pub message: String,
}

impl Diagnostic {
    /// Creates a diagnostic at a place of a file.
    pub fn new(
        path: impl Into<String>,
        SourcePlace { line, column }: SourcePlace,
        code: &'static str,
        severity: Severity,
        message: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, column, code, severity, message: message.into() }
    }

    /// Returns its place in the file.
    pub fn at(&self) -> SourcePlace {
        SourcePlace { line: self.line, column: self.column }
    }

    /// Returns whether the problem makes the file unusable.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns the place, the code and the message, for output that shows the severity itself.
    pub fn without_severity(&self) -> String {
        let Self { path, line, column, code, message, .. } = self;
        format!("{path}:{line}:{column}: {code} {message}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, code, message, severity } = self;
        write!(f, "{path}:{line}:{column}: {}{code} {message}", severity.prefix())
    }
}

// Shows a mistake in a file: the line, and a caret under the place.

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

// The lines in which two texts differ, for people.

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

// Collects the mistakes in a file of a workflow that is read to its end.

/// The maximum number of mistakes with a hint: with thousands of names the search for a similar one takes time.
const MAX_HINTS: u32 = 50;

/// The longest name that is compared with others, in bytes.
const MAX_COMPARED_LINE_BYTES: usize = 64;

/// The problems found so far.
pub(crate) struct FileDiagnostics {
    path: String,
    found: Vec<Diagnostic>,
    hints: Cell<u32>,
}

impl FileDiagnostics {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), found: Vec::new(), hints: Cell::new(MAX_HINTS) }
    }

    pub(crate) fn error(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add(at, code, Severity::Error, message);
    }

    pub(crate) fn warning(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add(at, code, Severity::Warning, message);
    }

    pub(crate) fn add(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        severity: Severity,
        message: impl Into<String>,
    ) {
        self.found.push(Diagnostic::new(&self.path, at, code, severity, message));
    }

    /// Returns `; did you mean …?`, or else the text of `otherwise`.
    pub(crate) fn hint<'names>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'names str>,
        otherwise: impl FnOnce() -> String,
    ) -> String {
        let left = self.hints.get();
        if left == 0 || name.len() > MAX_COMPARED_LINE_BYTES {
            return otherwise();
        }
        self.hints.set(left - 1);
        let names = names.into_iter().filter(|name| name.len() <= MAX_COMPARED_LINE_BYTES);
        let meant = closest(name, names);
        meant.map_or_else(otherwise, |name| format!("; did you mean {}?", quoted(name)))
    }

    /// Returns the likely intended name, if it differs only by a misspelling.
    pub(crate) fn slip<'names>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'names str>,
    ) -> Option<&'names str> {
        let few = self.found.len() < MAX_HINTS as usize && name.len() <= MAX_COMPARED_LINE_BYTES;
        closest(name, names).filter(|meant| few && is_slip(name, meant))
    }

    /// Returns whether there is an error among the problems.
    pub(crate) fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// Returns all diagnostics in the order of the file, each once: an alias may repeat a mistake.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// Returns a text of the file for a message: cut if it is long, and free of terminal control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("`");
    for (index, c) in text.chars().enumerate().take(61) {
        match c {
            _ if index == 60 => quoted.push('…'),
            c if c.is_control() => quoted.extend(c.escape_debug()),
            c => quoted.push(c),
        }
    }
    quoted + "`"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostic_is_displayed_in_compiler_format() {
        let diagnostic = Diagnostic {
            path: "a.yaml".into(),
            line: 2,
            column: 7,
            code: "WF201",
            severity: Severity::Error,
            message: "Start node not found: `x`".into(),
        };
        assert_eq!(diagnostic.to_string(), "a.yaml:2:7: WF201 Start node not found: `x`");
        let warning = Diagnostic { severity: Severity::Warning, ..diagnostic };
        assert_eq!(warning.to_string(), "a.yaml:2:7: warning: WF201 Start node not found: `x`");
        assert_eq!(warning.without_severity(), "a.yaml:2:7: WF201 Start node not found: `x`");
        assert_eq!(serde_json::json!(warning)["severity"], "warning");
    }
}

#[cfg(test)]
mod excerpt_tests {
    use super::*;
    use crate::diagnostic::Severity;
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

#[cfg(test)]
mod line_difference_tests {
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
