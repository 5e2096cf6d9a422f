//! Checks the options of turns, placeholders that nothing fills, budgets, joins, and forks.

use std::collections::{BTreeMap, BTreeSet};

use raymond_model::agent::OCCASIONAL_PLACEHOLDERS;
use raymond_model::id::StateName;
use raymond_model::join::JoinCondition;
use raymond_model::model::ModelName;
use raymond_model::settings::ForkSettings;
use raymond_model::transition::{TagName, Transition, Variables};
use raymond_model::turn_options::TurnOptions;

use super::{FolderDiagnostics, outputs};
use crate::graph::agents::spawned;
use crate::hint::closest_slip;
use crate::output::RESULT;
use crate::program::checked_program::{InstructionKind, started};
use crate::prompt::evaluator;
use crate::prompt::joins::{JoinableAgents, awaited};
use crate::prompt::step::{RESERVED, RESULTS, RESULTS_FILE, RUN_ID};
use crate::prompt::widenings::{FoundWidening, in_options, in_outline};
use crate::prompt::workflow_map::{FolderPrompt, FolderState, TransitionOrigin, WorkflowMap, call};
use crate::source::SourcePlace;
use crate::turn_options::{OptionPlaces, embed_files, model_hint, tool_name_hints};
use crate::{fork_plan, manifest, template};

// Checks the options of turns: missing files, probably misspelt models, and permissions that a starter has to grant.

impl FolderDiagnostics<'_> {
    /// Reports the mistakes in the options of the prompts, and of evaluators.
    pub(super) fn options(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts().chain(&workflow_map.evaluators) {
            self.model(name, prompt.frontmatter.model.as_ref(), prompt.places.model);
            self.option_files(name, &prompt.frontmatter.options, &prompt.places.options, "RF002");
            let (word, place) = &prompt.first_word;
            let run_command = prompt.frontmatter.options.run_command;
            let switch =
                prompt.places.options.of("run_command", None).filter(|_| run_command == Some(true));
            self.command(name, word, switch.unwrap_or(*place), run_command);
        }
        self.commands_of_programs(workflow_map);
        let found = in_outline(workflow_map, self.source, &self.ceiling);
        self.widenings(found);
    }

    /// Reports the mistakes in the options of the manifest.
    pub(super) fn options_of_manifest(
        &mut self,
        name: &StateName,
        examined: &manifest::ExaminedManifest,
    ) {
        let (options, places) = (&examined.manifest.options, &examined.options);
        self.model(name, examined.manifest.model.as_ref(), examined.model);
        self.option_files(name, options, places, "RF003");
        let found = in_options(name, options, places, self.source, &self.ceiling);
        self.widenings(found);
    }

    /// Warns of a prompt that looks like a command and is sent as text, and of a prompt that cannot be a command.
    fn command(
        &mut self,
        name: &StateName,
        text: &str,
        at: SourcePlace,
        run_command: Option<bool>,
    ) {
        let switch = run_command.or(self.runs_commands.then_some(false));
        if let Some(message) = template::warning(text, switch) {
            self.warning(name, at, template::CODE, message);
        }
    }

    /// Warns of the prompts that programs send to their roles. Only some prompts of a role may be commands.
    fn commands_of_programs(&mut self, workflow_map: &WorkflowMap) {
        for (name, state) in &workflow_map.states {
            let Some(program) = state.program() else { continue };
            let all = program.instructions();
            let sent = all.filter_map(|instruction| match &instruction.kind {
                InstructionKind::Send(send) => {
                    Some((send.role, &*send.template.pieces[0], instruction.at))
                }
                _ => None,
            });
            let sent: Vec<(usize, &str, SourcePlace)> = sent.collect();
            for (role, text, at) in &sent {
                let run_command = program.roles[*role].options.run_command;
                let mut of_role = sent.iter().filter(|other| other.0 == *role);
                if !of_role.any(|other| template::warning(other.1, run_command).is_none())
                    || run_command.is_none()
                {
                    self.command(name, text, *at, run_command);
                }
            }
        }
    }

    /// Warns of permissions that a starter has to grant.
    fn widenings(&mut self, found: Vec<FoundWidening>) {
        for FoundWidening { file, place, message } in found {
            self.warning(&file, place, "RF404", message);
        }
    }

    /// Reports files that options name and that cannot be used.
    fn option_files(
        &mut self,
        name: &StateName,
        options: &TurnOptions,
        places: &OptionPlaces,
        code: &'static str,
    ) {
        for fault in embed_files(&mut options.clone(), places, self.source) {
            self.error(name, fault.at, code, fault.message);
        }
        for model in options.fallback_model.iter().flatten() {
            let place = places.of("fallback_model", Some(model.as_str()));
            self.model(name, Some(model), place);
        }
        for hint in tool_name_hints(options, places) {
            self.warning(name, hint.at, "RF405", hint.message);
        }
    }

    /// Warns of a model that has no known name.
    pub(super) fn model(
        &mut self,
        name: &StateName,
        model: Option<&ModelName>,
        place: Option<SourcePlace>,
    ) {
        if let Some(hint) = model.and_then(model_hint) {
            self.warning(name, place.unwrap_or(SourcePlace::START), "RF403", hint);
        }
    }
}

// Checks placeholders that nothing fills.
//
// No tag that leads to a state has the variable, no agent that comes there is born with it, and nothing else has
// the name.
//
// A policy may leave variables to the agent, so the tags in a prompt's text count too. The text of a state without
// policy may ask for any agent in the states that it mentions. What a graph spawns an agent with, and the entries of a
// list in a file, which may be objects, are unknown.

impl FolderDiagnostics<'_> {
    /// Reports the placeholders that nothing fills in a state or in its evaluator's prompt; `has_unknown` is true if
    /// the agents of the folder may have other values as well.
    pub(super) fn variables(
        &mut self,
        workflow_map: &WorkflowMap,
        of_run: &[String],
        has_unknown: bool,
    ) {
        let given = all_given(workflow_map);
        let origins = outputs::origins(workflow_map);
        let mut of_evaluators: BTreeMap<&StateName, BTreeSet<String>> = BTreeMap::new();
        for (name, prompt) in workflow_map.prompts() {
            let nothing = GivenVariables::default();
            let given = given.get(name).unwrap_or(&nothing);
            let may_have_more = given.unknown || has_unknown;
            let mut known: BTreeSet<String> = of_run.iter().cloned().collect();
            known.extend(RESERVED.into_iter().chain([RUN_ID]).map(str::to_owned));
            known.extend(given.variables.iter().map(|&variable| variable.to_owned()));
            known.extend(given.of_lists.iter().cloned());
            known.extend(given.returned_to.then(|| "result".to_owned()));
            if given.joined {
                known.extend([RESULTS, RESULTS_FILE].map(str::to_owned));
            }
            self.foreign(name, prompt, &known);
            if may_have_more {
                known.extend(prompt.placeholders.iter().map(|(name, _)| name.clone()));
            }
            self.fields(name, prompt, &mut known, workflow_map, origins.get(name));
            self.unfilled(name, prompt, &known, workflow_map);
            if *name != workflow_map.entry && !given.is_entered && !may_have_more {
                self.input_instead(name, prompt, given);
            }
            if let Some(evaluator) = prompt.evaluator() {
                let all = workflow_map.evaluators.get(evaluator).filter(|_| may_have_more);
                let all = all.iter().flat_map(|prompt| &prompt.placeholders);
                known.extend(all.map(|(name, _)| name.clone()));
                let shown = evaluator::EVALUATOR_PLACEHOLDERS.map(str::to_owned);
                of_evaluators.entry(evaluator).or_default().extend(known.into_iter().chain(shown));
            }
        }
        for (name, known) in of_evaluators {
            if let Some(prompt) = workflow_map.evaluators.get(name) {
                self.unfilled(name, prompt, &known, workflow_map);
            }
        }
    }

    /// Reports `{{input}}` in a state that only questions or returns lead to: there it still is what the agent began
    /// with.
    fn input_instead(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        given: &GivenVariables<'_>,
    ) {
        let (what, meant) = match (given.variables.contains("answer"), given.returned_to) {
            (true, false) => ("a question", "answer"),
            (false, true) => ("a return", "result"),
            (true, true) => ("a question or a return", "answer}} or {{result"),
            (false, false) => return,
        };
        let shows = |name: &str| prompt.placeholders.iter().find(|(known, _)| known == name);
        let knows = shows("answer").or(shows("result")).is_some();
        let Some((_, place)) = shows("input").filter(|_| !knows) else {
            return;
        };
        let message = format!(
            "only {what} leads to this state, where {{{{input}}}} is still the input that the agent began with; write {{{{{meant}}}}} for what came back"
        );
        self.warning(name, *place, "RF406", message);
    }

    /// Reports what other tools would fill, if it means a value that the text does not have as well.
    fn foreign(&mut self, name: &StateName, prompt: &FolderPrompt, known: &BTreeSet<String>) {
        for (written, meant, place) in &prompt.foreign {
            let is_shown = prompt.placeholders.iter().any(|(shown, _)| shown == meant);
            if known.contains(meant) && !is_shown {
                let message = format!(
                    "raymond does not fill {written}; write {{{{{meant}}}}}, or put it in backticks if it is meant as it stands"
                );
                self.warning(name, *place, "RF401", message);
            }
        }
    }

    fn unfilled(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        known: &BTreeSet<String>,
        workflow_map: &WorkflowMap,
    ) {
        for (placeholder, place) in &prompt.placeholders {
            if !known.contains(placeholder) {
                let known = known.iter().map(String::as_str).chain(["input"]);
                let meant = closest_slip(placeholder, known);
                self.warning(name, *place, "RF401", why(placeholder, workflow_map, meant));
            }
        }
    }
}

fn why(placeholder: &str, workflow_map: &WorkflowMap, meant: Option<&str>) -> String {
    let why = match placeholder {
        "input" => format!(
            "only the first agent has it, which begins in {}; hand it on in the <fork> of the agent that comes here: input=\"…\"",
            workflow_map.entry
        ),
        "result" => format!(
            "no call or function comes back to this state; one with `join` has {{{{{RESULTS}}}}}"
        ),
        "answer" | "ask_id" => "no question leads here: <ask next=\"…\">".to_owned(),
        RESULTS | RESULTS_FILE => {
            "only a state with `join` is given what came of the agents it has waited for".to_owned()
        }
        "output" | "transition" => "only the prompt of an evaluator is given it".to_owned(),
        _ if placeholder.starts_with("inputs.") => {
            format!("an input is {{{{{}}}}} here, without `$` before it", &placeholder[7..])
        }
        _ => format!(
            "no tag that leads here has {placeholder}=\"…\"; show one in the prompt it comes from, or start the run with --var {placeholder}=…"
        ),
    };
    let meant = meant.filter(|_| why.starts_with("no tag"));
    let meant = meant.map_or_else(String::new, |name| format!("; or did you mean {{{{{name}}}}}?"));
    format!("nothing fills {{{{{placeholder}}}}}: {why}{meant}")
}

fn all_given(workflow_map: &WorkflowMap) -> GivenToStates<'_> {
    let mut given = GivenToStates::new();
    let mut of_results: BTreeSet<&str> = BTreeSet::new();
    for (_, prompt) in workflow_map.texts() {
        for transition in known_transitions(prompt, workflow_map) {
            let variables = variables_of(transition, prompt);
            let gives_input = transition.variables().contains_key("input");
            for state in [transition.target(), transition.timeout_state()].into_iter().flatten() {
                given.entry(state).or_default().is_entered = true;
            }
            if let Some(next) = transition.continuation() {
                given.entry(next).or_default().is_entered |= transition.is_fork() || gives_input;
            }
            match transition {
                Transition::Result { variables, .. } => {
                    of_results.extend(variables.keys().map(String::as_str));
                }
                Transition::Call { target, return_to, .. }
                | Transition::Function { target, return_to, .. } => {
                    given.entry(target).or_default().variables.extend(variables);
                    given.entry(return_to).or_default().returned_to = true;
                }
                Transition::Ask { next, .. } => {
                    let next = &mut given.entry(next).or_default().variables;
                    next.extend(variables.chain(["answer", "ask_id"]));
                }
                Transition::Goto { target, .. } | Transition::Reset { target, .. } => {
                    given.entry(target).or_default().variables.extend(variables);
                }
                Transition::Fork { .. } => {}
            }
        }
    }
    add_birth_variables(workflow_map, &mut given);
    missed(workflow_map, &mut given);
    for given in given.values_mut().filter(|given| given.returned_to) {
        given.variables.extend(&of_results);
    }
    given
}

/// Gives each state with a join its results. A state entered when the join is not met gets all the same values.
fn missed<'a>(workflow_map: &'a WorkflowMap, given: &mut GivenToStates<'a>) {
    let joins = || workflow_map.prompts().filter(|(_, prompt)| prompt.frontmatter.join.is_some());
    for (name, _) in joins() {
        given.entry(name).or_default().joined = true;
    }
    for (name, prompt) in joins() {
        let Some(before) = given.get(name).cloned() else { continue };
        for edge in prompt.edges.iter().filter(|edge| edge.is_of_join()) {
            let Some(target) = edge.transition.target() else { continue };
            let after = given.entry(target).or_default();
            after.variables.extend(&before.variables);
            after.of_lists.extend(before.of_lists.iter().cloned());
            after.returned_to |= before.returned_to;
            after.joined = true;
            after.is_entered = true;
            after.unknown |= before.unknown;
        }
    }
}

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
                self.warning(name, place, "RF307", message);
            }
        }
    }
}

/// Returns the states that known calls lead to. What a state without policy mentions may be forked as well, so that is
/// among the births.
fn called(workflow_map: &WorkflowMap) -> BTreeSet<&StateName> {
    let known =
        workflow_map.texts().flat_map(|(_, prompt)| known_transitions(prompt, workflow_map));
    known.filter_map(|transition| Some(call(transition)?.0)).collect()
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
                prompt.edges.iter().flat_map(|edge| edge.transition.states()).collect();
            for name in prompt.mentioned.iter().filter(|name| !targets.contains(name)) {
                births.entry(name).or_default().unknown = true;
            }
        }
    }
    let key = |name: &StateName| workflow_map.known(name);
    for state in workflow_map.states.values() {
        for name in state.graph().map(spawned).unwrap_or_default().iter().filter_map(key) {
            births.entry(name).or_default().unknown = true;
        }
        for name in state.program().map(started).unwrap_or_default().iter().filter_map(key) {
            births.entry(name).or_default().variables.insert("input");
        }
    }
    births
}

/// Gives each state the variables of the agents that begin or come there. An agent has its own in all its states.
pub(super) fn add_birth_variables<'a>(
    workflow_map: &'a WorkflowMap,
    given: &mut GivenToStates<'a>,
) {
    for (first, born) in births(workflow_map) {
        let begins = given.entry(first).or_default();
        begins.variables.extend(&born.variables);
        begins.of_lists.extend(born.of_lists.iter().cloned());
        begins.unknown |= born.unknown;
        begins.is_entered = true;
        let stays = |name: &str| !OCCASIONAL_PLACEHOLDERS.contains(&name);
        for name in workflow_map.reached_by_one_agent(first) {
            let given = given.entry(name).or_default();
            given.variables.extend(born.variables.iter().copied().filter(|name| stays(name)));
            given.of_lists.extend(born.of_lists.iter().filter(|name| stays(name)).cloned());
            given.unknown |= born.unknown;
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
    // In the ways, the states of other folders have their own names.
    let shown = shown.filter(|shown| shown.crossings().next().is_none());
    let edges = prompt.edges.iter().map(|edge| &edge.transition);
    edges.chain(shown.filter(|shown| is_allowed(prompt, shown)))
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

// The checks of joins that cannot be met: no agent was forked before, or fewer than the join waits for.

impl FolderDiagnostics<'_> {
    /// Reports joins that wait for no agent, or for too many.
    pub(super) fn joins(&mut self, workflow_map: &WorkflowMap) {
        let awaited = awaited(workflow_map);
        let forked = forked_at_most(workflow_map);
        for (name, prompt) in workflow_map.prompts() {
            let Some(join) = &prompt.frontmatter.join else { continue };
            let place = prompt.places.join.unwrap_or(SourcePlace::START);
            if awaited.get(name).is_none_or(JoinableAgents::is_nobody) {
                let message = "this join waits for no agent: no way that leads here comes from a fork, by the same agent and since its last join; fork with next=\"…\" on the way here, or leave the join out";
                self.warning(name, place, "RF306", message);
            } else if let (JoinCondition::Count(needed), Some(forked)) = (join.need, forked)
                && usize::try_from(needed).is_ok_and(|needed| needed > forked)
            {
                let message = format!(
                    "this join waits for {needed} agents, and no more than {forked} are ever forked; fork more of them, or write join: all"
                );
                self.warning(name, place, "RF306", message);
            }
        }
    }
}

/// Returns the maximum number of agents besides the first, if it is certain: there is one fork, nothing leads back
/// to it, and it has a known number of agents.
fn forked_at_most(workflow_map: &WorkflowMap) -> Option<usize> {
    let is_known = |state: &FolderState| match state {
        FolderState::Prompt(prompt) => !prompt.is_open(),
        other => !matches!(other, FolderState::Script(_) | FolderState::Unreadable(_)),
    };
    if !workflow_map.states.values().all(is_known) {
        return None;
    }
    let mut forks = workflow_map.steps().filter(|(_, transition, _)| transition.is_fork());
    let (name, fork, _) = forks.next()?;
    let prompt = workflow_map.states.get(name).and_then(FolderState::prompt);
    let may_be_many = prompt.is_some_and(|prompt| prompt.frontmatter.policy.many_forks);
    let loops = workflow_map.flow_map().loops();
    let again = fork.states().any(|state| loops.leads_back(state, name));
    (forks.next().is_none() && !may_be_many && !again).then(|| born_of(fork)).flatten()
}

// The checks of a state's forks: it may fork at all, and its lists can be used.
//
// Only a list that stands in the tag itself is known. A list in a file is read when it is forked.

impl FolderDiagnostics<'_> {
    /// Reports the problems of all states' forks; `most` is the folder's limit of forked agents per reply.
    pub(super) fn fan_outs(&mut self, workflow_map: &WorkflowMap, most: Option<u32>) {
        let most = most.unwrap_or(ForkSettings::default().max_fan_out);
        for (name, prompt) in workflow_map.prompts() {
            self.rules(name, prompt);
            let most = prompt.frontmatter.forks.max_fan_out.unwrap_or(most);
            for edge in prompt.edges.iter().filter(|edge| edge.origin != TransitionOrigin::Text) {
                if let Some(why) = unusable(&edge.transition, most) {
                    self.error(name, edge.place.entry, "RF206", why);
                } else if born_of(&edge.transition) == Some(0) {
                    let message = "the list of this fork is empty, so it starts no agent; write its entries, or `each: any`";
                    self.warning(name, edge.place.entry, "RF206", message);
                }
            }
            for shown in &prompt.shown {
                let why = shown.transition.as_ref().ok().and_then(|shown| unusable(shown, most));
                if let Some(why) = why {
                    let message = format!("the text shows a fork: {why}");
                    self.warning(name, shown.place, "RF206", message);
                }
            }
        }
    }

    /// Warns of fork settings in a state that cannot fork.
    fn rules(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let forks = prompt.edges.iter().any(|edge| edge.transition.tag() == TagName::Fork);
        if let Some(place) = prompt.places.forks.filter(|_| !forks && !prompt.is_open()) {
            let message = "this says how agents are forked here, and the policy allows no fork; list one, such as { tag: fork, target: WORKER.md, next: NEXT.md }, or leave it out";
            self.warning(name, place, "RF205", message);
        }
    }
}

/// Returns why the list of a fork cannot be used, if the list is known and unusable.
fn unusable(transition: &Transition, most: u32) -> Option<String> {
    let count = match known_entries(transition)? {
        Ok(entries) => entries.len(),
        Err(why) => return Some(why),
    };
    (count > usize::try_from(most).unwrap_or(usize::MAX)).then(|| {
        format!(
            "its list has {count} entries, and one reply may fork {most} agents at the most; raise max_fan_out in the frontmatter or in raymond.yaml"
        )
    })
}

/// Returns the entries of a fork's list that stands in its tag, with nothing to be filled in.
fn known_entries(transition: &Transition) -> Option<Result<Vec<Variables>, String>> {
    let Transition::Fork { each: Some(each), .. } = transition else { return None };
    let is_known = each.is_inline() && !each.list.contains("{{");
    is_known.then(|| fork_plan::entries(each, &each.list, &Variables::new()))
}

/// Returns the number of agents that a fork starts, if it is known.
pub(super) fn born_of(transition: &Transition) -> Option<usize> {
    match transition {
        Transition::Fork { each: None, .. } => Some(1),
        _ => Some(known_entries(transition)?.ok()?.len()),
    }
}

/// Returns the variables that the entries of a fork's list fill, if they are known.
pub(super) fn filled_by(transition: &Transition) -> Option<Vec<String>> {
    let entries = known_entries(transition)?.ok()?;
    Some(entries.into_iter().flatten().map(|(name, _)| name).collect())
}
