//! The folders below that programs run agents in: each is looked at from the state that is begun with.
//!
//! Graphs in them are not read, because what reads a graph reads it of the folder that is checked.

use std::collections::BTreeSet;

use super::{Findings, Report};
use crate::domain::id::{Folder, StateName};
use crate::domain::widening::PermissionCeiling;
use crate::language::program::definition::{Kind, RunFolder};
use crate::language::program::walk::instructions;
use crate::language::prompt::outline::{Graph, Outline, Program, Reach, State};
use crate::language::source::Source;

impl Report<'_> {
    /// What is wrong in the folders that the programs of an outline run; how many files were looked at.
    pub(super) fn folders(&mut self, outline: &Outline, variables: &[String]) -> usize {
        let mut files = 0;
        for (folder, start) in run_by(outline) {
            let Ok(source) = self.source.within(&folder) else { continue };
            let found = below(&*source, &start, variables, &self.ceiling);
            self.diagnostics.extend(found.diagnostics);
            files += found.files;
        }
        files
    }
}

fn below(
    source: &dyn Source,
    start: &StateName,
    variables: &[String],
    ceiling: &PermissionCeiling,
) -> Findings {
    let mut report = Report { source, ceiling: ceiling.clone(), diagnostics: Vec::new() };
    let unread = |_: &StateName| Graph::default();
    let reach = Reach { by_text: true, most: usize::MAX, graphs: Some(&unread) };
    let outline = Outline::of(start, source, reach);
    report.files(&outline);
    report.ways(&outline);
    report.options(&outline);
    report.fan_outs(&outline, None);
    report.ends(&outline, false);
    report.joins(&outline);
    report.variables(&outline, variables);
    let files = outline.read() + report.folders(&outline, variables);
    Findings { diagnostics: report.diagnostics, files }
}

/// The folders, each with the state that is begun with there.
fn run_by(outline: &Outline) -> BTreeSet<(Folder, StateName)> {
    let programs = outline.states.values().filter_map(|state| match state {
        State::Program(Program { definition, .. }) => definition.as_ref(),
        _ => None,
    });
    let bodies = programs.flat_map(|program| &program.states).map(|state| &state.body);
    let runs = bodies.flat_map(|body| instructions(body)).filter_map(|one| match &one.kind {
        Kind::RunFolder(RunFolder { folder: Some(folder), start, .. }) => {
            Some((folder.clone(), start.clone()))
        }
        _ => None,
    });
    runs.collect()
}
