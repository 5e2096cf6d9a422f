//! The run of a case: a process of its own, in directories of its own, and what is seen of it.
//!
//! The command lines of the run of a case.
//!
//! The trust in the workflow of a case.
//!
//! Kills the run of a case after each of its records, resumes it, and expects the same of it.

use std::ffi::OsString;
use std::time::Duration;

use crate::cli::exit::Error;
use crate::cli::output;
use crate::cli::test::case_options::options;
use crate::cli::test::case_process::CaseDir;
use crate::cli::test::case_process::{CaseEnd, CaseProcess, RUN};
use crate::cli::test::case_report::{CaseReport, KillSweep};
use crate::cli::test::discovery::LoadedCase;
use crate::cli::test::live_terms::LiveTerms;
use crate::cli::test::{TestSession, validation};
use crate::domain::killed_run::{AgentEndings, killed_records, resumed_difference};
use crate::domain::observed_run::ObservedRun;
use crate::domain::time::format_duration;
use crate::language::cases::{CaseTexts, mismatches};

/// The kind of a run of a case.
pub(super) enum AttemptKind<'case> {
    /// With scripted replies.
    Scripted,
    /// With scripted replies; its process dies after this record, and the run is resumed.
    Killed(u64),
    /// With Claude Code.
    Live(&'case LiveTerms),
}

/// The reason why a run cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptFault {
    /// It could not be prepared, or did not begin.
    NotBegun,
    /// It took too long, or its raymond was killed.
    NotEnded,
    /// The tests were interrupted.
    Interrupted,
}

/// A run that cannot be compared.
#[derive(Debug)]
pub(super) struct FailedAttempt {
    pub(super) fault: AttemptFault,
    pub(super) why: String,
    pub(super) run: ObservedRun,
}

/// The run of a case and the texts that are compared, or the reason why it cannot be compared.
pub(super) type AttemptOutcome = Result<(ObservedRun, CaseTexts), Box<FailedAttempt>>;

/// Runs a case in new directories.
///
/// # Errors
/// [`Error`] if they cannot be made, or no process can be started.
pub(super) async fn attempt(
    session: &TestSession,
    loaded: &LoadedCase,
    name: &str,
    kind: AttemptKind<'_>,
) -> Result<AttemptOutcome, Error> {
    let dir = session.dir.case(name)?;
    let (live, kill_after) = match kind {
        AttemptKind::Scripted => (None, None),
        AttemptKind::Killed(record) => (None, Some(record)),
        AttemptKind::Live(terms) => (Some(terms), None),
    };
    let case = CaseProcess { session, loaded, dir: &dir, live };
    if let Err(why) = case.prepare().await {
        let run = ObservedRun::default();
        return Ok(Err(FailedAttempt { fault: AttemptFault::NotBegun, why, run }.into()));
    }
    // What git and the helpers warned of is no warning of the run.
    case.forget_complaints();
    let mut ended = case.raymond(run_arguments(loaded, &dir, live), kill_after).await?;
    match ended {
        CaseEnd::Killed if kill_after.is_some() => {
            ended = case.raymond(resume_arguments(&dir), None).await?;
        }
        CaseEnd::Killed | CaseEnd::Exit(_) | CaseEnd::TimedOut | CaseEnd::Interrupted => {}
    }
    Ok(outcome(&case, &ended))
}

/// Returns what is seen of a run whose raymond has ended.
fn outcome(case: &CaseProcess<'_>, ended: &CaseEnd) -> AttemptOutcome {
    let (mut run, texts) = case.observed();
    let stderr = case.complaints();
    let scripted = case.loaded.case.time_limit_ms;
    let limit = case.live.map_or(Duration::from_millis(scripted), |terms| terms.limit);
    let (fault, why) = match ended {
        CaseEnd::Exit(code) if case.has_begun() => {
            run.exit = *code;
            let warnings = stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
            run.warnings.extend(warnings.map(str::to_owned));
            return Ok((run, texts));
        }
        CaseEnd::Exit(code) => {
            run.exit = *code;
            let why = format!("the run did not begin (exit code {code}): {}", stderr.trim());
            (AttemptFault::NotBegun, why)
        }
        CaseEnd::TimedOut => {
            let limit = format_duration(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            let option = if case.live.is_some() { "--time-limit" } else { "`time_limit`" };
            let why = format!(
                "it had not ended after {limit}; give it a longer {option}, or find what it waits for"
            );
            (AttemptFault::NotEnded, why)
        }
        CaseEnd::Killed => {
            (AttemptFault::NotEnded, format!("raymond was killed; it printed: {stderr}"))
        }
        CaseEnd::Interrupted => (AttemptFault::Interrupted, "interrupted".to_owned()),
    };
    Err(FailedAttempt { fault, why, run }.into())
}

/// The number of kills after which a line tells how far the sweep is.
const KILLS_PER_LINE: u64 = 25;

/// Kills the run of a case that has passed after each of its records. Without an end of a run that is not killed there is
/// nothing to compare with; then the reason is returned.
///
/// # Errors
/// [`Error`] if a run cannot be started.
pub(super) async fn sweep(
    session: &TestSession,
    report: &CaseReport,
    number: usize,
) -> Result<Result<KillSweep, String>, Error> {
    // Endings that already differ without a kill, such as by a checksum, are not compared.
    let again = {
        let _permit = session.permits.acquire().await;
        attempt(session, &report.loaded, &format!("{number}-0"), AttemptKind::Scripted).await?
    };
    let last = report.run.records;
    let mut sweep = KillSweep::default();
    let stable = match again {
        Ok((run, _)) => run.endings,
        Err(failed) => {
            return Ok(Err(format!(
                "a second run, without a kill, came to no end: {}",
                failed.why
            )));
        }
    };
    for record in killed_records(last, report.run.pause.is_some()) {
        let _permit = session.permits.acquire().await;
        let name = format!("{number}-{record}");
        let outcome = attempt(session, &report.loaded, &name, AttemptKind::Killed(record)).await?;
        sweep.kills += 1;
        if let Some(why) = difference(report, &stable, outcome) {
            sweep.differences.push((record, why));
        }
        if sweep.kills.is_multiple_of(KILLS_PER_LINE) {
            let title = report.loaded.title();
            output::tell(&format!("{title}: killed after record {record} of {last}"));
        }
    }
    Ok(Ok(sweep))
}

/// Returns the first difference of a run that was killed and resumed: from what is expected, or from the other runs.
fn difference(
    report: &CaseReport,
    stable: &AgentEndings,
    outcome: AttemptOutcome,
) -> Option<String> {
    let (run, texts) = match outcome {
        Ok(ended) => ended,
        Err(failed) => return Some(failed.why),
    };
    let mut expected = report.loaded.case.expected.clone();
    expected.retain(|(_, one)| one.is_about_outcome());
    match mismatches(&expected, &run, &texts).into_iter().next() {
        Some(mismatch) => Some(format!("expected {}, found {}", mismatch.expected, mismatch.found)),
        None => resumed_difference(&run, &report.run, stable),
    }
}

/// The options of a scripted run that a case does not name: nothing is to be waited for.
const SCRIPTED_DEFAULTS: [(&str, &str); 2] = [("stagger", "0s"), ("backoff", "1ms..5ms")];

/// Returns the arguments with which the run of a case begins.
pub(super) fn run_arguments(
    loaded: &LoadedCase,
    dir: &CaseDir,
    live: Option<&LiveTerms>,
) -> Vec<OsString> {
    let case = &loaded.case;
    let workflow = loaded.entry_path();
    let workflow = workflow.canonicalize().unwrap_or(workflow);
    let mut arguments: Vec<OsString> = vec!["run".into(), workflow.into()];
    let words = ["--id", RUN, "--on-wait", "exit", "--quiet", "--cwd"];
    arguments.extend(words.map(OsString::from));
    arguments.extend([dir.work().into(), OsString::from("--dir"), dir.runs().into()]);
    arguments.extend(case.input.iter().map(|input| format!("--input={input}").into()));
    let pair = |option: &str, (key, value): &(String, String)| -> OsString {
        format!("--{option}={key}={value}").into()
    };
    arguments.extend(case.variables.iter().map(|one| pair("var", one)));
    arguments.extend(case.answers.iter().map(|one| pair("answer", one)));
    if let Some(live) = live {
        arguments.extend(live.arguments(&case.settings));
        return arguments;
    }
    arguments.extend(validation::arguments(loaded));
    for (name, value) in SCRIPTED_DEFAULTS {
        if !case.settings.iter().any(|setting| setting.name == name) {
            arguments.extend([format!("--{name}").into(), value.into()]);
        }
    }
    arguments.extend(options(&case.settings));
    arguments
}

/// Returns the arguments with which the run goes on after it was killed.
pub(super) fn resume_arguments(dir: &CaseDir) -> Vec<OsString> {
    let words = ["resume", RUN, "--on-wait", "exit", "--quiet", "--dir"];
    let mut arguments: Vec<OsString> = words.map(OsString::from).into();
    arguments.push(dir.runs().into());
    arguments
}
