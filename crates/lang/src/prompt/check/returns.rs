//! Checks that calls come to a result as far as the texts tell.
//!
//! A state without policy may give a result whatever its text says, so that these are warnings. Calls that cannot
//! return at all are among the checks of ends.

use super::FolderDiagnostics;
use crate::prompt::workflow_map::{FolderPrompt, FolderState, WorkflowMap};
use raymond_model::transition::{TagName, Transition};

impl FolderDiagnostics<'_> {
    /// Warns of calls whose target leads to no state that speaks of a result.
    pub(super) fn returns(&mut self, workflow_map: &WorkflowMap) {
        let ends = workflow_map.states.iter().filter(|(_, state)| may_return(state));
        let returning = workflow_map.flow_map().leading_to(ends.map(|(name, _)| name));
        let told = |diagnostics: &[super::Diagnostic], path: &str, place: super::SourcePlace| {
            diagnostics.iter().any(|one| {
                one.path == path
                    && (one.line, one.column) == (place.line, place.column)
                    && matches!(one.code, "RF301" | "RF302")
            })
        };
        for (name, transition, place) in workflow_map.steps() {
            let (Transition::Call { target, .. } | Transition::Function { target, .. }) =
                transition
            else {
                continue;
            };
            let place = place.target.unwrap_or(place.entry);
            if returning.contains(target)
                || !workflow_map.is_usable(target)
                || told(&self.diagnostics, &self.path_of(name), place)
            {
                continue;
            }
            let message = format!(
                "this {} of {target} comes to no result: no text or policy from there on has a <result>; show one in a state that it leads to",
                transition.tag()
            );
            self.warning(name, place, "RF308", message);
        }
    }
}

/// Returns whether a state may give a result, as far as its policy and its text tell.
fn may_return(state: &FolderState) -> bool {
    let FolderState::Prompt(prompt) = state else { return true };
    let is_told = |prompt: &FolderPrompt| {
        let shown = prompt.shown.iter().map(|shown| shown.tag);
        shown
            .chain(prompt.misspelt.iter().map(|_| TagName::Result))
            .any(|tag| tag == TagName::Result)
            || prompt.words.contains("result")
    };
    if !prompt.is_open() {
        return prompt.may_end();
    }
    // A text without any tag tells nothing.
    !prompt.errors.is_empty()
        || prompt.frontmatter.output.is_some()
        || prompt.ways.is_empty()
        || prompt.shows_filled_tags
        || is_told(prompt)
}
