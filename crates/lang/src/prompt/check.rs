//! The problems of a folder of prompts: all are found at once, without running anything.
//!
//! An error is certain to fail; a warning may work, though perhaps not as intended. Each has a code and a place.
//! [`CODES`](super::codes::CODES) is the whole table; `raymond check --help` prints it.
//!
//! Only the tags and file names in a prompt's text are known. They are followed where a state has no policy. Agents
//! write what they are shown, so that a tag that is certain to be refused is an error, unless it is quoted as code.

mod ends;
mod entries;
mod files;
mod options;
mod outputs;
mod tags;

use std::collections::BTreeSet;

use super::implied_policy::ImpliedPolicy;
use super::workflow_map::{FolderGraphReader, FolderState, WorkflowMap, WorkflowMapOptions};
use crate::diagnostic::{Diagnostic, Severity};
use crate::position::SourcePlace;
use crate::source::WorkflowSource;
use raymond_model::id::StateName;
use raymond_model::privilege::StarterConsent;
use raymond_model::settings::Settings;
use raymond_model::widening::PermissionCeiling;

/// The folder to check, and the known settings of the future run.
#[derive(Clone, Copy)]
pub struct CheckSubject<'a> {
    /// The folder.
    pub source: &'a dyn WorkflowSource,
    /// The first prompt, if only the part of the folder that it leads to is checked.
    pub entry: Option<&'a StateName>,
    /// The variables the run will be started with.
    pub variables: &'a [String],
    /// The permissions that the starter will grant.
    pub consent: &'a StarterConsent,
    /// Reads a graph of this folder, or of another one.
    pub graphs: &'a FolderGraphReader<'a>,
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckFindings {
    /// The problems, in the order of the files and the places.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of files that were read.
    pub files: usize,
    /// The policies that the texts of states without one imply.
    pub implied: Vec<ImpliedPolicy>,
}

/// Checks a folder.
pub fn check(subject: CheckSubject<'_>) -> CheckFindings {
    let mut report = FolderDiagnostics::new(subject.source, subject.consent);
    report.graphs = Some(subject.graphs);
    let mut implied = Vec::new();
    let (manifest, mut files) = report.manifest(subject.entry.is_none());
    report.runs_commands = manifest.options.runs_command();
    if let Some(entry) = report.entry(subject.entry, &manifest) {
        let reach = WorkflowMapOptions {
            by_text: true,
            max_states: usize::MAX,
            graphs: Some(subject.graphs),
        };
        let workflow_map = WorkflowMap::of(&entry, subject.source, reach);
        report.seen.insert(subject.source.path(&entry));
        implied = ImpliedPolicy::all(&workflow_map);
        report.lost_frontmatter(&workflow_map);
        report.has_budget = manifest.budget.is_some();
        report.budgets(&workflow_map);
        report.outputs(&workflow_map);
        let inputs = manifest.inputs.iter().map(|input| input.name.clone());
        let given: Vec<String> = subject.variables.iter().cloned().chain(inputs).collect();
        report.map(&workflow_map, manifest.max_fan_out, (&given, false));
        files += workflow_map.read() + report.replies(&workflow_map);
        files += report.folders(&workflow_map, subject.variables);
        if workflow_map.states.values().any(|state| matches!(state, FolderState::Beyond(..))) {
            report.across(&WorkflowMap::across(&entry, subject.source, reach));
        }
        if subject.entry.is_none() {
            files += report.others(&workflow_map);
        }
    }
    report.diagnostics.sort();
    report.diagnostics.dedup();
    // A policy would repeat the mistakes of the tags that it is made of.
    let is_wrong =
        |path: &str| report.diagnostics.iter().any(|one| one.is_error() && one.path == path);
    implied.retain(|policy: &ImpliedPolicy| !is_wrong(&subject.source.path(&policy.state)));
    CheckFindings { diagnostics: report.diagnostics, files, implied }
}

/// Returns the state that a folder begins with.
///
/// # Errors
/// The problems, if there is no such state.
pub fn beginning(
    source: &dyn WorkflowSource,
    given: Option<&StateName>,
) -> Result<StateName, Vec<Diagnostic>> {
    let mut report = FolderDiagnostics::new(source, &StarterConsent::default());
    let (manifest, _) = report.manifest(given.is_none());
    report.entry(given, &manifest).ok_or(report.diagnostics)
}

/// Returns the problems, before a run begins, of the states that policies lead to: those that will fail when they
/// are reached. `by_text` also has the states that only texts name; frontmatter that has no effect is warned of there, too.
pub(super) fn check_reachable(
    workflow_map: &WorkflowMap,
    by_text: &WorkflowMap,
    source: &dyn WorkflowSource,
) -> Vec<Diagnostic> {
    let mut report = FolderDiagnostics::new(source, &StarterConsent::default());
    report.files(workflow_map);
    report.ways(workflow_map);
    report.outputs(workflow_map);
    report.lost_frontmatter(by_text);
    let worth = ["RF001", "RF002", "RF101", "RF102", "RF108", "RF402", "RF501"];
    report.diagnostics.retain(|diagnostic| worth.contains(&diagnostic.code));
    report.diagnostics.sort();
    report.diagnostics
}

/// The problems found so far.
struct FolderDiagnostics<'a> {
    source: &'a dyn WorkflowSource,
    ceiling: PermissionCeiling,
    /// True if the run has a budget, which bounds all its agents.
    has_budget: bool,
    /// The run's default of `run_command`.
    runs_commands: bool,
    /// Reads the graphs; without it, none is read.
    graphs: Option<&'a FolderGraphReader<'a>>,
    diagnostics: Vec<Diagnostic>,
    /// The paths of the states from which a folder was checked.
    seen: BTreeSet<String>,
}

impl<'a> FolderDiagnostics<'a> {
    fn new(source: &'a dyn WorkflowSource, consent: &StarterConsent) -> Self {
        let settings = Settings { consent: consent.clone(), ..Settings::default() };
        Self {
            source,
            ceiling: PermissionCeiling::of(&settings),
            has_budget: false,
            runs_commands: false,
            graphs: None,
            diagnostics: Vec::new(),
            seen: BTreeSet::new(),
        }
    }
}

impl FolderDiagnostics<'_> {
    fn error(&mut self, name: &StateName, place: SourcePlace, code: &'static str, message: String) {
        self.add(name, place, code, (Severity::Error, message));
    }

    fn warning(
        &mut self,
        name: &StateName,
        place: SourcePlace,
        code: &'static str,
        message: String,
    ) {
        self.add(name, place, code, (Severity::Warning, message));
    }

    /// Checks what all folders have in common. `max_fan_out` is the folder's limit of forked agents per reply; `given`
    /// are the values that its agents have, and whether they may have others.
    fn map(
        &mut self,
        workflow_map: &WorkflowMap,
        max_fan_out: Option<u32>,
        given: (&[String], bool),
    ) {
        self.files(workflow_map);
        self.ways(workflow_map);
        self.shown_tags(workflow_map);
        self.entries(workflow_map);
        self.tags(workflow_map);
        self.options(workflow_map);
        self.fan_outs(workflow_map, max_fan_out);
        self.ends(workflow_map);
        self.returns(workflow_map);
        self.joins(workflow_map);
        let known = self.with_outputs(workflow_map, given.0);
        self.variables(workflow_map, &known, given.1);
    }

    /// Returns the path of a state as people see it, also of one of another folder.
    fn path_of(&self, name: &StateName) -> String {
        let elsewhere = name.in_other_folder().and_then(|(path, state)| {
            let there = self.source.scope(&path).ok()?;
            // A source in memory has no separate name.
            Some(there.path(&state)).filter(|shown| shown != state.as_str())
        });
        elsewhere.unwrap_or_else(|| self.source.path(name))
    }

    fn add(
        &mut self,
        name: &StateName,
        place: SourcePlace,
        code: &'static str,
        (severity, message): (Severity, String),
    ) {
        let SourcePlace { line, column } = place;
        let path = self.path_of(name);
        self.diagnostics.push(Diagnostic { path, line, column, code, severity, message });
    }
}

impl WorkflowMap {
    /// Returns the number of files that have been read for the map.
    fn read(&self) -> usize {
        let there = self
            .states
            .values()
            .filter(|state| !matches!(state, FolderState::Unreadable(_) | FolderState::Beyond(..)));
        let only = self.evaluators.keys().filter(|name| !self.states.contains_key(*name));
        there.count() + only.count()
    }
}

#[cfg(test)]
mod tests;
