//! The checks of what a text shows agents to write: misspelt tags, and prompts without any.

use std::collections::BTreeSet;

use super::FolderDiagnostics;
use crate::position::SourcePlace;
use crate::prompt::step::{RESERVED, RUN_ID};
use crate::prompt::workflow_map::{FolderPrompt, WorkflowMap};
use raymond_model::id::StateName;
use raymond_model::transition::Transition;

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
