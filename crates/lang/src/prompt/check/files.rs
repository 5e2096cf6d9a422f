//! The checks of the files themselves: the manifest, the first prompt, unreadable files, and unreachable ones.

use std::collections::BTreeSet;

use super::FolderDiagnostics;
use crate::diagnostic::Severity;
use crate::hint::did_you_mean;
use crate::manifest::PeerManifest;
use crate::manifest::{self, Manifest};
use crate::prompt::frontmatter;
use crate::prompt::scopes::{USUAL_NAMES, UsualFirstState};
use crate::prompt::script::PreparedScript;
use crate::prompt::step;
use crate::prompt::step::is_for_others;
use crate::prompt::workflow_map::{FolderPrompt, FolderState, WorkflowMap};
use crate::replies;
use crate::source::{Error, WorkflowSource};
use crate::source::{SourcePlace, is_state};
use crate::template::CODE;
use crate::yaml;
use raymond_model::id::{StateKind, StateName};

impl FolderDiagnostics<'_> {
    /// Checks the manifest; returns it, and the number of files read for it. Where one file is checked with what
    /// it leads to, the manifest's `entry` is another matter.
    pub(super) fn manifest(&mut self, is_whole: bool) -> (Manifest, usize) {
        self.misnamed();
        let (declared, files) = self.self_manifest(is_whole);
        let Some(peer) = PeerManifest::of(self.source) else { return (declared, files) };
        let declared = declared.with_peer(self.source);
        let budget = declared.budget.map(|budget| format!(", and the budget of a run is {budget}"));
        let mut message =
            format!("this is a manifest of ray, not a graph{}", budget.unwrap_or_default());
        let mut severity = Severity::Info;
        if !peer.unread.is_empty() {
            severity = Severity::Warning;
            let unread = peer.unread.join("`, `");
            message = format!("{message}; `{unread}` has no effect here, see raymond.yaml");
        }
        if let Ok(name) = StateName::parse(manifest::GRAPH) {
            self.add(&name, SourcePlace::START, "RF604", severity, message);
        }
        (declared, files + 1)
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
            self.add(&name, SourcePlace::START, code, severity, message);
        }
    }

    fn self_manifest(&mut self, is_whole: bool) -> (Manifest, usize) {
        let (name, text) = match self.file_beside(manifest::FILE, "RF003") {
            Ok(file) => file,
            Err(files) => return (Manifest::default(), files),
        };
        let examined = manifest::examine(&text);
        self.yaml(&name, examined.errors.all(), "RF003");
        if is_whole {
            self.entry_of_manifest(&name, &examined);
        }
        self.options_of_manifest(&name, &examined);
        (examined.manifest, 1)
    }

    /// Checks the manifest of a folder that is entered; returns the number of files read for it. The options in it
    /// count only for its own runs.
    pub(super) fn manifest_of_other(&mut self) -> usize {
        match self.file_beside(manifest::FILE, "RF003") {
            Ok((name, text)) => {
                self.yaml(&name, manifest::examine(&text).errors.all(), "RF003");
                1
            }
            Err(files) => files,
        }
    }

    /// Returns a file that a folder may have beside its states. Without it, returns the number of files read: one if
    /// it is there and cannot be read, which is reported.
    pub(super) fn file_beside(
        &mut self,
        file: &str,
        code: &'static str,
    ) -> Result<(StateName, String), usize> {
        let name = StateName::parse(file).map_err(|_| 0_usize)?;
        match self.source.read(&name) {
            Ok(text) => Ok((name, text)),
            Err(Error::Missing { .. }) => Err(0),
            Err(error) => {
                self.error(&name, error.place(), code, error.reason());
                Err(1)
            }
        }
    }

    fn entry_of_manifest(&mut self, name: &StateName, examined: &manifest::ExaminedManifest) {
        let named = examined.manifest.entry.as_deref().and_then(|file| StateName::parse(file).ok());
        let Some(entry) = named else { return };
        let place = examined.entry.unwrap_or(SourcePlace::START);
        let why = match self.source.check(&entry) {
            Err(error) => why(&error),
            Ok(()) if !is_state(&entry, self.source) => no_state().to_owned(),
            Ok(()) => return,
        };
        self.error(name, place, "RF003", format!("its `entry` is {entry}, but {why}"));
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
                self.add(name, SourcePlace::START, "RF603", Severity::Info, message);
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
                    let found = state
                        .diagnostics()
                        .iter()
                        .filter(|diagnostic| diagnostic.code != CODE || !runs_commands);
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
        for yaml::Error { at, message } in errors {
            self.error(name, *at, code, message.clone());
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
