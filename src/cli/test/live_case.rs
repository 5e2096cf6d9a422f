//! One live run of a case: it is run with Claude Code, and judged.

use std::time::{Duration, Instant};

use super::TestSession;
use super::case_attempt::{AttemptFault, AttemptKind, attempt};
use super::case_report::CaseReport;
use super::discovery::LoadedCase;
use super::live_terms::LiveTerms;
use crate::domain::budget::LivePart;
use crate::domain::live_results::{LiveEnd, LiveRun};
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::language::cases::mismatches;

/// A live run that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LiveTask {
    /// The number of the case.
    pub(super) case: usize,
    /// The model; `None` for that of the workflow.
    pub(super) model: Option<ModelName>,
    /// The number of the run of this case with this model, from 1.
    pub(super) number: u32,
}

/// A live run that was made, or could not be.
#[derive(Debug)]
pub(super) struct LiveReport {
    pub(super) task: LiveTask,
    pub(super) end: LiveEnd,
    pub(super) report: CaseReport,
    /// True if no other run of this case with this model could begin either.
    pub(super) cannot_begin: bool,
    /// The part of the money that it was given, with its cost, if that is known for certain.
    pub(super) settled: Option<(LivePart, Option<Usd>)>,
}

impl LiveReport {
    /// Returns the report of a run that was not made.
    pub(super) fn not_run(task: LiveTask, loaded: &LoadedCase, why: &str) -> Self {
        let mut report = CaseReport::new(loaded.clone());
        report.error = Some(why.to_owned());
        Self { task, end: LiveEnd::NotRun, report, cannot_begin: false, settled: None }
    }

    /// Returns the run for the table.
    pub(super) fn run(&self) -> LiveRun {
        LiveRun {
            end: self.end,
            cost: self.report.run.committed,
            duration_ms: u64::try_from(self.report.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Makes a live run, and judges it.
pub(super) async fn run(
    session: &TestSession,
    loaded: &LoadedCase,
    task: LiveTask,
    part: LivePart,
) -> LiveReport {
    let live = &session.args.live;
    let terms = LiveTerms {
        model: task.model.clone(),
        part,
        limit: Duration::from_millis(live.time_limit),
        permissions: live.permissions.clone(),
    };
    // The name of a model may be no name of a directory.
    let model = live.models.iter().position(|one| Some(one) == task.model.as_ref());
    let name = format!("{}-{}-{}", task.case, model.unwrap_or_default(), task.number);
    let begin = Instant::now();
    let outcome = match attempt(session, loaded, &name, AttemptKind::Live(&terms)).await {
        Ok(outcome) => outcome,
        // What it has spent is not known, and the others have to be told of in any case.
        Err(error) => {
            let report = LiveReport::not_run(task, loaded, &format!("not run: {error}"));
            return LiveReport { settled: Some((part, None)), ..report };
        }
    };
    let mut report = CaseReport::new(loaded.clone());
    report.duration = begin.elapsed();
    let (end, fault) = match outcome {
        Ok((run, texts)) => {
            let is_cut_off = run.is_out_of_money && !terms.is_own_budget(&loaded.case.settings);
            if is_cut_off {
                report.error =
                    Some("the budget of the tests ended it; give more with --budget".to_owned());
            } else {
                report.mismatches = mismatches(&loaded.case.expected, &run, &texts);
            }
            (report.run, report.texts) = (run, texts);
            let end = match report.has_passed() {
                _ if is_cut_off => LiveEnd::CutOff,
                true => LiveEnd::Passed,
                false => LiveEnd::Failed,
            };
            (end, None)
        }
        Err(failed) => {
            (report.error, report.run) = (Some(failed.why), failed.run);
            let end = match failed.fault {
                AttemptFault::NotEnded => LiveEnd::Failed,
                AttemptFault::NotBegun | AttemptFault::Interrupted => LiveEnd::NotRun,
            };
            (end, Some(failed.fault))
        }
    };
    // A run that was ended from outside may have spent more than its records tell.
    let is_known = matches!(fault, None | Some(AttemptFault::NotBegun));
    let cost = is_known.then_some(report.run.committed);
    let cannot_begin = fault == Some(AttemptFault::NotBegun);
    LiveReport { task, end, report, cannot_begin, settled: Some((part, cost)) }
}
