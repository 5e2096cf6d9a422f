//! A case: it is run, compared, and killed after each of its records if that is asked for.

use std::time::Instant;

use super::TestSession;
use super::case_attempt::{AttemptKind, attempt};
use super::case_report::CaseReport;
use super::discovery::LoadedCase;
use super::goldens;
use super::kill_sweep;
use crate::cli::exit::Error;
use crate::language::cases::mismatches;

/// Runs a case, and compares it.
pub(super) async fn run_case(
    session: &TestSession,
    loaded: LoadedCase,
    number: usize,
) -> Result<CaseReport, Error> {
    let permit = session.permits.acquire().await;
    let begin = Instant::now();
    let mut report = CaseReport::new(loaded);
    match attempt(session, &report.loaded, &format!("{number}"), AttemptKind::Scripted).await? {
        Ok((run, texts)) => {
            report.mismatches = mismatches(&report.loaded.case.expected, &run, &texts);
            (report.run, report.texts) = (run, texts);
        }
        Err(failed) => (report.error, report.run) = (Some(failed.why), failed.run),
    }
    if session.args.update {
        let mut mismatches = std::mem::take(&mut report.mismatches);
        mismatches.retain(|mismatch| !goldens::is_renewed(&report, mismatch));
        report.mismatches = mismatches;
    }
    drop(permit);
    if session.args.kill_sweep && report.has_passed() {
        match kill_sweep::sweep(session, &report, number).await? {
            Ok(sweep) => report.sweep = Some(sweep),
            Err(why) => report.error = Some(why),
        }
    }
    report.duration = begin.elapsed();
    Ok(report)
}
