//! The checks of folders that programs run agents in, and that tags lead to: each is checked from its first state.

use std::collections::BTreeSet;

use super::crossings::{EnteredFolder, GivenFromOutside};
use super::{CheckFindings, FolderDiagnostics};
use crate::program::walk::{instructions, started_in};
use crate::prompt::workflow_map::{FolderProgram, FolderState, WorkflowMap, WorkflowMapOptions};
use crate::source::WorkflowSource;
use raymond_model::id::{Folder, StateName};

impl FolderDiagnostics<'_> {
    /// Reports the problems in the folders that programs of a map run; returns the number of files read.
    pub(super) fn folders(&mut self, workflow_map: &WorkflowMap, variables: &[String]) -> usize {
        let mut files = 0;
        for (folder, start) in run_by(workflow_map) {
            let Ok(source) = self.source.within(&folder) else { continue };
            let given =
                GivenFromOutside { names: variables.to_vec(), ..GivenFromOutside::default() };
            files += self.below(&*source, &start, &given);
        }
        for EnteredFolder { source, start, mut given } in self.entered(workflow_map) {
            given.names.extend(variables.iter().cloned());
            files += self.below(&*source, &start, &given);
        }
        files
    }

    /// Checks a folder from a state on, once; returns the number of files read.
    fn below(
        &mut self,
        source: &dyn WorkflowSource,
        start: &StateName,
        given: &GivenFromOutside,
    ) -> usize {
        if !self.seen.insert(source.path(start)) {
            return 0;
        }
        let seen = std::mem::take(&mut self.seen);
        let (found, seen) = below(source, start, given, (self, seen));
        self.seen = seen;
        self.diagnostics.extend(found.diagnostics);
        found.files
    }
}

fn below(
    source: &dyn WorkflowSource,
    start: &StateName,
    given: &GivenFromOutside,
    (above, seen): (&FolderDiagnostics<'_>, BTreeSet<String>),
) -> (CheckFindings, BTreeSet<String>) {
    let mut report = FolderDiagnostics {
        source,
        ceiling: above.ceiling.clone(),
        diagnostics: Vec::new(),
        seen,
        ..*above
    };
    let of_manifest = report.manifest_of_other();
    // The way into the folder is reported where it leads there.
    if start.is_entry() {
        return (
            CheckFindings {
                diagnostics: report.diagnostics,
                files: of_manifest,
                implied: Vec::new(),
            },
            report.seen,
        );
    }
    let reach = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: above.graphs };
    let mut workflow_map = WorkflowMap::of(start, source, reach);
    workflow_map.is_entered = given.is_by_tag;
    report.files(&workflow_map);
    report.ways(&workflow_map);
    report.shown_tags(&workflow_map);
    report.entries(&workflow_map);
    report.tags(&workflow_map);
    report.options(&workflow_map);
    report.fan_outs(&workflow_map, None);
    report.ends(&workflow_map);
    report.returns(&workflow_map);
    report.joins(&workflow_map);
    let known = report.with_outputs(&workflow_map, &given.names);
    report.variables(&workflow_map, &known, given.has_unknown);
    let files = of_manifest + workflow_map.read() + report.folders(&workflow_map, &given.names);
    (CheckFindings { diagnostics: report.diagnostics, files, implied: Vec::new() }, report.seen)
}

/// Returns the folders, each with its first state.
fn run_by(workflow_map: &WorkflowMap) -> BTreeSet<(Folder, StateName)> {
    let programs = workflow_map.states.values().filter_map(|state| match state {
        FolderState::Program(FolderProgram { program, .. }) => program.as_ref(),
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
