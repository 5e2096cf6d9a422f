//! The states that no case of a workflow enters, and the transitions that none takes.

use std::collections::BTreeMap;

use super::case_report::CaseReport;
use super::discovery::shown;
use super::validation;
use crate::domain::observed_run::ObservedRun;
use crate::language::coverage::PlacesCoverage;
use crate::language::places::WorkflowPlaces;

/// The coverage of a workflow by its cases.
#[derive(Debug, Default)]
pub(super) struct WorkflowCoverage {
    /// The workflow's folder.
    pub(super) workflow: String,
    /// The states and transitions.
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
        let mut places = WorkflowPlaces::default();
        for report in reports {
            if let Ok(Ok(own)) = validation::places(&report.loaded) {
                places.extend(own);
            }
        }
        let runs: Vec<&ObservedRun> = reports.iter().map(|report| &report.run).collect();
        Self { workflow, places: PlacesCoverage::of(&places, &runs) }
    }
}
