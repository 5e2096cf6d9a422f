//! The checks that workflows can end, and the checks of the ways from state to state.

use std::collections::BTreeSet;

use raymond_model::id::{StateKind, StateName};
use raymond_model::policy::TransitionPolicy;
use raymond_model::transition::{TagName, Transition};

use super::FolderDiagnostics;
use super::files::{no_state, why};
use crate::diagnostic::Diagnostic;
use crate::prompt::evaluator::EntryPlace;
use crate::prompt::workflow_map::{
    FolderPrompt, FolderState, TransitionEdge, TransitionOrigin, WorkflowMap, call,
};
use crate::prompt::{evaluator, frontmatter};
use crate::source::SourcePlace;

// The checks that workflows can end: calls return, forks have a bound, agents come to a result.
//
// The checks allow for the unknown: a state without a policy may give a result, and so may a graph or a missing file.
// Therefore each problem is real no matter what the agents answer. If the texts show no result for a call, that is only
// a warning, because a state without a policy may give a result that its text does not mention.
//
// A check of one folder assumes that a state of another folder may do anything. A check of all folders knows what it
// does.

/// A set of states.
type StateSet<'a> = BTreeSet<&'a StateName>;

impl FolderDiagnostics<'_> {
    /// Reports the states that cannot end. A budget bounds a run, so that only calls are checked with one.
    pub(super) fn ends(&mut self, workflow_map: &WorkflowMap) {
        let found = self.diagnostics.len();
        self.calls(workflow_map);
        if self.has_budget {
            return;
        }
        self.forks(workflow_map);
        if self.diagnostics[found..].iter().all(|diagnostic| diagnostic.code == "RF302") {
            self.loops(workflow_map);
        }
    }

    /// Reports calls whose target cannot give a result to its caller.
    pub(super) fn calls(&mut self, workflow_map: &WorkflowMap) {
        let returning = workflow_map.states_where(&StateSet::new(), may_return);
        let resetting = workflow_map.states_where(&StateSet::new(), may_reset);
        for (name, transition, place) in workflow_map.steps() {
            let Some((target, _)) = call(transition) else { continue };
            if returning.contains(target) || !workflow_map.is_usable(target) {
                continue;
            }
            let tag = transition.tag();
            let place = place.target.unwrap_or(place.entry);
            if resetting.contains(target) {
                let message = format!(
                    "this {tag} of {target} never comes back: every way back passes a reset, which drops the pending return; use goto, or a reset with keep=\"stack\", on the way to the result"
                );
                self.warning(name, place, "RF302", message);
            } else {
                let message = format!(
                    "this {tag} of {target} never comes back: no way from there leads to a result; allow {{ tag: result }} in a state it leads to"
                );
                self.error(name, place, "RF301", message);
            }
        }
    }

    /// Reports forks in a loop that nothing leaves, and agents that fork agents like themselves.
    pub(super) fn forks(&mut self, workflow_map: &WorkflowMap) {
        let forking: StateSet<'_> = workflow_map
            .steps()
            .filter(|(_, transition, _)| transition.is_fork())
            .map(|(name, ..)| name)
            .collect();
        if forking.is_empty() {
            return;
        }
        let map = workflow_map.flow_map();
        let (loops, to_fork) = (map.loops(), map.leading_to(forking));
        let without = workflow_map.states.keys().filter(|name| !to_fork.contains(name)).collect();
        let bounded = workflow_map.states_where(&without, may_end_wholly);
        for (name, transition, place) in workflow_map.steps() {
            let Transition::Fork { target, next, .. } = transition else { continue };
            let again = |state| loops.leads_back(state, name);
            let breeds = again(target);
            if (breeds || again(next)) && !bounded.contains(name) {
                let message = format!(
                    "{name} forks {target} again and again, and no way out of this loop does not fork; allow {{ tag: result }} or a way on in it, or set a budget in raymond.yaml"
                );
                self.warning(name, place.entry, "RF303", message);
            } else if breeds {
                let message = format!(
                    "agents that are forked here in {target} may come to {name} and fork again, so their number keeps growing; let them come to a result without forking, or set a budget in raymond.yaml"
                );
                self.warning(name, place.entry, "RF305", message);
            }
        }
    }

    /// Reports a loop through several folders that nothing leaves.
    pub(super) fn loops_through_folders(&mut self, across: &WorkflowMap) {
        let folder = |name: &StateName| name.in_other_folder().map(|(path, _)| path);
        let bounded = across.states_where(&StateSet::new(), may_end_wholly);
        let loops = across.flow_map().loops();
        let is_crossing = |name: &StateName, edge: &TransitionEdge| {
            let mut next = edge.transition.states();
            next.any(|next| folder(next) != folder(name) && loops.leads_back(next, name))
        };
        let endless = across.prompts().filter(|(name, _)| !bounded.contains(name)).find_map(
            |(name, prompt)| {
                Some((name, prompt.edges.iter().find(|edge| is_crossing(name, edge))?))
            },
        );
        if let Some((name, edge)) = endless {
            let place = edge.place.target.unwrap_or(edge.place.entry);
            let message = "an agent that comes here goes round through several folders and never ends: no way leads to a result; allow { tag: result } in a state of this loop, or set a budget in raymond.yaml";
            self.warning(name, place, "RF304", message);
        }
    }

    /// Reports loops that nothing leaves.
    fn loops(&mut self, workflow_map: &WorkflowMap) {
        let bounded = workflow_map.states_where(&StateSet::new(), may_end_wholly);
        let loops = workflow_map.flow_map().loops();
        let endless = workflow_map.prompts().find(|(name, prompt)| {
            let mut next = prompt.edges.iter().flat_map(|edge| edge.transition.states());
            !bounded.contains(name) && next.any(|next| loops.leads_back(next, name))
        });
        if let Some((name, prompt)) = endless {
            let place = prompt.edges.first().map(|edge| edge.place.entry);
            let message = "an agent that comes here never ends: no way leads to a result; allow { tag: result } in a state of this loop, or set a budget in raymond.yaml";
            let place = place.unwrap_or(SourcePlace::START);
            self.warning(name, place, "RF304", message);
        }
    }
}

impl WorkflowMap {
    /// Returns all known transitions, with their states and places.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&StateName, &Transition, EntryPlace)> {
        self.prompts().flat_map(|(name, prompt)| {
            prompt.edges.iter().map(move |edge| (name, &edge.transition, edge.place))
        })
    }

    /// Returns the smallest set of states that satisfy a condition, including `given`.
    fn states_where<'a>(
        &'a self,
        given: &StateSet<'a>,
        holds: impl Fn(&Transition, &dyn Fn(&StateName) -> bool) -> bool,
    ) -> StateSet<'a> {
        let unknown = self.states.keys().filter(|name| !self.is_known(name));
        let mut states: StateSet<'_> = unknown.chain(given.iter().copied()).collect();
        let map = self.flow_map();
        // The last states come first: mostly, what holds for a state depends on the states after it.
        let mut to_look_at: Vec<(&StateName, &FolderPrompt)> = self.prompts().collect();
        while let Some((name, prompt)) = to_look_at.pop() {
            let already = |name: &StateName| states.contains(name) || !self.is_known(name);
            if states.contains(name)
                || !prompt.edges.iter().any(|edge| holds(&edge.transition, &already))
            {
                continue;
            }
            states.insert(name);
            to_look_at.extend(map.before(name).filter_map(|name| Some((name, self.prompt(name)?))));
        }
        states
    }

    /// Returns whether all transitions that an agent may take in a state are known.
    fn is_known(&self, name: &StateName) -> bool {
        self.prompt(name).is_some_and(|prompt| !prompt.is_open())
    }

    fn prompt(&self, name: &StateName) -> Option<&FolderPrompt> {
        self.states.get(name).and_then(|state| state.prompt())
    }
}

/// Returns whether a transition leads to a result in the same call, given the states that do.
fn may_return(transition: &Transition, does: &dyn Fn(&StateName) -> bool) -> bool {
    match transition {
        Transition::Result { .. } => true,
        call if call.is_call() => call.states().all(does),
        other if other.drops_stack() => false,
        other => other.next_state().map_or_else(|| other.states().any(does), does),
    }
}

/// Returns whether a transition leads to a reset, given the states that do.
fn may_reset(transition: &Transition, does: &dyn Fn(&StateName) -> bool) -> bool {
    match transition {
        reset if reset.drops_stack() => true,
        Transition::Fork { next, .. } => does(next),
        other => other.states().any(does),
    }
}

/// Returns whether a transition leads to the end of the agent and of all it forks, given the states that do.
fn may_end_wholly(transition: &Transition, does: &dyn Fn(&StateName) -> bool) -> bool {
    match transition {
        Transition::Ask { .. } => transition.states().any(does),
        other => other.states().all(does),
    }
}

impl FolderDiagnostics<'_> {
    /// Warns of calls whose target leads to no state that speaks of a result.
    pub(super) fn returns(&mut self, workflow_map: &WorkflowMap) {
        let ends = workflow_map.states.iter().filter(|(_, state)| may_tell_result(state));
        let returning = workflow_map.flow_map().leading_to(ends.map(|(name, _)| name));
        let is_reported = |diagnostics: &[Diagnostic], path: &str, place: SourcePlace| {
            diagnostics.iter().any(|found| {
                found.path == path && found.at() == place && matches!(found.code, "RF301" | "RF302")
            })
        };
        for (name, transition, place) in workflow_map.steps() {
            let Some((target, _)) = call(transition) else { continue };
            let place = place.target.unwrap_or(place.entry);
            if returning.contains(target)
                || !workflow_map.is_usable(target)
                || is_reported(&self.diagnostics, &self.path_of(name), place)
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
fn may_tell_result(state: &FolderState) -> bool {
    let FolderState::Prompt(prompt) = state else { return true };
    if !prompt.is_open() {
        return prompt.may_end();
    }
    // A text without any tag tells nothing.
    !prompt.errors.is_empty()
        || prompt.frontmatter.output.is_some()
        || prompt.edges.is_empty()
        || prompt.shows_filled_tags
        || !prompt.misspelt.is_empty()
        || prompt.shown.iter().any(|shown| shown.tag == TagName::Result)
        || prompt.words.contains("result")
}

impl FolderDiagnostics<'_> {
    /// Reports calls that never come back, and forks and loops without an end, over all folders. The map of each
    /// single folder has been checked before.
    pub(super) fn across(&mut self, across: &WorkflowMap) {
        let mut known = std::mem::take(&mut self.diagnostics);
        self.calls(across);
        if !self.has_budget {
            self.forks(across);
        }
        self.returns(across);
        self.diagnostics
            .retain(|diagnostic| !known.iter().any(|other| is_same_finding(diagnostic, other)));
        known.append(&mut self.diagnostics);
        self.diagnostics = known;
        if !self.has_budget {
            self.loops_through_folders(across);
        }
    }
}

/// Returns whether two diagnostics say where the same way does not end.
fn is_same_finding(left: &Diagnostic, right: &Diagnostic) -> bool {
    let is_of_ends = |code| matches!(code, "RF301" | "RF302" | "RF303" | "RF305" | "RF308");
    is_of_ends(right.code) && left.path == right.path && left.at() == right.at()
}

// Checks the ways from state to state.
//
// It finds where policies lead, and whether they agree with themselves.

impl FolderDiagnostics<'_> {
    /// Reports the problems of all states' transitions.
    pub(super) fn check_edges(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            self.policy(name, prompt, workflow_map);
            self.evaluator(name, prompt, workflow_map);
            for edge in prompt.edges.iter().filter(|edge| edge.origin != TransitionOrigin::Text) {
                self.names(name, edge, workflow_map);
            }
        }
    }

    /// Checks the files that a way names.
    fn names(&mut self, name: &StateName, edge: &TransitionEdge, workflow_map: &WorkflowMap) {
        let TransitionEdge { transition, place, .. } = edge;
        let named = [
            (transition.target(), place.target),
            (transition.continuation(), place.continuation),
            (transition.timeout_state(), place.late),
        ];
        for (target, place) in named {
            let Some(target) = target else { continue };
            let place = place.unwrap_or(edge.place.entry);
            if let Some(why) = frontmatter::ambiguity(target, self.source) {
                self.error(name, place, "RF107", format!("{target}: {why}"));
                continue;
            }
            let why = match workflow_map.states.get(target) {
                Some(FolderState::Unreadable(error)) => why(error),
                Some(FolderState::Other) => no_state().to_owned(),
                Some(FolderState::Beyond(path, state)) => {
                    self.crossing(name, place, path, state);
                    continue;
                }
                _ => continue,
            };
            self.error(name, place, "RF101", format!("{target}: {why}"));
        }
    }

    fn policy(&mut self, name: &StateName, prompt: &FolderPrompt, workflow_map: &WorkflowMap) {
        let TransitionPolicy { allowed, .. } = &prompt.frontmatter.policy;
        let Some(place) = prompt.places.policy.filter(|_| prompt.errors.is_empty()) else { return };
        let is_usable = |edge: &TransitionEdge| {
            edge.transition.states().all(|name| workflow_map.is_usable(name))
        };
        if allowed.is_empty() {
            let message = "an empty list allows every transition, so no agent is ever reminded; list what is allowed, or leave the key out";
            self.warning(name, place, "RF203", message);
        } else if !prompt.edges.iter().filter(|edge| !edge.is_of_join()).any(is_usable) {
            let message = "this policy allows nothing: each of its entries names a missing file";
            self.error(name, place, "RF201", message);
        }
        if prompt.frontmatter.output.is_some() {
            return;
        }
        for (index, (entry, place)) in allowed.iter().zip(&prompt.places.entries).enumerate() {
            self.inputs_of_entry(name, prompt, entry, place.entry);
            let is_covered_by = |other: usize| {
                let of_two_alike_the_first_stays = other < index || !covers(entry, &allowed[other]);
                other != index && covers(&allowed[other], entry) && of_two_alike_the_first_stays
            };
            if (0..allowed.len()).any(is_covered_by) {
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
                self.warning(file, SourcePlace::START, "RF402", message);
            }
            _ => {}
        }
    }
}

/// Returns whether a policy of only this entry allows another transition.
fn covers(entry: &Transition, other: &Transition) -> bool {
    TransitionPolicy { allowed: vec![entry.clone()], ..TransitionPolicy::default() }.allows(other)
}
