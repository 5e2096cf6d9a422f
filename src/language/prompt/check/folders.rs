//! The checks of folders that programs run agents in, and that tags lead to: each is checked from its first state.
//!
//! Graphs in them are not read, because the reader of graphs reads those of the checked folder.

use std::collections::BTreeSet;

use super::{CheckFindings, FolderDiagnostics};
use crate::domain::id::{Folder, StateName};
use crate::domain::widening::PermissionCeiling;
use crate::language::program::walk::{instructions, started_in};
use crate::language::prompt::workflow_map::{
    FolderGraph, FolderProgram, FolderState, WorkflowMap, WorkflowMapOptions,
};
use crate::language::source::WorkflowSource;

impl FolderDiagnostics<'_> {
    /// Reports the problems in the folders that programs of a map run; returns the number of files read.
    pub(super) fn folders(&mut self, workflow_map: &WorkflowMap, variables: &[String]) -> usize {
        let mut files = 0;
        for (folder, start) in run_by(workflow_map) {
            let Ok(source) = self.source.within(&folder) else { continue };
            files += self.below(&*source, &start, variables);
        }
        for (source, start, own) in self.entered(workflow_map) {
            let variables: Vec<String> = variables.iter().cloned().chain(own).collect();
            files += self.below(&*source, &start, &variables);
        }
        files
    }

    /// Checks a folder from a state on, once; returns the number of files read.
    fn below(
        &mut self,
        source: &dyn WorkflowSource,
        start: &StateName,
        variables: &[String],
    ) -> usize {
        if !self.seen.insert(source.path(start)) {
            return 0;
        }
        let seen = std::mem::take(&mut self.seen);
        let (found, seen) = below(source, start, variables, (&self.ceiling, seen));
        self.seen = seen;
        self.diagnostics.extend(found.diagnostics);
        found.files
    }
}

fn below(
    source: &dyn WorkflowSource,
    start: &StateName,
    variables: &[String],
    (ceiling, seen): (&PermissionCeiling, BTreeSet<String>),
) -> (CheckFindings, BTreeSet<String>) {
    let mut report =
        FolderDiagnostics { source, ceiling: ceiling.clone(), diagnostics: Vec::new(), seen };
    let unread = |_: &StateName| FolderGraph::default();
    let reach = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: Some(&unread) };
    let workflow_map = WorkflowMap::of(start, source, reach);
    report.files(&workflow_map);
    report.ways(&workflow_map);
    report.shown_tags(&workflow_map);
    report.entries(&workflow_map);
    report.tags(&workflow_map);
    report.options(&workflow_map);
    report.fan_outs(&workflow_map, None);
    report.ends(&workflow_map, false);
    report.returns(&workflow_map);
    report.joins(&workflow_map);
    let known = report.with_outputs(&workflow_map, variables);
    report.variables(&workflow_map, &known);
    let files = workflow_map.read() + report.folders(&workflow_map, variables);
    (CheckFindings { diagnostics: report.diagnostics, files }, report.seen)
}

/// Returns the folders, each with its first state.
fn run_by(workflow_map: &WorkflowMap) -> BTreeSet<(Folder, StateName)> {
    let programs = workflow_map.states.values().filter_map(|state| match state {
        FolderState::Program(FolderProgram { definition, .. }) => definition.as_ref(),
        _ => None,
    });
    let bodies = programs.flat_map(|program| &program.states).map(|state| &state.body);
    let all = bodies.flat_map(|body| instructions(body));
    let runs = all.filter_map(|one| match started_in(&one.kind) {
        Some((Some(folder), start)) => Some((folder, start)),
        Some((None, _)) | None => None,
    });
    runs.collect()
}
