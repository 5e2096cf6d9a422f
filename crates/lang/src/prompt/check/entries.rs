//! Checks the entries of policies against the text.
//!
//! It finds those that the text never mentions, forks that do not fit together, and single ones that need no tag.

use super::FolderDiagnostics;
use crate::diagnostic::Severity;
use crate::prompt::scopes::{lacking_input, with_required_inputs};
use crate::prompt::workflow_map::{FolderPrompt, WorkflowMap};
use raymond_model::id::StateName;
use raymond_model::transition::{TagName, Transition};

impl FolderDiagnostics<'_> {
    /// Reports the entries of all policies that do not fit their texts.
    pub(super) fn entries(&mut self, workflow_map: &WorkflowMap) {
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
        let mut told: Vec<&StateName> = Vec::new();
        for (entry, place) in allowed.iter().zip(&prompt.places.entries) {
            let Some(target) = entry.target() else { continue };
            let words = [target.as_str(), target.stem()];
            // A name may have a blank.
            let is_told = |word: &&str| {
                prompt.words.contains(*word)
                    || prompt.shown.iter().any(|tag| tag.encloses.as_ref() == Some(target))
            };
            if words.iter().any(is_told) || told.contains(&target) {
                continue;
            }
            told.push(target);
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
        self.add(name, place.entry, "RF601", (Severity::Info, message));
    }
}
