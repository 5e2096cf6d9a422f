//! The checks of what a text shows agents to write: tags that will be refused, misspelt ones, and prompts without any.
//!
//! Agents write what they are shown, so that a tag that is certain to be refused is an error. One in code or in a
//! comment may only explain how tags are written: it is a warning.

use std::collections::BTreeSet;

use super::FolderDiagnostics;
use super::files::{no_state, why};
use crate::position::SourcePlace;
use crate::prompt::frontmatter;
use crate::prompt::step::{RESERVED, RUN_ID};
use crate::prompt::workflow_map::{FolderPrompt, ShownTag, WorkflowMap};
use crate::source::is_state;
use raymond_model::id::StateName;
use raymond_model::transition::{InvalidTransition, TagName, Transition};

impl FolderDiagnostics<'_> {
    /// Reports misspelt tags, and prompts that do not say how to end.
    pub(super) fn tags(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            // Tags mean nothing where the answer is an `output`, or where no reply is searched for them.
            if prompt.frontmatter.output.is_none() && !prompt.frontmatter.policy.force_implicit {
                self.misspelt(name, prompt);
            }
        }
        // What a text only mentions may be no state.
        let mut entered: BTreeSet<&StateName> =
            workflow_map.ways().flat_map(Transition::states).collect();
        entered.insert(&workflow_map.entry);
        for (name, prompt) in workflow_map.prompts() {
            if entered.contains(name) && prompt.is_without_end() {
                let message = "the text shows no tag and has no policy, so agents do not know how to end; show them a tag, such as <result>…</result>, or list `allowed_transitions`";
                self.warning(name, SourcePlace::START, "RF105", message.to_owned());
            }
        }
    }

    /// Warns of frontmatter that is a part of a prompt.
    pub(super) fn lost_frontmatter(&mut self, workflow_map: &WorkflowMap) {
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
        let shows_nothing = !self.shows_tags && self.misspelt.is_empty() && self.ways.is_empty();
        shows_nothing
            && self.errors.is_empty()
            && self.places.policy.is_none()
            && self.frontmatter.output.is_none()
            && self.placeholders.iter().all(|(name, _)| is_known(name))
    }
}

impl FolderDiagnostics<'_> {
    /// Reports the tags in all texts that will be refused.
    pub(super) fn shown_tags(&mut self, workflow_map: &WorkflowMap) {
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
        self.shown_crossing(name, script, (shown, transition));
        let missing =
            transition.states().find_map(|state| Some((state, self.why_no_state(state)?)));
        if let Some((state, why)) = missing {
            let tag = unescaped(&transition.to_string());
            let message = format!("the script has {tag}, but {state}: {why}");
            let is_ambiguous = frontmatter::ambiguity(state, self.source).is_some();
            let code = if is_ambiguous { "RF107" } else { "RF103" };
            self.warning(name, shown.place, code, message);
        }
    }

    fn shown_tag(&mut self, name: &StateName, prompt: &FolderPrompt, shown: &ShownTag) {
        if prompt.frontmatter.output.is_some() {
            let message =
                "the text shows a tag, and tags have no meaning where the answer is an `output`";
            self.warning(name, shown.place, "RF204", message.to_owned());
            return;
        }
        let transition = match &shown.transition {
            Ok(transition) => transition,
            Err(error) => return self.refused(name, prompt, shown, error),
        };
        let is_allowed = prompt.frontmatter.policy.allows(transition);
        if is_allowed {
            self.shown_crossing(name, prompt, (shown, transition));
        }
        if is_allowed && !prompt.is_open() {
            return;
        }
        let missing =
            transition.states().find_map(|state| Some((state, self.why_no_state(state)?)));
        match missing {
            Some((state, why)) if is_allowed || !shown.is_quoted => {
                let tag = unescaped(&transition.to_string());
                let message = format!("the text shows {tag}, but {state}: {why}");
                let is_ambiguous = frontmatter::ambiguity(state, self.source).is_some();
                self.at_tag(name, shown, if is_ambiguous { "RF107" } else { "RF103" }, message);
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
    pub(super) fn at_tag(
        &mut self,
        name: &StateName,
        shown: &ShownTag,
        code: &'static str,
        message: String,
    ) {
        if shown.is_quoted {
            self.warning(name, shown.place, code, message);
        } else {
            self.error(name, shown.place, code, message);
        }
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
pub(super) fn unescaped(tag: &str) -> String {
    tag.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&")
}
