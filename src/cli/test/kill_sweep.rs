//! Kills the run of a case after each of its records, resumes it, and expects the same of it.

use std::collections::BTreeMap;

use super::TestSession;
use super::case_attempt::{AttemptKind, AttemptOutcome, attempt};
use super::case_report::{CaseReport, KillSweep};
use crate::cli::exit::Error;
use crate::cli::output;
use crate::domain::id::AgentId;
use crate::domain::observed_run::ObservedEnding;
use crate::domain::printable::one_line;
use crate::domain::turn::FailureCause;
use crate::language::cases::mismatches;

/// The endings of the agents of a run.
type EndingsByAgent = BTreeMap<AgentId, ObservedEnding>;

/// The most kills of one case. Of a longer run, records at equal distances are taken.
const MAX_KILLS: u64 = 200;

/// Kills the run of a case that has passed after each of its records.
///
/// # Errors
/// [`Error`] if a run cannot be started.
pub(super) async fn sweep(
    session: &TestSession,
    report: &CaseReport,
    number: usize,
) -> Result<KillSweep, Error> {
    // Endings that already differ without a kill, such as by a checksum, are not compared.
    let again = {
        let _permit = session.permits.acquire().await;
        attempt(session, &report.loaded, &format!("{number}-0"), AttemptKind::Scripted).await?
    };
    let stable = again.map_or_else(|_| EndingsByAgent::new(), |(run, _)| run.endings);
    let last = report.run.records;
    let step = last.div_ceil(MAX_KILLS).max(1);
    let mut sweep = KillSweep::default();
    let title = report.loaded.title();
    // A run that is paused would go on beyond its pause if it were killed after that.
    let end = if report.run.pause.is_some() { last } else { last + 1 };
    let step_by = usize::try_from(step).unwrap_or(1);
    for record in (1..end).step_by(step_by) {
        let _permit = session.permits.acquire().await;
        let name = format!("{number}-{record}");
        let outcome = attempt(session, &report.loaded, &name, AttemptKind::Killed(record)).await?;
        sweep.kills += 1;
        if let Err(why) = judged(report, &stable, outcome) {
            sweep.differences.push((record, why));
        }
        if sweep.kills.is_multiple_of(25) {
            output::tell(&format!("{title}: killed after record {record} of {last}"));
        }
    }
    Ok(sweep)
}

/// Judges a run that was killed and resumed by what is expected, and by what two other runs came to.
fn judged(
    report: &CaseReport,
    again: &EndingsByAgent,
    outcome: AttemptOutcome,
) -> Result<(), String> {
    let (run, texts) = outcome.map_err(|failed| failed.why)?;
    let mut expected = report.loaded.case.expected.clone();
    expected.retain(|(_, one)| one.is_about_outcome());
    if let Some(mismatch) = mismatches(&expected, &run, &texts).into_iter().next() {
        return Err(format!("expected {}, found {}", mismatch.expected, mismatch.found));
    }
    if let Some(agent) = run.agents.iter().find(|agent| !report.run.agents.contains(*agent)) {
        return Err(format!("there is an agent {agent}, which was not there before"));
    }
    for (agent, ending) in &report.run.endings {
        let found = run.endings.get(agent);
        // The text of a failure may count what others had come to, which depends on the time.
        let is_result = matches!(ending, ObservedEnding::Result(_));
        let is_stable = is_result && again.get(agent) == Some(ending);
        if (is_stable && found != Some(ending)) || kind(found) != kind(Some(ending)) {
            let (now, before) = (shown_ending(found), shown_ending(Some(ending)));
            return Err(format!("{agent} {now}, and without the kill it {before}"));
        }
    }
    Ok(())
}

/// Returns an ending in words.
fn shown_ending(ending: Option<&ObservedEnding>) -> String {
    match ending {
        None => "did not end".to_owned(),
        Some(ObservedEnding::Result(text)) => format!("ended with the result {}", one_line(text)),
        Some(ObservedEnding::Failure { cause, message, .. }) => {
            let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
            format!("failed{cause}: {}", one_line(message))
        }
    }
}

/// Returns the kind of an ending, and the cause of a failure.
fn kind(ending: Option<&ObservedEnding>) -> (&'static str, Option<FailureCause>) {
    match ending {
        None => ("none", None),
        Some(ObservedEnding::Result(_)) => ("result", None),
        Some(ObservedEnding::Failure { cause, .. }) => ("failure", *cause),
    }
}
