//! The report as `JUnit` XML, which CI systems read: a suite for each workflow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::cli::exit::Error;

/// A case in the report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JunitCase {
    /// The workflow's folder.
    pub(super) suite: String,
    pub(super) name: String,
    /// The file of the case.
    pub(super) file: String,
    pub(super) seconds: f64,
    /// The expectations that do not hold, each with its place.
    pub(super) failures: Vec<(String, String)>,
    /// The reason why nothing is known about it.
    pub(super) skipped: Option<String>,
}

/// Writes the report.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn write(path: &Path, cases: &[JunitCase]) -> Result<(), Error> {
    let failed = |error| Error::Io { doing: "write the report", path: path.to_owned(), error };
    std::fs::write(path, xml(cases)).map_err(failed)
}

fn xml(cases: &[JunitCase]) -> String {
    let mut suites = BTreeMap::<&str, Vec<&JunitCase>>::new();
    for case in cases {
        suites.entry(&case.suite).or_default().push(case);
    }
    let all: Vec<&JunitCase> = cases.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites {}>", counts(&all));
    for (suite, cases) in &suites {
        let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
        let (name, counts) = (escaped(suite), counts(cases));
        let _ = writeln!(text, "  <testsuite name=\"{name}\" {counts} time=\"{seconds:.3}\">");
        for case in cases {
            write_case(case, &mut text);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// Returns the attributes with the numbers of cases.
fn counts(cases: &[&JunitCase]) -> String {
    let failures = cases.iter().filter(|case| !case.failures.is_empty()).count();
    let skipped = cases.iter().filter(|case| case.is_skipped()).count();
    let mut text = format!("tests=\"{}\" failures=\"{failures}\"", cases.len());
    if skipped > 0 {
        let _ = write!(text, " skipped=\"{skipped}\"");
    }
    text
}

impl JunitCase {
    fn is_skipped(&self) -> bool {
        self.failures.is_empty() && self.skipped.is_some()
    }
}

fn write_case(case: &JunitCase, text: &mut String) {
    let [suite, name, file] = [&case.suite, &case.name, &case.file].map(|part| escaped(part));
    let seconds = case.seconds;
    let _ = write!(
        text,
        "    <testcase classname=\"{suite}\" name=\"{name}\" file=\"{file}\" time=\"{seconds:.3}\""
    );
    if case.failures.is_empty() && case.skipped.is_none() {
        text.push_str("/>\n");
        return;
    }
    text.push_str(">\n");
    for (at, message) in &case.failures {
        let (at, message) = (escaped(at), escaped(message));
        let _ = writeln!(text, "      <failure message=\"{message}\">{at}: {message}</failure>");
    }
    if let Some(why) = case.skipped.as_ref().filter(|_| case.is_skipped()) {
        let _ = writeln!(text, "      <skipped message=\"{}\"/>", escaped(why));
    }
    text.push_str("    </testcase>\n");
}

/// Returns a text for XML, without the characters that it cannot have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' | '\r' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_run_cannot_break_the_xml() {
        assert_eq!(escaped("a<b> & \"c\"\n\u{1b}[m"), "a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}[m");
    }
}
