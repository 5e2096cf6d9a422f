//! The checks of the files themselves: the manifest, the first prompt, unreadable files, and unreachable ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use raymond_model::id::{Folder, ScopePath, StateKind, StateName};
use raymond_model::transition::Transition;

use super::FolderDiagnostics;
use super::tags::unescaped;
use crate::diagnostic::{Diagnostic, Severity, did_you_mean};
use crate::manifest::{Manifest, PeerManifest};
use crate::position::SourcePlace;
use crate::program::walk::{instructions, started_in};
use crate::prompt::check::options::filled_by;
use crate::prompt::first_state::{USUAL_NAMES, UsualFirstState};
use crate::prompt::frontmatter::why_no_entry;
use crate::prompt::scopes::{lacking_input, manifest_of};
use crate::prompt::script::PreparedScript;
use crate::prompt::step::is_for_others;
use crate::prompt::workflow_map::{
    FolderPrompt, FolderState, ShownTag, WorkflowMap, WorkflowMapOptions,
};
use crate::prompt::{frontmatter, step};
use crate::source::{Error, WorkflowSource, is_state};
use crate::template::CODE;
use crate::{manifest, replies, yaml};

impl FolderDiagnostics<'_> {
    /// Checks the manifest; returns it, and the number of files read for it. Where one file is checked with what
    /// it leads to, the manifest's `entry` is another matter.
    pub(super) fn manifest(&mut self, is_whole: bool) -> (Manifest, usize) {
        self.misnamed();
        let (own, files) = self.own_manifest(is_whole);
        let Some(peer) = PeerManifest::of(self.source) else { return (own, files) };
        let own = own.with_peer(self.source);
        let budget = own.budget.map(|budget| format!(", and the budget of a run is {budget}"));
        let mut message =
            format!("this is a manifest of ray, not a graph{}", budget.unwrap_or_default());
        let mut severity = Severity::Info;
        if !peer.unread.is_empty() {
            severity = Severity::Warning;
            let unread = peer.unread.join("`, `");
            message = format!("{message}; `{unread}` has no effect here, see raymond.yaml");
        }
        if let Ok(name) = StateName::parse(manifest::GRAPH) {
            self.add(&name, SourcePlace::START, "RF604", (severity, message));
        }
        (own, files + 1)
    }

    /// Warns of files that have no effect, because their names end in `.yml` or have capitals. A manifest that is not
    /// read is an error if a budget is in it.
    pub(super) fn misnamed(&mut self) {
        for name in self.source.names().unwrap_or_default() {
            let lower = name.as_str().to_ascii_lowercase().replace(".yml", ".yaml");
            let known = [(manifest::FILE, "RF003"), (replies::FILE, "RF004")];
            let Some((meant, code)) = known.into_iter().find(|(meant, _)| *meant == lower) else {
                continue;
            };
            // Where the file system ignores case, it is read.
            let is_read = |meant| self.source.read(&meant).is_ok();
            let is_capital = name.as_str().len() == meant.len();
            if name.as_str() == meant || is_capital && StateName::parse(meant).is_ok_and(is_read) {
                continue;
            }
            let text = self.source.read(&name).unwrap_or_default();
            let budget = manifest::examine(&text).manifest.budget.filter(|_| code == "RF003");
            let severity = budget.map_or(Severity::Warning, |_| Severity::Error);
            let budget = budget
                .map_or_else(String::new, |budget| format!(", nor does its budget of {budget}"));
            let message = format!("this file has no effect{budget}; its name has to be {meant}");
            self.add(&name, SourcePlace::START, code, (severity, message));
        }
    }

    fn own_manifest(&mut self, is_whole: bool) -> (Manifest, usize) {
        let Ok(name) = StateName::parse(manifest::FILE) else { return (Manifest::default(), 0) };
        match self.source.read(&name) {
            Ok(text) => {
                let examined = manifest::examine(&text);
                self.yaml(&name, examined.errors.all(), "RF003");
                if is_whole {
                    self.entry_of_manifest(&name, &examined);
                }
                self.options_of_manifest(&name, &examined);
                (examined.manifest, 1)
            }
            Err(Error::Missing { .. }) => (Manifest::default(), 0),
            Err(error) => {
                self.error(&name, error.place(), "RF003", error.reason());
                (Manifest::default(), 1)
            }
        }
    }

    /// Checks the manifest of a folder that is entered; returns the number of files read for it. The options in it
    /// count only for its own runs.
    pub(super) fn manifest_of_other(&mut self) -> usize {
        let Ok(name) = StateName::parse(manifest::FILE) else { return 0 };
        match self.source.read(&name) {
            Ok(text) => self.yaml(&name, manifest::examine(&text).errors.all(), "RF003"),
            Err(Error::Missing { .. }) => return 0,
            Err(error) => self.error(&name, error.place(), "RF003", error.reason()),
        }
        1
    }

    fn entry_of_manifest(&mut self, name: &StateName, examined: &manifest::ExaminedManifest) {
        let named = examined.manifest.entry.as_deref().and_then(|file| StateName::parse(file).ok());
        let Some(entry) = named else { return };
        let place = examined.entry.unwrap_or(SourcePlace::START);
        if let Err(error) = self.source.check(&entry) {
            let message = format!("its `entry` is {entry}, but {}", why(&error));
            self.error(name, place, "RF003", message);
        } else if !is_state(&entry, self.source) {
            let message = format!("its `entry` is {entry}, but {}", no_state());
            self.error(name, place, "RF003", message);
        }
    }

    /// Returns the state the folder begins with, if there is one.
    pub(super) fn entry(
        &mut self,
        given: Option<&StateName>,
        manifest: &Manifest,
    ) -> Option<StateName> {
        let named = manifest.entry.as_deref().and_then(|file| StateName::parse(file).ok());
        if given.is_none() && named.is_some() {
            return named.filter(|entry| self.source.check(entry).is_ok());
        }
        let first = StateName::parse(manifest::FIRST_STATE).ok()?;
        let usual = given.is_none().then(|| UsualFirstState::find(self.source));
        let entry = match usual {
            Some(UsualFirstState::Found(entry)) => entry,
            Some(UsualFirstState::Several { first, other }) => {
                let message = format!(
                    "{other} exists as well, and nothing says which comes first; remove one, or name the first as `entry` in raymond.yaml"
                );
                self.error(&first, SourcePlace::START, "RF006", message);
                return None;
            }
            Some(UsualFirstState::Missing) | None => given.cloned().unwrap_or(first),
        };
        let Err(error) = self.source.check(&entry) else { return Some(entry) };
        let message = match &error {
            Error::Missing { similar, .. } if given.is_none() => no_beginning(similar.as_deref()),
            _ => error.reason(),
        };
        self.error(&entry, error.place(), "RF001", message);
        None
    }

    /// Reports a script that nothing says how to execute; an information names each other one.
    fn script(&mut self, name: &StateName) {
        match PreparedScript::read(name, None, self.source) {
            Ok(_) => {
                let message = "this state is a script: it runs without a turn of Claude Code, and needs trust in the folder";
                let message = (Severity::Info, message.to_owned());
                self.add(name, SourcePlace::START, "RF603", message);
            }
            Err(step::Error::Source(error)) => {
                self.error(name, error.place(), "RF001", error.reason());
            }
            Err(error) => {
                let error = error.to_string();
                let (_, why) = error.split_once(": ").unwrap_or(("", &error));
                self.error(name, SourcePlace::START, "RF001", why.to_owned());
            }
        }
    }

    /// Reports the states and the evaluators' prompts that cannot be read.
    pub(super) fn files(&mut self, workflow_map: &WorkflowMap) {
        for (name, state) in &workflow_map.states {
            match state {
                FolderState::Prompt(prompt) => self.yaml(name, prompt.errors.all(), "RF002"),
                FolderState::Graph(_) | FolderState::Program(_) => {
                    let runs_commands = self.runs_commands;
                    let found =
                        state.diagnostics().iter().filter(|one| one.code != CODE || !runs_commands);
                    self.diagnostics.extend(found.cloned());
                }
                FolderState::Script(_) => self.script(name),
                FolderState::Unreadable(Error::Missing { .. })
                | FolderState::Beyond(..)
                | FolderState::Other => {}
                FolderState::Unreadable(error) => {
                    self.error(name, error.place(), "RF001", error.reason());
                }
            }
        }
        for (name, prompt) in &workflow_map.evaluators {
            self.yaml(name, prompt.errors.all(), "RF002");
        }
    }

    /// Checks the prompts of the folder that nothing leads to.
    pub(super) fn others(&mut self, workflow_map: &WorkflowMap) -> usize {
        let known = |name: &StateName| {
            workflow_map.states.contains_key(name) || workflow_map.evaluators.contains_key(name)
        };
        let names = match self.source.names() {
            Ok(names) => names,
            Err(error) => {
                self.error(&workflow_map.entry, error.place(), "RF001", error.reason());
                return 0;
            }
        };
        let others = names.into_iter().filter(|name| !known(name) && !is_for_others(name));
        let prompts = others.filter(|name| StateKind::of(name) == Some(StateKind::Prompt));
        // The targets of a file with mistakes are not known.
        let is_read = |state: &FolderState| {
            state.diagnostics().is_empty() || state.graph().is_some() || state.program().is_some()
        };
        let all_are_read = workflow_map.prompts().all(|(_, prompt)| prompt.errors.is_empty())
            && workflow_map.states.values().all(is_read);
        let meant = meant_by_mistakes(workflow_map, self.source);
        let mut count = 0;
        for name in prompts {
            count += 1;
            match self.source.read(&name) {
                Ok(text) => self.yaml(&name, FolderPrompt::of(&text).errors.all(), "RF002"),
                Err(error) => self.error(&name, error.place(), "RF001", error.reason()),
            }
            let message = format!(
                "nothing leads to this state from {}; name it in a policy, or move it elsewhere if it is not a state",
                workflow_map.entry
            );
            if all_are_read && !meant.contains(&name) {
                self.warning(&name, SourcePlace::START, "RF110", message);
            }
        }
        count
    }

    pub(super) fn yaml(&mut self, name: &StateName, errors: &[yaml::Error], code: &'static str) {
        for yaml::Error { line, column, message } in errors {
            let place = SourcePlace { line: *line, column: *column };
            self.error(name, place, code, message.clone());
        }
    }
}

/// Returns the states that a tag or an entry leads to that is reported itself: the name fits several, or the tag is
/// refused.
fn meant_by_mistakes(
    workflow_map: &WorkflowMap,
    source: &dyn WorkflowSource,
) -> BTreeSet<StateName> {
    let named = workflow_map.states.keys().flat_map(|name| frontmatter::candidates(name, source));
    let shown = workflow_map.texts().flat_map(|(_, text)| &text.shown);
    let refused = shown.filter(|shown| shown.transition.is_err());
    let misspelt = workflow_map.texts().flat_map(|(_, text)| &text.misspelt);
    let enclosed = refused.map(|shown| &shown.encloses);
    let enclosed = enclosed.chain(misspelt.map(|(tag, _)| &tag.encloses)).flatten();
    named.chain(enclosed.cloned()).collect()
}

fn no_beginning(similar: Option<&str>) -> String {
    let hint = match similar {
        Some(similar) => format!("there is {similar}: rename it"),
        None => "make one".to_owned(),
    };
    format!(
        "a workflow begins with {USUAL_NAMES}, and none is in this folder; {hint}, or name its first file as `entry` in raymond.yaml"
    )
}

/// Returns why a file cannot be a state, as the second half of a sentence.
pub(super) fn why(error: &Error) -> String {
    match error {
        Error::Missing { similar, path } => {
            let hint = similar.as_ref().map(|name| format!("; {}", did_you_mean(path, name)));
            format!("there is no such file{}", hint.unwrap_or_default())
        }
        other => other.reason(),
    }
}

/// Returns the message that a file is of another kind.
pub(super) fn no_state() -> &'static str {
    "that is not a state: a state is a prompt, NAME.md, a graph, NAME.yaml, a program, NAME.lisp or NAME.duet, or a script, such as NAME.sh or any file that can be executed"
}

// The checks of ways into other folders, which are separate scopes.
//
// Each folder that a program runs agents in, or that a tag leads to, is checked from its first state.

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
        let (found, files, seen) = below(source, start, given, (self, seen));
        self.seen = seen;
        self.diagnostics.extend(found);
        files
    }
}

fn below(
    source: &dyn WorkflowSource,
    start: &StateName,
    given: &GivenFromOutside,
    (above, seen): (&FolderDiagnostics<'_>, BTreeSet<String>),
) -> (Vec<Diagnostic>, usize, BTreeSet<String>) {
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
        return (report.diagnostics, of_manifest, report.seen);
    }
    let reach = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: above.graphs };
    let mut workflow_map = WorkflowMap::of(start, source, reach);
    workflow_map.is_entered = given.is_by_tag;
    report.map(&workflow_map, None, (&given.names, given.has_unknown));
    let files = of_manifest + workflow_map.read() + report.folders(&workflow_map, &given.names);
    (report.diagnostics, files, report.seen)
}

/// Returns the folders, each with its first state.
fn run_by(workflow_map: &WorkflowMap) -> BTreeSet<(Folder, StateName)> {
    let programs = workflow_map.states.values().filter_map(FolderState::program);
    let bodies = programs.flat_map(|program| &program.states).map(|state| &state.body);
    let all = bodies.flat_map(|body| instructions(body));
    let runs = all.filter_map(|one| match started_in(&one.kind) {
        Some((Some(folder), start)) => Some((folder, start)),
        Some((None, _)) | None => None,
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
        (path, state): (&ScopePath, &StateName),
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
        (entry, place): (&Transition, SourcePlace),
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
        (shown, transition): (&ShownTag, &Transition),
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
        self.add(name, place, "RF602", (Severity::Info, message));
    }

    /// Returns the folders that the ways of a map enter.
    pub(super) fn entered(&self, workflow_map: &WorkflowMap) -> Vec<EnteredFolder> {
        let mut folders = Vec::new();
        for (name, path, state) in beyond(workflow_map) {
            let Ok(there) = self.source.scope(path) else { continue };
            let inputs = manifest_of(&*there).map(|manifest| manifest.inputs).unwrap_or_default();
            let mut names: Vec<String> = inputs.into_iter().map(|input| input.name).collect();
            names.push("input".to_owned());
            let ways = workflow_map.ways();
            let here = ways.filter(|transition| transition.target() == Some(name));
            let ways_here: Vec<&Transition> = here.collect();
            let shown = workflow_map.texts().flat_map(|(_, prompt)| &prompt.shown);
            let shown = shown.filter_map(|shown| shown.transition.as_ref().ok());
            let here = shown.filter(|one| one.crossings().any(|to| to == (path, state)));
            let all: Vec<&Transition> = ways_here.into_iter().chain(here).collect();
            let has_unknown = all.iter().any(|transition| {
                let has_list = matches!(transition, Transition::Fork { each: Some(_), .. });
                has_list && filled_by(transition).is_none()
            });
            names.extend(all.into_iter().flat_map(given_by));
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
    workflow_map.states.iter().filter_map(|(name, one)| match one {
        FolderState::Beyond(path, state) => Some((name, path, state)),
        _ => None,
    })
}
