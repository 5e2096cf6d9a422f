//! The states that no case of a workflow enters, and the transitions that none takes.

use std::collections::{BTreeMap, BTreeSet};

use super::case_report::CaseReport;
use super::discovery::shown;
use super::validation;
use crate::domain::observed_run::ObservedWay;

/// The coverage of a workflow by its cases.
#[derive(Debug, Default)]
pub(super) struct WorkflowCoverage {
    /// The workflow's folder.
    pub(super) workflow: String,
    /// The number of its states.
    pub(super) states: usize,
    /// Those that no case enters.
    pub(super) missed_states: Vec<String>,
    /// The number of the transitions that its policies allow.
    pub(super) ways: usize,
    /// Those that no case takes.
    pub(super) missed_ways: Vec<String>,
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
        let (mut names, mut ways) = (BTreeSet::<String>::new(), BTreeSet::<ObservedWay>::new());
        for report in reports {
            if let Ok(Ok(places)) = validation::places(&report.loaded) {
                names.extend(places.names().map(str::to_owned));
                ways.extend(places.ways().iter().cloned());
            }
        }
        let entered: BTreeSet<&str> =
            reports.iter().flat_map(|report| report.run.path(None)).collect();
        let is_taken =
            |way: &&ObservedWay| reports.iter().any(|report| report.run.ways.contains(way));
        Self {
            workflow,
            states: names.len(),
            ways: ways.len(),
            missed_ways: ways
                .iter()
                .filter(|way| !is_taken(way))
                .map(ToString::to_string)
                .collect(),
            missed_states: names
                .into_iter()
                .filter(|name| !entered.contains(name.as_str()))
                .collect(),
        }
    }
}
