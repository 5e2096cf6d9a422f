//! The output of `test` for people, as JSON and as `JUnit` XML; the coverage of workflows; and the goldens of cases.
//!
//! People get a line for each case, the differences of those that fail, and a summary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use console::style;
use serde::Serialize;
use serde_json::{Value, json};

use super::discovery::LoadedCase;
use crate::cli::exit::Error;
use crate::cli::output::{self, counted};
use crate::cli::test::discovery;
use crate::cli::test::discovery::shown;
use crate::domain::id::AgentId;
use crate::domain::observed_run::ObservedRun;
use crate::domain::time::millis_of;
use crate::domain::tool_call::{first_characters, printable_line};
use crate::language::cases::{CaseMismatch, CaseTexts, PathDifference};
use crate::language::coverage::PlacesCoverage;
use crate::world::recorded_files::ScriptedFiles;

/// The most characters that are shown of a line.
const MAX_LINE_CHARS: usize = 160;

/// The most states of a path that are shown before its difference.
const MAX_BEFORE: usize = 12;

/// The most states that are shown after it.
const MAX_AFTER: usize = 5;

/// The number of differing kills that are shown of a case.
const MAX_DIFFERENCES: usize = 3;

/// Returns the line of a case, and the lines about its differences.
pub(super) fn case(report: &CaseReport, is_updated: bool) -> String {
    let seconds = report.duration.as_secs_f64();
    let title = printable_line(&report.loaded.title());
    let word = if report.has_passed() { style("ok  ").green() } else { style("FAIL").red().bold() };
    let swept = report.sweep.as_ref().map(|sweep| format!(", {}", counted(sweep.kills, "kill")));
    let mut text = format!("{word} {title} ({seconds:.1}s{})\n", swept.unwrap_or_default());
    write_messages(report, &mut text);
    if is_updated {
        return text;
    }
    write_paths(report, &mut text);
    text
}

/// Writes what does not hold, further lines of a message below its first one.
pub(super) fn write_messages(report: &CaseReport, text: &mut String) {
    for (at, message) in messages(report) {
        let message = format!("{at}: {message}");
        for (number, line) in message.trim_end().lines().enumerate() {
            let indent = if number == 0 { "  " } else { "      " };
            let _ = writeln!(text, "{indent}{}", printable_line(line));
        }
    }
}

/// Returns the places of the expectations that do not hold, each with a sentence.
pub(super) fn messages(report: &CaseReport) -> Vec<(String, String)> {
    let file = shown(&report.loaded.file);
    let place = |line: u64, column: u64| format!("{file}:{line}:{column}");
    let at = report.loaded.case.at;
    let mut messages: Vec<(String, String)> = Vec::new();
    messages.extend(report.error.iter().map(|error| (place(at.line, at.column), error.clone())));
    let of = |CaseMismatch { at, expected, found, .. }: &CaseMismatch| {
        (place(at.line, at.column), format!("expected {expected}; found {found}"))
    };
    messages.extend(report.mismatches.iter().map(of));
    let differences = || report.sweep.iter().flat_map(|sweep| &sweep.differences);
    let hidden = differences().count().saturating_sub(MAX_DIFFERENCES);
    for KillDifference { record, found } in differences().take(MAX_DIFFERENCES) {
        let message = format!("killed after record {record} and resumed: {found}");
        messages.push((place(at.line, at.column), message));
    }
    if hidden > 0 {
        let kills = counted(hidden, "more kill");
        let message = format!("{kills} came to something else; --json has them");
        messages.push((place(at.line, at.column), message));
    }
    messages
}

/// Writes the paths of the agents for each path that differs.
pub(super) fn write_paths(report: &CaseReport, text: &mut String) {
    let paths = report.mismatches.iter().filter_map(|mismatch| mismatch.path.as_ref());
    for difference in paths {
        write_path(report, difference, text);
    }
}

/// Writes the paths of the agents, and marks the first difference.
fn write_path(report: &CaseReport, difference: &PathDifference, text: &mut String) {
    for agent in &report.run.agents {
        let path = report.run.path(Some(agent));
        let depth = agent.as_str().matches('.').count();
        let indent = "  ".repeat(depth);
        if *agent != difference.agent {
            let line = printable_line(&format!("{agent}: {}", path.join(" → ")));
            let _ = writeln!(
                text,
                "    {indent}{}",
                style(first_characters(&line, MAX_LINE_CHARS)).dim()
            );
            continue;
        }
        let _ = writeln!(text, "    {indent}{agent}");
        let begin = difference.step.saturating_sub(MAX_BEFORE);
        if begin > 0 {
            let _ = writeln!(text, "    {indent}  … {} before", counted(begin, "state"));
        }
        let end = (difference.step + 1 + MAX_AFTER).min(path.len().max(difference.step + 1));
        for step in begin..end {
            let place = printable_line(path.get(step).copied().unwrap_or("(the end)"));
            if step == difference.step {
                let expected = difference.expected.as_deref().unwrap_or("the end");
                let mark = printable_line(&format!("> {place}   <- expected {expected}"));
                let _ = writeln!(text, "    {indent}{}", style(mark).red());
            } else {
                let _ = writeln!(text, "    {indent}  {place}");
            }
        }
    }
}

/// Returns the cases for the report that CI systems read.
pub(super) fn junit_cases(reports: &[CaseReport]) -> Vec<JunitCase> {
    let case = |report: &CaseReport| JunitCase {
        suite: shown(&report.loaded.workflow),
        name: report.loaded.case.name.clone(),
        file: shown(&report.loaded.file),
        seconds: report.duration.as_secs_f64(),
        failures: messages(report),
        skipped: None,
    };
    reports.iter().map(case).collect()
}

/// Returns the closing lines: the number of cases, and what they leave out.
pub(super) fn summary(
    reports: &[CaseReport],
    coverage: &[WorkflowCoverage],
    lists_missed: bool,
) -> String {
    let passed = reports.iter().filter(|report| report.has_passed()).count();
    let failed = reports.len() - passed;
    let mut text = String::from("\n");
    for workflow in coverage {
        write_coverage(workflow, lists_missed, &mut text);
    }
    if !lists_missed && coverage.iter().any(|workflow| is_incomplete(&workflow.places)) {
        text.push_str("--coverage lists what no case reaches\n");
    }
    let cases = output::counted(reports.len(), "case");
    let closing = match failed {
        0 => format!("{cases}, all passed"),
        _ => format!("{cases}, {passed} passed, {failed} failed"),
    };
    let _ = writeln!(text, "{closing}");
    text.trim_start_matches('\n').to_owned()
}

/// Returns whether the cases leave something out, as far as it is known.
fn is_incomplete(places: &PlacesCoverage) -> bool {
    !places.missed_states.is_empty() || !places.missed_transitions.is_empty()
}

/// Writes the coverage of a workflow, if it is to be listed or leaves something out.
fn write_coverage(coverage: &WorkflowCoverage, lists_missed: bool, text: &mut String) {
    let places = &coverage.places;
    if !is_incomplete(places) && !lists_missed {
        return;
    }
    let workflow = printable_line(&coverage.workflow);
    let entered = places.states - places.missed_states.len();
    let taken = places.transitions - places.missed_transitions.len();
    let transitions = match places.transitions {
        0 => String::new(),
        transitions => format!(", {taken} of {transitions} transitions"),
    };
    let _ = writeln!(text, "{workflow}: {entered} of {} states{transitions}", places.states);
    if !lists_missed {
        return;
    }
    let lists = [
        ("never entered", &places.missed_states),
        ("never taken", &places.missed_transitions),
        ("not counted", &places.uncounted_transitions),
    ];
    for (word, list) in lists {
        for place in list {
            let _ = writeln!(text, "  {word}: {}", printable_line(place));
        }
    }
}

/// Returns all as JSON.
pub(super) fn json(reports: &[CaseReport], coverage: &[WorkflowCoverage]) -> Value {
    let passed = reports.iter().filter(|report| report.has_passed()).count();
    let cases: Vec<Value> = reports.iter().map(case_json).collect();
    json!({ "cases": cases, "passed": passed, "failed": reports.len() - passed, "coverage": coverage })
}

fn case_json(report: &CaseReport) -> Value {
    let result = report.run.result(&AgentId::main());
    let differences = report.sweep.as_ref().map(|sweep| sweep.differences.as_slice());
    json!({
        "workflow": shown(&report.loaded.workflow),
        "file": shown(&report.loaded.file),
        "line": report.loaded.case.at.line,
        "name": report.loaded.case.name,
        "status": if report.has_passed() { "passed" } else { "failed" },
        "duration_ms": millis_of(report.duration),
        "mismatches": report.mismatches,
        "error": report.error,
        "result": result,
        "cost_usd": report.run.cost,
        "turns": report.run.turns,
        "kills": report.sweep.as_ref().map(|sweep| sweep.kills),
        "kill_differences": differences.unwrap_or_default(),
    })
}

// The states that no case of a workflow enters, and the transitions that none takes.

/// The coverage of a workflow by its cases.
#[derive(Debug, Default, Serialize)]
pub(super) struct WorkflowCoverage {
    /// The workflow's folder.
    pub(super) workflow: String,
    /// The states and transitions.
    #[serde(flatten)]
    pub(super) places: PlacesCoverage,
}

impl WorkflowCoverage {
    /// Returns the coverage of each workflow, in the order of their names.
    pub(super) fn of_all(reports: &[CaseReport]) -> Vec<Self> {
        let mut of = BTreeMap::<String, Vec<&CaseReport>>::new();
        for report in reports {
            of.entry(shown(&report.loaded.workflow)).or_default().push(report);
        }
        of.into_iter().map(|(workflow, reports)| Self::of(workflow, &reports)).collect()
    }

    fn of(workflow: String, reports: &[&CaseReport]) -> Self {
        let places = discovery::all_places(reports.iter().map(|report| &report.loaded));
        let runs: Vec<&ObservedRun> = reports.iter().map(|report| &report.run).collect();
        Self { workflow, places: PlacesCoverage::of(&places, &runs) }
    }
}

// The report as `JUnit` XML, which CI systems read: a suite for each workflow.

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
    std::fs::write(path, xml(cases)).map_err(Error::io("write the report", path))
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

// The goldens of cases: files beside a case that a text of its run has to equal.

/// Returns whether a failed expectation is about a golden that is written again, because the run has such a text.
pub(super) fn is_renewed(report: &CaseReport, mismatch: &CaseMismatch) -> bool {
    let expected = report.loaded.case.expected.iter();
    let mut failed = expected.filter(|(at, _)| *at == mismatch.at);
    failed
        .any(|(_, failed)| matches!(failed.golden(&report.run, &report.texts), Some((_, Some(_)))))
}

/// Writes the goldens of all cases that differ, and says which.
///
/// # Errors
/// [`Error::Io`] if one cannot be written.
pub(super) fn update(reports: &[CaseReport]) -> Result<(), Error> {
    let mut written = 0;
    for report in reports.iter().filter(|report| report.error.is_none()) {
        for (_, expectation) in &report.loaded.case.expected {
            // Without such a text the case fails, and its line says so.
            let Some((name, Some(text))) = expectation.golden(&report.run, &report.texts) else {
                continue;
            };
            let path = report.loaded.beside(name);
            let known = report.texts.goldens.get(name);
            if known.is_some_and(|known| known.trim_end() == text.trim_end()) {
                continue;
            }
            // In somebody else's folder, a golden may be a link.
            let write = vec![(name.to_owned(), format!("{}\n", text.trim_end()))];
            let files = ScriptedFiles { write, delete: Vec::new() };
            let folder = report.loaded.beside("");
            let made = if is_within(&folder, &report.loaded.workflow) {
                files.apply(&folder, &[], "golden")
            } else {
                Err("a link leads out of the workflow's folder".to_owned())
            };
            let made = made.map_err(std::io::Error::other);
            made.map_err(Error::io("write the golden", &path))?;
            output::tell(&format!("{}: written", shown(&path)));
            written += 1;
        }
    }
    if written == 0 {
        output::tell("no golden has changed");
    }
    Ok(())
}

/// Returns whether a folder really lies in another one.
fn is_within(folder: &Path, other: &Path) -> bool {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => folder.starts_with(other),
        (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

// The report of a case that was run, and of its kills.

/// A case that was run.
#[derive(Debug)]
pub(super) struct CaseReport {
    pub(super) loaded: LoadedCase,
    pub(super) duration: Duration,
    /// The reason why the case has no run to compare.
    pub(super) error: Option<String>,
    pub(super) mismatches: Vec<CaseMismatch>,
    pub(super) run: ObservedRun,
    pub(super) texts: CaseTexts,
    pub(super) sweep: Option<KillSweep>,
}

impl CaseReport {
    /// Returns the report of a case that has not been run yet.
    pub(super) fn new(loaded: LoadedCase) -> Self {
        Self {
            loaded,
            duration: Duration::ZERO,
            error: None,
            mismatches: Vec::new(),
            run: ObservedRun::default(),
            texts: CaseTexts::default(),
            sweep: None,
        }
    }

    /// Returns whether all that is expected holds.
    pub(super) fn has_passed(&self) -> bool {
        let is_swept = self.sweep.as_ref().is_none_or(KillSweep::has_passed);
        self.error.is_none() && self.mismatches.is_empty() && is_swept
    }
}

/// The kills of a case.
#[derive(Debug, Default)]
pub(super) struct KillSweep {
    /// The number of kills.
    pub(super) kills: u64,
    /// The records after which the run came to something else, each with the difference.
    pub(super) differences: Vec<KillDifference>,
}

/// The difference of a run that was killed after a record.
#[derive(Debug, Serialize)]
pub(super) struct KillDifference {
    pub(super) record: u64,
    pub(super) found: String,
}

impl KillSweep {
    /// Returns whether each resumed run came to the same.
    pub(super) fn has_passed(&self) -> bool {
        self.differences.is_empty()
    }
}

#[cfg(test)]
mod junit_tests {
    use super::*;

    #[test]
    fn text_of_a_run_cannot_break_the_xml() {
        assert_eq!(escaped("a<b> & \"c\"\n\u{1b}[m"), "a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}[m");
    }
}
