//! The report as `JUnit` XML, which CI systems read: a suite for each workflow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::case_report::CaseReport;
use super::discovery::shown;
use super::report::messages;
use crate::cli::exit::Error;

/// Writes the report.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn write(path: &Path, reports: &[CaseReport]) -> Result<(), Error> {
    let failed = |error| Error::Io { doing: "write the report", path: path.to_owned(), error };
    std::fs::write(path, xml(reports)).map_err(failed)
}

fn xml(reports: &[CaseReport]) -> String {
    let mut suites = BTreeMap::<String, Vec<&CaseReport>>::new();
    for report in reports {
        suites.entry(shown(&report.loaded.workflow)).or_default().push(report);
    }
    let failures =
        |reports: &[&CaseReport]| reports.iter().filter(|report| !report.has_passed()).count();
    let all: Vec<&CaseReport> = reports.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites tests=\"{}\" failures=\"{}\">", all.len(), failures(&all));
    for (workflow, reports) in &suites {
        let seconds: f64 = reports.iter().map(|report| report.duration.as_secs_f64()).sum();
        let name = escaped(workflow);
        let (tests, failed) = (reports.len(), failures(reports));
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failed}\" time=\"{seconds:.3}\">"
        );
        for report in reports {
            let case = escaped(&report.loaded.case.name);
            let file = escaped(&shown(&report.loaded.file));
            let seconds = report.duration.as_secs_f64();
            let _ = write!(
                text,
                "    <testcase classname=\"{name}\" name=\"{case}\" file=\"{file}\" time=\"{seconds:.3}\""
            );
            if report.has_passed() {
                text.push_str("/>\n");
                continue;
            }
            text.push_str(">\n");
            for (at, message) in messages(report) {
                let (at, message) = (escaped(&at), escaped(&message));
                let _ = writeln!(
                    text,
                    "      <failure message=\"{message}\">{at}: {message}</failure>"
                );
            }
            text.push_str("    </testcase>\n");
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
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
