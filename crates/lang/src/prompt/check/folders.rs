//! The checks of ways into other folders, which are separate scopes.
//!
//! Each folder that a program runs agents in, or that a tag leads to, is checked from its first state.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{FolderDiagnostics, unescaped};
use crate::diagnostic::Severity;
use crate::program::checked_program::{instructions, started_in};
use crate::prompt::check::options::filled_by;
use crate::prompt::frontmatter::why_no_entry;
use crate::prompt::scopes::{lacking_input, manifest_of};
use crate::prompt::workflow_map::{
    FolderPrompt, FolderState, ShownTag, WorkflowMap, WorkflowMapOptions,
};
use crate::source::{SourcePlace, WorkflowSource};
use raymond_model::id::{Folder, ScopePath, StateKind, StateName};
use raymond_model::transition::Transition;

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
        let above: &FolderDiagnostics<'_> = self;
        let mut report = FolderDiagnostics {
            source,
            ceiling: above.ceiling.clone(),
            diagnostics: Vec::new(),
            seen,
            ..*above
        };
        let files = report.entered_folder(start, given);
        let FolderDiagnostics { diagnostics, seen, .. } = report;
        self.seen = seen;
        self.diagnostics.extend(diagnostics);
        files
    }

    /// Checks the folder itself from the state on that is entered; returns the number of files read.
    fn entered_folder(&mut self, start: &StateName, given: &GivenFromOutside) -> usize {
        let of_manifest = self.manifest_of_other();
        // The way into the folder is reported where it leads there.
        if start.is_entry() {
            return of_manifest;
        }
        let reach = WorkflowMapOptions::whole(self.graphs);
        let mut workflow_map = WorkflowMap::of(start, self.source, reach);
        workflow_map.is_entered = given.is_by_tag;
        self.map(&workflow_map, None, &given.names, given.has_unknown);
        of_manifest + workflow_map.read() + self.folders(&workflow_map, &given.names)
    }
}

/// Returns the folders, each with its first state.
fn run_by(workflow_map: &WorkflowMap) -> BTreeSet<(Folder, StateName)> {
    let programs = workflow_map.states.values().filter_map(FolderState::program);
    let bodies = programs.flat_map(|program| &program.states).map(|state| &state.body);
    let all = bodies.flat_map(|body| instructions(body));
    let runs = all.filter_map(|instruction| {
        let (folder, start) = started_in(&instruction.kind)?;
        Some((folder?, start))
    });
    runs.collect()
}

/// A folder that is entered.
pub(super) struct EnteredFolder {
    /// Its files.
    pub(super) source: Arc<dyn WorkflowSource>,
    /// The state that is entered.
    pub(super) start: StateName,
    /// The values that its agents have.
    pub(super) given: GivenFromOutside,
}

/// The values that the agents of a folder have from outside.
#[derive(Debug, Default)]
pub(super) struct GivenFromOutside {
    /// The names of the known values.
    pub(super) names: Vec<String>,
    /// True if there may be others: the fields of a list in a file.
    pub(super) has_unknown: bool,
    /// True if a tag leads there, and no program.
    pub(super) is_by_tag: bool,
}

impl FolderDiagnostics<'_> {
    /// Notes a way into another folder, or reports that the folder cannot be entered.
    pub(super) fn crossing(
        &mut self,
        name: &StateName,
        place: SourcePlace,
        path: &ScopePath,
        state: &StateName,
    ) {
        let target = StateName::beyond(path, state);
        if let Some(why) = why_no_entry(path, state, self.source) {
            return self.error(name, place, "RF101", format!("{target}: {why}"));
        }
        self.leads_out(name, place, path);
    }

    /// Reports an entry of a policy that leaves out an input of its folder, unless the text speaks of it.
    pub(super) fn inputs_of_entry(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        entry: &Transition,
        place: SourcePlace,
    ) {
        let Some(lacking) = lacking_input(entry, self.source) else { return };
        if !prompt.words.contains(&lacking.name) {
            self.error(name, place, "RF309", lacking.message);
        }
    }

    /// Reports a tag in a text that cannot enter its folder.
    pub(super) fn shown_crossing(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        shown: &ShownTag,
        transition: &Transition,
    ) {
        let mut crossings = transition.crossings();
        let refused = crossings.find_map(|(path, state)| {
            Some((StateName::beyond(path, state), why_no_entry(path, state, self.source)?))
        });
        if let Some((target, why)) = refused {
            if prompt.is_open() {
                let tag = unescaped(&transition.to_string());
                let is_script = StateKind::of(name) == Some(StateKind::Script);
                let origin = if is_script { "the script has" } else { "the text shows" };
                let message = format!("{origin} {tag}, but {target}: {why}");
                self.at_tag(name, shown, "RF103", message);
            }
            return;
        }
        if let Some(lacking) = lacking_input(transition, self.source) {
            self.at_tag(name, shown, "RF309", lacking.message);
        }
        if prompt.is_open()
            && let Some((path, _)) = transition.crossings().next()
        {
            self.leads_out(name, shown.place, path);
        }
    }

    /// Notes that a way leads into another folder.
    fn leads_out(&mut self, name: &StateName, place: SourcePlace, path: &ScopePath) {
        let message = format!(
            "this leads into another folder, {}, which is a separate scope: names in it mean its files",
            path.as_written()
        );
        self.add(name, place, "RF602", Severity::Info, message);
    }

    /// Returns the folders that the ways of a map enter.
    pub(super) fn entered(&self, workflow_map: &WorkflowMap) -> Vec<EnteredFolder> {
        let mut folders = Vec::new();
        for (name, path, state) in beyond(workflow_map) {
            let Ok(there) = self.source.scope(path) else { continue };
            let inputs = manifest_of(&*there).map(|manifest| manifest.inputs).unwrap_or_default();
            let mut names: Vec<String> = inputs.into_iter().map(|input| input.name).collect();
            names.push("input".to_owned());
            let transitions =
                workflow_map.transitions().filter(|transition| transition.target() == Some(name));
            let shown = workflow_map.texts().flat_map(|(_, prompt)| &prompt.shown);
            let shown = shown.filter_map(|shown| shown.transition.as_ref().ok());
            let shown = shown.filter(|tag| tag.crossings().any(|to| to == (path, state)));
            let mut has_unknown = false;
            for transition in transitions.chain(shown) {
                let has_list = matches!(transition, Transition::Fork { each: Some(_), .. });
                has_unknown |= has_list && filled_by(transition).is_none();
                names.extend(given_by(transition));
            }
            let given = GivenFromOutside { names, has_unknown, is_by_tag: true };
            folders.push(EnteredFolder { source: there, start: state.clone(), given });
        }
        folders
    }

    /// Returns the known variables, with the outputs of the folders that are entered.
    pub(super) fn with_outputs(
        &self,
        workflow_map: &WorkflowMap,
        variables: &[String],
    ) -> Vec<String> {
        let mut known = variables.to_vec();
        for (_, path, _) in beyond(workflow_map) {
            let manifest = self.source.scope(path).ok().and_then(|there| manifest_of(&*there).ok());
            let outputs = manifest.into_iter().flat_map(|manifest| manifest.outputs);
            known.extend(outputs.map(|output| output.name));
        }
        known
    }
}

/// Returns the names of the values that a transition gives: its attributes, and what the entries of its list fill.
fn given_by(transition: &Transition) -> Vec<String> {
    let mut names: Vec<String> = transition.variables().keys().cloned().collect();
    if let Transition::Fork { each: Some(each), .. } = transition {
        names.push(each.name.clone());
        names.extend(filled_by(transition).into_iter().flatten());
    }
    names
}

/// Returns the states of other folders in a map.
fn beyond(
    workflow_map: &WorkflowMap,
) -> impl Iterator<Item = (&StateName, &ScopePath, &StateName)> {
    workflow_map.states.iter().filter_map(|(name, state)| match state {
        FolderState::Beyond(path, state) => Some((name, path, state)),
        _ => None,
    })
}
