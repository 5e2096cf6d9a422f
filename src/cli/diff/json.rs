//! The difference of two runs for programs.

use serde::Serialize;

use super::first::FirstDifference;
use crate::cli::status_word;
use crate::domain::id::{AgentId, RunId};
use crate::domain::run_diff::{
    CostDifference, EndingDifference, FileDifference, InputDifference, RunPair,
    StateCostDifference, StepDifference,
};
use crate::domain::run_trace::{TracedContent, TracedFile};
use crate::language::diagnostic::line_difference;
use crate::runtime::comparison::{ComparedRun, RunComparison, WorkflowFileDifference};

/// The difference of two runs.
#[derive(Serialize)]
pub(super) struct DiffDocument<'found> {
    runs: RunPair<ComparedRunRow<'found>>,
    agent: Option<&'found AgentId>,
    equal: bool,
    shared_records: u64,
    first_difference: Option<&'found FirstDifference<'found>>,
    steps: &'found [StepDifference],
    results: &'found [EndingDifference],
    cost: CostDifference,
    states: &'found [StateCostDifference],
    files: Vec<FileRow<'found>>,
    commands: RunPair<u64>,
    inputs: &'found [InputDifference],
    workflow_files: &'found [WorkflowFileDifference],
}

/// A run that is compared.
#[derive(Serialize)]
struct ComparedRunRow<'found> {
    run: &'found RunId,
    status: &'static str,
    records: u64,
}

/// A file that differs, with its changed lines.
#[derive(Serialize)]
struct FileRow<'found> {
    #[serde(flatten)]
    file: &'found FileDifference,
    lines: Option<String>,
}

impl<'found> DiffDocument<'found> {
    /// Returns the difference of two runs, of `agent` alone if one is named.
    pub(super) fn of(
        found: &'found RunComparison,
        agent: Option<&'found AgentId>,
        first: Option<&'found FirstDifference<'found>>,
    ) -> Self {
        let diff = &found.diff;
        let run = |run: &'found ComparedRun| ComparedRunRow {
            run: &run.view.run.workflow_id,
            status: status_word::word(&run.view),
            records: run.trace.lineage.last(),
        };
        Self {
            runs: found.runs.as_ref().map(run),
            agent,
            equal: diff.is_equal(),
            shared_records: diff.shared,
            first_difference: first,
            steps: &diff.steps,
            results: &diff.results,
            cost: diff.cost,
            states: &diff.state_costs,
            files: diff
                .files
                .iter()
                .map(|file| FileRow { file, lines: file_lines(file) })
                .collect(),
            commands: found.runs.as_ref().map(|run| run.trace.files.commands),
            inputs: &diff.inputs,
            workflow_files: &found.workflow,
        }
    }
}

/// Returns the changed lines of a file, if both texts are known.
pub(super) fn file_lines(file: &FileDifference) -> Option<String> {
    let known = |side: &Option<TracedFile>| match side.as_ref().map(|side| side.content.clone()) {
        Some(TracedContent::Known(text)) => Some(text),
        Some(TracedContent::Edited(_)) | None => None,
    };
    line_difference(&known(&file.files.a)?, &known(&file.files.b)?)
}
