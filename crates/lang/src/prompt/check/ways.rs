//! Checks the ways from state to state.
//!
//! It finds where policies lead, and whether they agree with themselves.

use super::FolderDiagnostics;
use super::files::{no_state, why};
use crate::position::SourcePlace;
use crate::prompt::workflow_map::{
    FolderPrompt, FolderState, TransitionEdge, TransitionOrigin, WorkflowMap,
};
use crate::prompt::{evaluator, frontmatter};
use raymond_model::id::{StateKind, StateName};
use raymond_model::policy::TransitionPolicy;
use raymond_model::transition::Transition;

impl FolderDiagnostics<'_> {
    /// Reports the problems of all states' transitions.
    pub(super) fn ways(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            self.policy(name, prompt, workflow_map);
            self.evaluator(name, prompt, workflow_map);
            for way in prompt.ways.iter().filter(|way| way.origin != TransitionOrigin::Text) {
                self.names(name, way, workflow_map);
            }
        }
    }

    /// Checks the files that a way names.
    fn names(&mut self, name: &StateName, way: &TransitionEdge, workflow_map: &WorkflowMap) {
        let TransitionEdge { transition, place, .. } = way;
        let named = [
            (transition.target(), place.target),
            (transition.continuation(), place.continuation),
            (transition.timeout_state(), place.late),
        ];
        for (target, place) in named {
            let Some(target) = target else { continue };
            if let Some(why) = frontmatter::ambiguity(target, self.source) {
                let place = place.unwrap_or(way.place.entry);
                self.error(name, place, "RF107", format!("{target}: {why}"));
                continue;
            }
            let why = match workflow_map.states.get(target) {
                Some(FolderState::Unreadable(error)) => why(error),
                Some(FolderState::Other) => no_state().to_owned(),
                Some(FolderState::Beyond(path, state)) => {
                    let place = place.unwrap_or(way.place.entry);
                    self.crossing(name, place, (path, state));
                    continue;
                }
                _ => continue,
            };
            let place = place.unwrap_or(way.place.entry);
            self.error(name, place, "RF101", format!("{target}: {why}"));
        }
    }

    fn policy(&mut self, name: &StateName, prompt: &FolderPrompt, workflow_map: &WorkflowMap) {
        let TransitionPolicy { allowed, .. } = &prompt.frontmatter.policy;
        let Some(place) = prompt.places.policy.filter(|_| prompt.errors.is_empty()) else { return };
        let usable =
            |way: &TransitionEdge| way.transition.states().all(|name| workflow_map.is_usable(name));
        if allowed.is_empty() {
            let message = "an empty list allows every transition, so no agent is ever reminded; list what is allowed, or leave the key out";
            self.warning(name, place, "RF203", message.to_owned());
        } else if !prompt.ways.iter().filter(|way| !way.is_of_join()).any(usable) {
            let message = "this policy allows nothing: each of its entries names a missing file";
            self.error(name, place, "RF201", message.to_owned());
        }
        if prompt.frontmatter.output.is_some() {
            return;
        }
        for (index, (entry, place)) in allowed.iter().zip(&prompt.places.entries).enumerate() {
            self.inputs_of_entry(name, prompt, (entry, place.entry));
            let is_said_by = |other: usize| {
                let of_two_alike_the_first_stays = other < index || !covers(entry, &allowed[other]);
                other != index && covers(&allowed[other], entry) && of_two_alike_the_first_stays
            };
            if (0..allowed.len()).any(is_said_by) {
                let message = format!("another entry already allows {entry}; remove this one");
                self.warning(name, place.entry, "RF202", message);
            }
        }
    }

    /// Checks the prompt of an evaluator.
    fn evaluator(&mut self, name: &StateName, prompt: &FolderPrompt, workflow_map: &WorkflowMap) {
        let (Some(file), Some(place)) = (prompt.evaluator(), prompt.places.evaluator) else {
            return;
        };
        let shown = |(name, _): &(String, SourcePlace)| {
            evaluator::EVALUATOR_PLACEHOLDERS.contains(&&**name)
        };
        match (workflow_map.evaluators.get(file), self.source.read(file)) {
            (None, Err(error)) => {
                self.error(name, place, "RF102", format!("{file}: {}", why(&error)));
            }
            _ if StateKind::of(file) != Some(StateKind::Prompt) => {
                let message = format!("{file}: an evaluator is asked by a prompt, NAME.md");
                self.error(name, place, "RF102", message);
            }
            (Some(evaluator), _) if !evaluator.placeholders.iter().any(shown) => {
                let message =
                    "an evaluator sees only its prompt; show it {{output}}, the reply it judges";
                self.warning(file, SourcePlace::START, "RF402", message.to_owned());
            }
            _ => {}
        }
    }
}

/// Returns whether a policy of only this entry allows another transition.
fn covers(entry: &Transition, other: &Transition) -> bool {
    TransitionPolicy { allowed: vec![entry.clone()], ..TransitionPolicy::default() }.allows(other)
}
