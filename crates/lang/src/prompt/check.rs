//! The problems of a folder of prompts: all are found at once, without running anything.
//!
//! An error is certain to fail; a warning may work, though perhaps not as intended. Each has a code and a place.
//! [`CODES`](super::codes::CODES) is the whole table; `raymond check --help` prints it.
//!
//! Only the tags and file names in a prompt's text are known. They are followed where a state has no policy. Agents
//! write what they are shown, so that a tag that is certain to be refused is an error, unless it is quoted as code.

use std::collections::BTreeSet;

use raymond_model::id::StateName;
use raymond_model::privilege::StarterConsent;
use raymond_model::settings::Settings;
use raymond_model::transition::{InvalidTransition, TagName, Transition};
use raymond_model::widening::PermissionCeiling;

use super::implied_policy::ImpliedPolicy;
use super::workflow_map::{FolderGraphReader, FolderState, WorkflowMap, WorkflowMapOptions};
use crate::diagnostic::{Diagnostic, Severity};
use crate::prompt::check::files::{no_state, why};
use crate::prompt::frontmatter;
use crate::prompt::scopes::{lacking_input, with_required_inputs};
use crate::prompt::step::{RESERVED, RUN_ID};
use crate::prompt::workflow_map::{FolderPrompt, ShownTag};
use crate::source::{SourcePlace, WorkflowSource, is_state};

mod ends;
mod files;
mod folders;
mod options;
mod outputs;

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
        let reach = WorkflowMapOptions::whole(Some(subject.graphs));
        let workflow_map = WorkflowMap::of(&entry, subject.source, reach);
        report.seen.insert(subject.source.path(&entry));
        implied = ImpliedPolicy::all(&workflow_map);
        report.lost_frontmatter(&workflow_map);
        report.has_budget = manifest.budget.is_some();
        report.budgets(&workflow_map);
        report.outputs(&workflow_map);
        let inputs = manifest.inputs.iter().map(|input| input.name.clone());
        let given: Vec<String> = subject.variables.iter().cloned().chain(inputs).collect();
        report.map(&workflow_map, manifest.max_fan_out, &given, false);
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
        |path: &str| report.diagnostics.iter().any(|found| found.is_error() && found.path == path);
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

/// Returns the problems, before a run begins, of the states that policies lead to: those that will fail when they are
/// reached. `by_text` also has the states that only texts name; frontmatter that has no effect is warned of there, too.
pub(super) fn check_reachable(
    workflow_map: &WorkflowMap,
    by_text: &WorkflowMap,
    source: &dyn WorkflowSource,
) -> Vec<Diagnostic> {
    let mut report = FolderDiagnostics::new(source, &StarterConsent::default());
    report.files(workflow_map);
    report.check_edges(workflow_map);
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
    fn error(
        &mut self,
        name: &StateName,
        place: SourcePlace,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add(name, place, code, Severity::Error, message);
    }

    fn warning(
        &mut self,
        name: &StateName,
        place: SourcePlace,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add(name, place, code, Severity::Warning, message);
    }

    /// Checks what all folders have in common. `max_fan_out` is the folder's limit of forked agents per reply; `given`
    /// are the values that its agents have, and `has_unknown` is true if they may have others.
    fn map(
        &mut self,
        workflow_map: &WorkflowMap,
        max_fan_out: Option<u32>,
        given: &[String],
        has_unknown: bool,
    ) {
        self.files(workflow_map);
        self.check_edges(workflow_map);
        self.shown_tags(workflow_map);
        self.entries(workflow_map);
        self.tags(workflow_map);
        self.options(workflow_map);
        self.fan_outs(workflow_map, max_fan_out);
        self.ends(workflow_map);
        self.returns(workflow_map);
        self.joins(workflow_map);
        let known = self.with_outputs(workflow_map, given);
        self.variables(workflow_map, &known, has_unknown);
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
        severity: Severity,
        message: impl Into<String>,
    ) {
        let path = self.path_of(name);
        self.diagnostics.push(Diagnostic::new(path, place, code, severity, message));
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

// Checks the entries of policies against the text.
//
// It finds those that the text never mentions, forks that do not fit together, and single ones that need no tag.

impl FolderDiagnostics<'_> {
    /// Reports the entries of all policies that do not fit their texts.
    fn entries(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            let is_clear = prompt.errors.is_empty() && prompt.frontmatter.output.is_none();
            if !is_clear || prompt.frontmatter.policy.is_open() {
                continue;
            }
            self.unmentioned(name, prompt);
            self.listed_forks(name, prompt);
            self.implicit(name, prompt);
        }
    }

    /// Warns of targets that the text never mentions: an agent does not know of them before it is reminded.
    fn unmentioned(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let allowed = &prompt.frontmatter.policy.allowed;
        if allowed.len() < 2 || prompt.shows_filled_tags {
            return;
        }
        let mut reported: Vec<&StateName> = Vec::new();
        for (entry, place) in allowed.iter().zip(&prompt.places.entries) {
            let Some(target) = entry.target() else { continue };
            let words = [target.as_str(), target.stem()];
            // A name may have a blank.
            let is_mentioned = |word: &&str| {
                prompt.words.contains(*word)
                    || prompt.shown.iter().any(|tag| tag.encloses.as_ref() == Some(target))
            };
            if words.iter().any(is_mentioned) || reported.contains(&target) {
                continue;
            }
            reported.push(target);
            let message = format!(
                "the text never mentions {target}, so agents do not know when to go there; say when to write {entry}, or leave the entry out"
            );
            self.warning(name, place.target.unwrap_or(place.entry), "RF208", message);
        }
    }

    /// Warns of forks that one reply may have together, and that lead to different states.
    fn listed_forks(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let policy = &prompt.frontmatter.policy;
        if !policy.many_forks {
            return;
        }
        let listed = policy.allowed.iter().zip(&prompt.places.entries);
        let mut forks = listed.filter_map(|(entry, place)| match entry {
            Transition::Fork { next, .. } => Some((next, place)),
            _ => None,
        });
        let Some((first, _)) = forks.next() else { return };
        if let Some((other, place)) = forks.find(|(next, _)| *next != first) {
            let message = format!(
                "these forks lead this agent to {first} and to {other}; several forks in one reply need the same `next`"
            );
            self.warning(name, place.continuation.unwrap_or(place.entry), "RF207", message);
        }
    }

    /// Notes a single entry that is taken without a tag.
    fn implicit(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let (Some(only), Some(place)) =
            (prompt.frontmatter.policy.implied(), prompt.places.entries.first())
        else {
            return;
        };
        if only.tag() == TagName::Ask {
            return;
        }
        let shown = with_required_inputs(&only, self.source);
        let message = if lacking_input(&only, self.source).is_some() {
            format!(
                "this is the only way, and a reply has to give the inputs of its folder: {shown}"
            )
        } else {
            format!("this is the only way, so a reply without a tag takes it: {only}")
        };
        self.add(name, place.entry, "RF601", Severity::Info, message);
    }
}

// The checks of what a text shows agents to write: tags that will be refused, misspelt ones, and prompts without any.
//
// Agents write what they are shown, so that a tag that is certain to be refused is an error. One in code or in a
// comment may only explain how tags are written: it is a warning.

impl FolderDiagnostics<'_> {
    /// Reports misspelt tags, and prompts that do not say how to end.
    fn tags(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            // Tags mean nothing where the answer is an `output`, or where no reply is searched for them.
            if prompt.frontmatter.output.is_none() && !prompt.frontmatter.policy.force_implicit {
                self.misspelt(name, prompt);
            }
        }
        // What a text only mentions may be no state.
        let mut entered: BTreeSet<&StateName> =
            workflow_map.transitions().flat_map(Transition::states).collect();
        entered.insert(&workflow_map.entry);
        for (name, prompt) in workflow_map.prompts() {
            if entered.contains(name) && prompt.is_without_end() {
                let message = "the text shows no tag and has no policy, so agents do not know how to end; show them a tag, such as <result>…</result>, or list `allowed_transitions`";
                self.warning(name, SourcePlace::START, "RF105", message);
            }
        }
    }

    /// Warns of frontmatter that is a part of a prompt.
    fn lost_frontmatter(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            if let Some((message, place)) = &prompt.lost_frontmatter {
                self.warning(name, *place, "RF108", message.clone());
            }
        }
    }

    fn misspelt(&mut self, name: &StateName, prompt: &FolderPrompt) {
        for (tag, place) in &prompt.misspelt {
            let is_state =
                tag.encloses.as_ref().is_some_and(|state| self.source.check(state).is_ok());
            // Such a tag counts as none, and a reply without one takes the only way.
            let implied = prompt.frontmatter.policy.implied().filter(|_| !prompt.is_open());
            let instead =
                implied.map(|only| format!("; a reply with it takes the only way, {only}"));
            let message =
                format!("the text shows {}{}", tag.mistake, instead.as_deref().unwrap_or(""));
            if is_state && instead.is_none() {
                self.error(name, *place, "RF104", message);
            } else {
                self.warning(name, *place, "RF104", message);
            }
        }
    }
}

impl FolderPrompt {
    /// Returns whether nothing tells an agent how to end or go on, as far as is known: a placeholder may.
    fn is_without_end(&self) -> bool {
        let is_known = |name: &str| ["input", RUN_ID].contains(&name) || RESERVED.contains(&name);
        let shows_nothing = !self.shows_tags && self.misspelt.is_empty() && self.edges.is_empty();
        shows_nothing
            && self.errors.is_empty()
            && self.places.policy.is_none()
            && self.frontmatter.output.is_none()
            && self.placeholders.iter().all(|(name, _)| is_known(name))
    }
}

impl FolderDiagnostics<'_> {
    /// Reports the tags in all texts that will be refused.
    fn shown_tags(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            // The only entry of the policy is taken, regardless of the tags in a reply.
            if prompt.frontmatter.policy.force_implicit {
                continue;
            }
            for shown in &prompt.shown {
                self.shown_tag(name, prompt, shown);
            }
            self.shown_forks(name, prompt);
        }
        for (name, script) in workflow_map.scripts() {
            for shown in &script.shown {
                self.tag_of_script(name, script, shown);
            }
        }
    }

    /// Warns of a tag in a script that will be refused. It is not an error, because the script may never print it.
    fn tag_of_script(&mut self, name: &StateName, script: &FolderPrompt, shown: &ShownTag) {
        if let Some(misread) = shown.misread.filter(|_| is_for_shell(name)) {
            let message = format!("the script has a <{}> {misread}", shown.tag);
            return self.warning(name, shown.place, "RF106", message);
        }
        let transition = match &shown.transition {
            Ok(transition) => transition,
            Err(error) => {
                let message = format!("the script has a tag that is refused: {error}");
                return self.warning(name, shown.place, "RF106", message);
            }
        };
        self.shown_crossing(name, script, shown, transition);
        if let Some((code, why)) = self.missing_state(transition) {
            self.warning(name, shown.place, code, format!("the script has {why}"));
        }
    }

    fn shown_tag(&mut self, name: &StateName, prompt: &FolderPrompt, shown: &ShownTag) {
        if prompt.frontmatter.output.is_some() {
            let message =
                "the text shows a tag, and tags have no meaning where the answer is an `output`";
            self.warning(name, shown.place, "RF204", message);
            return;
        }
        let transition = match &shown.transition {
            Ok(transition) => transition,
            Err(error) => return self.refused(name, prompt, shown, error),
        };
        let is_allowed = prompt.frontmatter.policy.allows(transition);
        if is_allowed {
            self.shown_crossing(name, prompt, shown, transition);
        }
        if is_allowed && !prompt.is_open() {
            return;
        }
        match self.missing_state(transition) {
            Some((code, why)) if is_allowed || !shown.is_quoted => {
                self.at_tag(name, shown, code, format!("the text shows {why}"));
            }
            _ if is_allowed => {}
            _ => {
                let nearest = prompt.frontmatter.policy.nearest(transition);
                let nearest =
                    nearest.map(|entry| format!(": it has {}", unescaped(&entry.to_string())));
                let message = format!(
                    "the text shows {}, which the policy above does not allow{}; a reply with it is refused",
                    unescaped(&transition.to_string()),
                    nearest.unwrap_or_default()
                );
                self.warning(name, shown.place, "RF204", message);
            }
        }
    }

    /// Reports a tag whose pieces make no transition. It is an error only around a state, or prose that speaks of
    /// tags would be one.
    fn refused(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        shown: &ShownTag,
        error: &InvalidTransition,
    ) {
        let is_around_state =
            shown.encloses.as_ref().is_some_and(|state| self.why_no_state(state).is_none());
        // The text of a question is not a state. Nothing says where the agent continues after the question.
        let is_around_state = is_around_state
            || matches!(
                error,
                InvalidTransition::UnexpectedAttribute { tag: TagName::Ask, .. }
                    | InvalidTransition::MissingAttribute { tag: TagName::Ask, .. }
            );
        let is_fork_beside_goto = shown.tag == TagName::Fork
            && prompt.shown.iter().any(|other| other.tag == TagName::Goto);
        let message = format!("the text shows a tag that is refused in a reply: {error}");
        if is_around_state && !is_fork_beside_goto {
            self.at_tag(name, shown, "RF106", message);
        } else {
            self.warning(name, shown.place, "RF106", message);
        }
    }

    /// Warns of forks in one text that lead the forking agent to different states. A policy that lists them may mean
    /// them as alternatives.
    fn shown_forks(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let forks = prompt.shown.iter().filter_map(|shown| match &shown.transition {
            Ok(fork @ Transition::Fork { next, .. }) => Some((fork, next, shown.place)),
            _ => None,
        });
        let policy = &prompt.frontmatter.policy;
        let are_alternatives = !policy.is_open() && !policy.many_forks;
        let mut forks = forks.filter(|(fork, ..)| !(are_alternatives && policy.allows(fork)));
        let Some((_, first, _)) = forks.next() else { return };
        if let Some((_, other, place)) = forks.find(|(_, next, _)| *next != first) {
            let message = format!(
                "the text shows forks that lead this agent to {first} and to {other}; one reply leads it to one state, so give them the same next=\"…\""
            );
            self.warning(name, place, "RF207", message);
        }
    }

    /// Reports a problem of a tag: as an error, unless it is quoted.
    fn at_tag(&mut self, name: &StateName, shown: &ShownTag, code: &'static str, message: String) {
        if shown.is_quoted {
            self.warning(name, shown.place, code, message);
        } else {
            self.error(name, shown.place, code, message);
        }
    }

    /// Returns the code and the message if a state that a tag leads to cannot be entered.
    fn missing_state(&self, transition: &Transition) -> Option<(&'static str, String)> {
        let (state, why) =
            transition.states().find_map(|state| Some((state, self.why_no_state(state)?)))?;
        let is_ambiguous = frontmatter::ambiguity(state, self.source).is_some();
        let tag = unescaped(&transition.to_string());
        let code = if is_ambiguous { "RF107" } else { "RF103" };
        Some((code, format!("{tag}, but {state}: {why}")))
    }

    /// Returns why a state cannot be entered, if it cannot.
    fn why_no_state(&self, state: &StateName) -> Option<String> {
        if let Some(why) = frontmatter::ambiguity(state, self.source) {
            return Some(why);
        }
        match self.source.check(state) {
            Err(error) => Some(why(&error)),
            Ok(()) if !is_state(state, self.source) => Some(no_state().to_owned()),
            Ok(()) => None,
        }
    }
}

/// Returns whether a script is probably one of a shell, by its name.
fn is_for_shell(name: &StateName) -> bool {
    let ending = name.as_str().rsplit_once('.').map(|(_, ending)| ending);
    ending.is_none_or(|ending| matches!(ending, "sh" | "bash"))
}

/// Returns a tag as people read it, without the entities of its attributes.
fn unescaped(tag: &str) -> String {
    tag.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&")
}

#[cfg(test)]
mod tests;
