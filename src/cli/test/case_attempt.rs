//! The run of a case: a process of its own, in directories of its own, and what is seen of it.

use std::time::Duration;

use super::TestSession;
use super::case_command::{resume_arguments, run_arguments};
use super::case_process::{CaseEnd, CaseProcess};
use super::discovery::LoadedCase;
use super::live_terms::LiveTerms;
use crate::cli::exit::Error;
use crate::domain::observed_run::ObservedRun;
use crate::domain::time::format_duration;
use crate::language::cases::CaseTexts;

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
