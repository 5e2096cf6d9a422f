//! The states in which agents begin, the variables that they are born with, and the settings for their whole life.
//!
//! The text of a state without policy may ask for any agent in the states that it mentions. What a graph spawns an
//! agent with, and the entries of a list in a file, which may be objects, are unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::FolderDiagnostics;
use crate::graph::agents::spawned;
use crate::output::RESULT;
use crate::program::walk::started;
use crate::prompt::check::joins::filled_by;
use crate::prompt::workflow_map::{
    FolderGraph, FolderProgram, FolderPrompt, FolderState, WorkflowMap,
};
use raymond_model::agent::OCCASIONAL_PLACEHOLDERS;
use raymond_model::id::StateName;
use raymond_model::transition::Transition;

/// The known values that a state is given.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way into the state")]
pub(super) struct GivenVariables<'a> {
    /// The variables of the tags that lead there, and those of the agents that come there.
    pub(super) variables: BTreeSet<&'a str>,
    /// The variables that list entries fill.
    pub(super) of_lists: BTreeSet<String>,
    /// True if a call returns to the state.
    pub(super) returned_to: bool,
    /// True if something else than a question or a return leads to the state, or gives it an `input`.
    pub(super) is_entered: bool,
    /// True if the state has waited for agents, or is entered because its join was not met.
    pub(super) joined: bool,
    /// True if the state may be given more.
    pub(super) unknown: bool,
}

/// The known values of each state.
pub(super) type GivenToStates<'a> = BTreeMap<&'a StateName, GivenVariables<'a>>;

impl FolderDiagnostics<'_> {
    /// Warns of a budget in a state in which no agent begins, and that no call leads to.
    pub(super) fn budgets(&mut self, workflow_map: &WorkflowMap) {
        let births = births(workflow_map);
        let called = called(workflow_map);
        let is_used = |name: &StateName| births.contains_key(name) || called.contains(name);
        for (name, prompt) in workflow_map.prompts().filter(|(name, _)| !is_used(name)) {
            if let Some(place) = prompt.places.budget {
                let message = "this budget has no effect, because no agent begins here and no call leads here: give it to the state in which the agent begins or that is called, or fork or call this one";
                self.warning(name, place, "RF307", message.to_owned());
            }
        }
    }
}

/// Returns the states that known calls lead to. What a state without policy mentions may be forked as well, so that is
/// among the births.
fn called(workflow_map: &WorkflowMap) -> BTreeSet<&StateName> {
    let known =
        workflow_map.texts().flat_map(|(_, prompt)| known_transitions(prompt, workflow_map));
    known
        .filter_map(|transition| match transition {
            Transition::Call { target, .. } | Transition::Function { target, .. } => Some(target),
            Transition::Goto { .. }
            | Transition::Reset { .. }
            | Transition::Fork { .. }
            | Transition::Ask { .. }
            | Transition::Result { .. } => None,
        })
        .collect()
}

/// Returns the states in which agents begin, each with the variables that they are born with there.
pub(super) fn births(workflow_map: &WorkflowMap) -> GivenToStates<'_> {
    let mut births = GivenToStates::new();
    births.entry(&workflow_map.entry).or_default().variables.insert("input");
    for (_, prompt) in workflow_map.texts() {
        for transition in known_transitions(prompt, workflow_map) {
            let Transition::Fork { target, each, .. } = transition else { continue };
            let born = births.entry(target).or_default();
            born.variables.extend(variables_of(transition, prompt));
            if let Some(each) = each {
                let filled = filled_by(transition);
                born.unknown |= filled.is_none();
                born.variables.insert(&each.name);
                born.of_lists.extend(filled.into_iter().flatten());
            }
        }
        if prompt.is_open() {
            let targets: BTreeSet<_> =
                prompt.ways.iter().flat_map(|way| way.transition.states()).collect();
            for name in prompt.mentioned.iter().filter(|name| !targets.contains(name)) {
                births.entry(name).or_default().unknown = true;
            }
        }
    }
    let key = |name: &StateName| workflow_map.states.get_key_value(name).map(|(name, _)| name);
    for state in workflow_map.states.values() {
        match state {
            FolderState::Graph(FolderGraph { graph: Some(program), .. }) => {
                for name in spawned(program).iter().filter_map(key) {
                    births.entry(name).or_default().unknown = true;
                }
            }
            FolderState::Program(FolderProgram { program: Some(program), .. }) => {
                for name in started(program).iter().filter_map(key) {
                    births.entry(name).or_default().variables.insert("input");
                }
            }
            _ => {}
        }
    }
    births
}

/// Gives each state the variables of the agents that begin or come there. An agent has its own in all its states.
pub(super) fn add_own_variables<'a>(workflow_map: &'a WorkflowMap, given: &mut GivenToStates<'a>) {
    for (first, own) in births(workflow_map) {
        let begins = given.entry(first).or_default();
        begins.variables.extend(&own.variables);
        begins.of_lists.extend(own.of_lists.iter().cloned());
        begins.unknown |= own.unknown;
        begins.is_entered = true;
        let stays = |name: &str| !OCCASIONAL_PLACEHOLDERS.contains(&name);
        for name in workflow_map.reached_by_one_agent(first) {
            let given = given.entry(name).or_default();
            given.variables.extend(own.variables.iter().copied().filter(|name| stays(name)));
            given.of_lists.extend(own.of_lists.iter().filter(|name| stays(name)).cloned());
            given.unknown |= own.unknown;
        }
    }
}

/// Returns the known transitions of a state: its ways, and the tags that its text or its evaluator's shows and the
/// policy allows.
pub(super) fn known_transitions<'a>(
    prompt: &'a FolderPrompt,
    workflow_map: &'a WorkflowMap,
) -> impl Iterator<Item = &'a Transition> {
    let evaluator = prompt.evaluator().and_then(|name| workflow_map.evaluators.get(name));
    let shown = prompt.shown.iter().chain(evaluator.into_iter().flat_map(|prompt| &prompt.shown));
    let shown = shown.filter_map(|shown| shown.transition.as_ref().ok());
    // The ways have the states of other folders under names of their own.
    let shown = shown.filter(|shown| shown.crossings().next().is_none());
    let ways = prompt.ways.iter().map(|way| &way.transition);
    ways.chain(shown.filter(|shown| is_allowed(prompt, shown)))
}

/// Returns the variables that a transition carries, with the answer that decided it.
pub(super) fn variables_of<'a>(
    transition: &'a Transition,
    prompt: &FolderPrompt,
) -> impl Iterator<Item = &'a str> {
    let answer = prompt.frontmatter.output.as_ref().map(|_| RESULT);
    transition.variables().keys().map(String::as_str).chain(answer)
}

fn is_allowed(prompt: &FolderPrompt, transition: &Transition) -> bool {
    prompt.is_open() || prompt.frontmatter.policy.allows(transition)
}
