//! Kills the run of a case after each of its records, resumes it, and expects the same of it.

use super::TestSession;
use super::case_attempt::{AttemptKind, AttemptOutcome, attempt};
use super::case_report::{CaseReport, KillSweep};
use crate::cli::exit::Error;
use crate::cli::output;
use crate::domain::killed_run::{AgentEndings, killed_records, resumed_difference};
use crate::language::cases::mismatches;

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
