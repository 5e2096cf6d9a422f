//! The YAML at the head of a prompt: which transitions the state allows, which model it takes.
//!
//! Anything unknown is an error with a place, because a misspelt policy that is silently ignored would allow
//! everything.

use raymond_model::agent::AgentOptions;
use raymond_model::id::{Folder, ScopePath, StateKind, StateName};
use raymond_model::join::{Join, JoinFallback};
use raymond_model::model::ModelName;
use raymond_model::policy::TransitionPolicy;
use raymond_model::settings::ForkRules;
use raymond_model::time::millis;
use raymond_model::transition::{ANY_LIST, Transition};
use raymond_model::turn_options::TurnOptions;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::keys::unknown_keys;
use crate::manifest::budget;
use crate::output::{OutputKey, OutputRule, SchemaOrigin};
use crate::plugins::some_time;
use crate::prompt::evaluator::{EntryPlace, Evaluator, PolicyEntry, RawEvaluator};
use crate::prompt::scopes::first_state;
use crate::prompt::script::PreparedScript;
use crate::prompt::{evaluator, forking, state_error};
use crate::schema::shape;
use crate::source::{SourcePlace, WorkflowSource};
use crate::turn_options::{OptionPlaces, WrittenOptions};
use crate::yaml::tree::YamlFileKind;
use crate::yaml::{Error, PlacedValue, YamlErrors, YamlValue};
use crate::{manifest, plugins, turn_options, yaml};

/// The content of a prompt's frontmatter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontmatter {
    /// The transitions that the state allows.
    pub policy: TransitionPolicy,
    /// The form of its answer, if that is an object.
    pub output: Option<OutputKey>,
    /// The model it takes.
    pub model: Option<ModelName>,
    /// The options of its turns.
    pub options: TurnOptions,
    /// The options of agents that begin here. Its budget is also that of a call that leads here.
    pub agent_options: AgentOptions,
    /// The second check of transitions requested here.
    pub evaluator: Option<Evaluator>,
    /// The rules for forking agents here.
    pub forks: ForkRules,
    /// The agents that the state waits for before its prompt is asked.
    pub join: Option<Join>,
}

listed_keys! {
    /// The keys as they are written.
    pub(crate) struct RawFrontmatter {
        /// The transitions that the state allows. Without any, it allows all.
        allowed_transitions: Option<PlacedValue<Vec<PlacedValue<PolicyEntry>>>> => evaluator::list_shape,
        /// The form of the answer: a JSON Schema, or the file that has it. The fields of the answer decide
        /// what follows.
        output: Option<IgnoredAny> => shape::output,
        /// The model of the state: opus, sonnet, haiku, or a full name.
        model: Option<PlacedValue<String>> => shape::model,
        /// The supervision of agents that start here.
        supervision: Option<plugins::RawSupervision> => plugins::RawSupervision::shape,
        /// The budget, in US dollars, of agents that start here, and of each call that leads here.
        budget: Option<PlacedValue<String>> => shape::positive_dollars,
        /// A second check of a requested transition, before it is taken.
        evaluator: Option<PlacedValue<evaluator::RawEvaluator>> => evaluator::RawEvaluator::shape,
        /// True if agents that start here get a git worktree of their own.
        worktree: Option<bool> => shape::boolean,
        /// False if no snapshots of that worktree are made.
        snapshots: Option<bool> => shape::boolean,
        /// The label of the hosts that agents which start here may live on.
        host: Option<PlacedValue<String>> => shape::text,
        /// True if the only allowed transition is taken whatever tags a reply has.
        force_implicit: Option<PlacedValue<bool>> => shape::boolean,
        /// The number of `<fork>` tags that one reply may have: one, or many.
        forks: Option<PlacedValue<String>> => forking::forks_shape,
        /// The maximum number of agents that one reply may fork.
        max_fan_out: Option<PlacedValue<String>> => shape::count,
        /// The head start of the first forked agent.
        stagger: Option<PlacedValue<String>> => shape::duration,
        /// The agents that the state waits for before its prompt is asked: all, any, or how many of them have
        /// to end well.
        join: Option<PlacedValue<String>> => forking::join_shape,
        /// The time that a join waits.
        timeout: Option<PlacedValue<String>> => shape::duration,
        /// The continuation if a join takes too long: fail, keep, or a state.
        on_timeout: Option<PlacedValue<String>> => shape::text,
        /// The continuation if too many agents of a join fail: fail, keep, or a state.
        on_failure: Option<PlacedValue<String>> => shape::text,
        /// The fate of agents that still live when the join is complete: leave or stop.
        rest: Option<PlacedValue<String>> => forking::rest_shape,
    }
}

/// The places of the values in the frontmatter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontmatterPlaces {
    /// The list of the policy.
    pub policy: Option<SourcePlace>,
    pub model: Option<SourcePlace>,
    /// Each entry of the policy.
    pub entries: Vec<EntryPlace>,
    /// The `when` of each entry.
    pub whens: Vec<Option<SourcePlace>>,
    /// The file of the evaluator's prompt.
    pub evaluator: Option<SourcePlace>,
    /// The entries of the evaluator's pattern.
    pub overrides: Vec<EntryPlace>,
    /// The number of agents that the state waits for.
    pub join: Option<SourcePlace>,
    /// The transition taken if too many of them fail.
    pub on_failure: Option<SourcePlace>,
    /// The transition taken if they do not end in time.
    pub on_timeout: Option<SourcePlace>,
    /// The budget of agents that start here.
    pub budget: Option<SourcePlace>,
    /// The first key about forks.
    pub forks: Option<SourcePlace>,
    /// The options of its turns.
    pub options: OptionPlaces,
}

impl Frontmatter {
    /// Adds the endings to the names of states that have none.
    pub fn resolve_names(&mut self, source: &dyn WorkflowSource) {
        if let Some(join) = &mut self.join {
            resolve_join(join, source);
        }
        for transition in self.transitions_mut() {
            resolve_transition(transition, source);
        }
    }

    /// Returns all transitions in it: the entries of the policy first, then those of the evaluator and of the output.
    pub(super) fn transitions_mut(&mut self) -> impl Iterator<Item = &mut Transition> {
        let of_pattern = match &mut self.evaluator {
            Some(Evaluator::Pattern { found, missing, .. }) => [found, missing].map(Option::as_mut),
            Some(Evaluator::Prompt { .. }) | None => [None, None],
        };
        let rules = self.output.iter_mut().flat_map(|output| &mut output.rules);
        let of_policy = self.policy.allowed.iter_mut();
        let of_pattern = of_pattern.into_iter().flatten().map(Box::as_mut);
        of_policy.chain(of_pattern).chain(rules.map(|rule| &mut rule.transition))
    }
}

/// Frontmatter as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExaminedFrontmatter {
    pub frontmatter: Frontmatter,
    /// The places of its values.
    pub places: FrontmatterPlaces,
    /// The mistakes.
    pub errors: YamlErrors,
}

/// Reads frontmatter; lines are counted from the beginning of `yaml`.
///
/// # Errors
/// [`Error`] for bad YAML, unknown keys, tags and models, and entries that no tag could match.
pub fn parse(yaml: &str) -> Result<Frontmatter, Error> {
    let ExaminedFrontmatter { frontmatter, errors, .. } = examine(yaml);
    errors.or_else_first(frontmatter)
}

/// Reads frontmatter to its end, even if it has mistakes.
pub fn examine(yaml: &str) -> ExaminedFrontmatter {
    let mut examined = ExaminedFrontmatter::default();
    let ExaminedFrontmatter { frontmatter, places, errors } = &mut examined;
    let root = yaml::parse(YamlFileKind::FRONTMATTER, yaml, errors);
    let Some(root) = root.filter(|root| !root.is_null()) else { return examined };
    let Some(mut raw) = yaml::examine_tree::<RawFrontmatter>(&root, errors) else {
        return examined;
    };
    errors.add(unknown_keys(&root, RawFrontmatter::KEYS, |name| {
        let is_of_manifest = manifest::RawManifest::KEYS.iter().any(|key| key.name == name);
        is_of_manifest.then_some("raymond.yaml")
    }));
    let mut whens = Vec::new();
    if let Some(entries) = raw.allowed_transitions.take() {
        places.policy = Some(entries.at);
        for mut written in entries.value {
            if raw.output.is_none() {
                written.value.take_plain_when();
            }
            let place = EntryPlace::of(&written);
            let when = written.value.when.clone();
            if let Some(transition) = errors.keep(evaluator::listed(written)) {
                frontmatter.policy.allowed.push(transition);
                places.entries.push(place);
                places.whens.push(when.as_ref().map(|when| when.at));
                whens.push(when);
            }
        }
    }
    let output = raw.output.take().and_then(|_| root.entry("output"));
    read(
        output.map(|entry| &entry.value),
        &whens,
        raw.evaluator.as_ref(),
        frontmatter,
        places,
        errors,
    );
    let written = WrittenOptions::of(&root);
    (frontmatter.options, places.options) = (written.options, written.places);
    errors.add(written.faults);
    let is_whole = errors.is_empty();
    places.join = place(raw.join.as_ref());
    places.on_failure = place(raw.on_failure.as_ref());
    places.on_timeout = place(raw.on_timeout.as_ref());
    frontmatter.join = raw.take_join(errors);
    places.model = place(raw.model.as_ref());
    frontmatter.model = errors.value(raw.model, turn_options::model);
    let of_forks = [&raw.forks, &raw.max_fan_out, &raw.stagger];
    places.forks = of_forks.into_iter().find_map(|written| place(written.as_ref()));
    frontmatter.policy.many_forks = errors.value(raw.forks, forking::forks).unwrap_or_default();
    errors.keep(force_implicit(raw.force_implicit, frontmatter));
    frontmatter.forks = ForkRules {
        max_fan_out: errors.value(raw.max_fan_out, forking::count),
        stagger_ms: errors.value(raw.stagger, millis),
    };
    let supervision = raw.supervision.map(plugins::RawSupervision::read).transpose();
    places.budget = place(raw.budget.as_ref());
    frontmatter.agent_options = AgentOptions {
        supervision: errors.keep(supervision).flatten().unwrap_or_default(),
        budget_usd: errors.value(raw.budget, budget),
        worktree: raw.worktree.unwrap_or_default(),
        no_snapshots: raw.snapshots == Some(false),
        host: errors.value(raw.host, manifest::host_label),
    };
    if let Some(evaluator) = raw.evaluator.filter(|_| is_whole) {
        places.evaluator = evaluator.value.place_of_prompt();
        places.overrides = evaluator.value.places_of_entries();
        let read = evaluator.value.read(&frontmatter.policy, evaluator.at);
        frontmatter.evaluator = errors.keep(read);
    }
    examined
}

impl RawFrontmatter {
    /// Takes the keys of a join and returns the join that they describe; without `join`, the others are mistakes.
    fn take_join(&mut self, errors: &mut YamlErrors) -> Option<Join> {
        let Some(join) = self.join.take() else {
            let keys = [
                ("timeout", &self.timeout),
                ("on_timeout", &self.on_timeout),
                ("on_failure", &self.on_failure),
                ("rest", &self.rest),
            ];
            for (key, written) in keys {
                let Some(written) = written else { continue };
                let of_turn = match key {
                    "timeout" => "; how long a turn may take is `supervision: { timeout: … }`",
                    _ => "",
                };
                let message = format!(
                    "`{key}` says how long or how a join waits; it needs `join: all`, `any` or a number beside it{of_turn}"
                );
                errors.wrong(written.at, message);
            }
            return None;
        };
        if let (Some(late), None) = (&self.on_timeout, &self.timeout) {
            errors.wrong(late.at, "`on_timeout` needs a `timeout` beside it, such as 2h");
        }
        let need = errors.value(Some(join), forking::join_condition);
        let timeout_ms = errors.value(self.timeout.take(), some_time);
        let on_timeout = errors.value(self.on_timeout.take(), forking::join_fallback);
        let on_failure = errors.value(self.on_failure.take(), forking::join_fallback);
        let rest = errors.value(self.rest.take(), forking::unjoined_policy);
        Some(Join {
            need: need?,
            timeout_ms,
            on_timeout: on_timeout.unwrap_or_default(),
            on_failure: on_failure.unwrap_or_default(),
            rest: rest.unwrap_or_default(),
        })
    }
}

/// Reads `force_implicit`, which needs a single transition that leaves nothing to the agent.
fn force_implicit(
    written: Option<PlacedValue<bool>>,
    frontmatter: &mut Frontmatter,
) -> Result<(), Error> {
    let Some(PlacedValue { value: true, at }) = written else { return Ok(()) };
    if frontmatter.output.is_some() {
        let message = "the fields of an `output` decide what follows; leave `force_implicit` out";
        return Err(Error::new(at, message));
    }
    if frontmatter.policy.implied().is_none() {
        let message = "this needs exactly one allowed transition, which leaves nothing to the agent: no ask, no result without `payload`, and no fork with `each: any`";
        return Err(Error::new(at, message));
    }
    frontmatter.policy.force_implicit = true;
    Ok(())
}

fn place(written: Option<&PlacedValue<String>>) -> Option<SourcePlace> {
    written.map(|written| written.at)
}

// A state may be named without an ending: `REVIEW` is the one file of `REVIEW.md`, `REVIEW.yaml`, … that exists.

/// Returns the states that a name without an ending fits.
pub fn candidates(name: &StateName, source: &dyn WorkflowSource) -> Vec<StateName> {
    if name.as_str().contains('.') {
        return Vec::new();
    }
    let with = |ending: &str| StateName::parse(&format!("{name}.{ending}")).ok();
    let endings = StateKind::ALL.iter().flat_map(|kind| kind.endings());
    let named = endings.filter_map(|ending| with(ending)).chain([name.clone()]);
    named.filter(|name| StateKind::of(name).is_some() && source.check(name).is_ok()).collect()
}

/// Returns why a name without an ending fits no single state, if it fits several.
pub fn ambiguity(name: &StateName, source: &dyn WorkflowSource) -> Option<String> {
    let fitting = candidates(name, source);
    let names: Vec<&str> = fitting.iter().map(StateName::as_str).collect();
    (names.len() > 1).then(|| format!("this fits {}; write the ending", names.join(" and ")))
}

/// Adds the ending to a name without one, if just one state fits.
pub fn resolve(name: &mut StateName, source: &dyn WorkflowSource) {
    if let [only] = candidates(name, source).as_slice() {
        *name = only.clone();
    }
}

/// Adds the endings to the names in a transition.
pub fn resolve_transition(transition: &mut Transition, source: &dyn WorkflowSource) {
    transition.change_targets(|scope, target| resolve_target(scope, target, source));
    transition.rename_states(|name| resolve(name, source));
}

/// Completes what a tag names: a name that only a folder has is that folder, and a folder is its first state.
fn resolve_target(
    scope: &mut Option<ScopePath>,
    target: &mut StateName,
    source: &dyn WorkflowSource,
) {
    if let Some(folder) = named_folder(scope.as_ref(), target, source) {
        let Ok(entry) = StateName::entry() else { return };
        (*scope, *target) = (Some(folder), entry);
    }
    let Some(there) = scope.as_ref().and_then(|path| source.scope(path).ok()) else { return };
    if !target.is_entry() {
        resolve(target, &*there);
    } else if let Ok(first) = first_state(&*there) {
        *target = first;
    }
}

/// Returns the folder that a name without an ending is the name of, if no state has it.
fn named_folder(
    scope: Option<&ScopePath>,
    target: &StateName,
    source: &dyn WorkflowSource,
) -> Option<ScopePath> {
    if target.as_str().contains(['.', '{']) {
        return None;
    }
    let there = scope.map(|path| source.scope(path));
    let files = match &there {
        None => Some(source),
        Some(there) => there.as_deref().ok(),
    };
    if files
        .is_some_and(|files| files.check(target).is_ok() || !candidates(target, files).is_empty())
    {
        return None;
    }
    let below = Folder::parse(target.as_str()).ok()?;
    let path = scope.map_or_else(|| ScopePath::from_root(Some(&below)), |path| path.join(&below));
    source.scope(&path).is_ok().then_some(path)
}

/// Returns why a state of another folder cannot be entered, if it cannot.
pub fn why_no_entry(
    path: &ScopePath,
    state: &StateName,
    source: &dyn WorkflowSource,
) -> Option<String> {
    let there = match source.scope(path) {
        Ok(there) => there,
        Err(error) => {
            // `../review` names a folder also where it is none, or none that may be entered.
            let folder = Folder::parse(state.as_str()).ok().filter(|_| path.is_explicit());
            let named = folder.and_then(|folder| source.scope(&path.join(&folder)).err());
            return Some(named.unwrap_or(error).to_string());
        }
    };
    if state.is_entry() {
        let why = first_state(&*there).err()?;
        return Some(format!("this folder cannot be entered: {why}"));
    }
    why_no_state(state, &*there)
}

/// Returns why a state of the folder itself cannot be entered, if it cannot.
pub fn why_no_state(state: &StateName, source: &dyn WorkflowSource) -> Option<String> {
    if let Some(why) = ambiguity(state, source) {
        return Some(why);
    }
    if let Err(error) = source.check(state) {
        return Some(error.to_string());
    }
    match StateKind::of(state) {
        Some(StateKind::Prompt | StateKind::Graph | StateKind::Program) => None,
        Some(StateKind::Script) => {
            PreparedScript::read(state, None, source).err().map(|error| error.to_string())
        }
        None => Some(state_error::Error::NotAPrompt { path: source.path(state) }.to_string()),
    }
}

/// Adds the endings to the states that are entered if a join is not met.
pub fn resolve_join(join: &mut Join, source: &dyn WorkflowSource) {
    for fallback in [&mut join.on_failure, &mut join.on_timeout] {
        if let JoinFallback::State(state) = fallback {
            resolve(state, source);
        }
    }
}

// `output` in frontmatter, and `when` in an entry of a policy: the form of a state's answer, and the transitions.
//
// An object contains no tags, so the policy has to give the parts of a tag: the forked agents, or the question. If
// the object decides, an evaluator has nothing to decide.

/// Reads `output`, and the `when` of each entry of the policy.
fn read(
    output: Option<&YamlValue>,
    whens: &[Option<PlacedValue<Value>>],
    evaluator: Option<&PlacedValue<RawEvaluator>>,
    frontmatter: &mut Frontmatter,
    places: &mut FrontmatterPlaces,
    errors: &mut YamlErrors,
) {
    let Some(output) = output else {
        if let Some(when) = whens.iter().flatten().next() {
            let message = "`when` decides by the fields of an `output`; give the state one, such as `output: verdict.schema.json`";
            errors.wrong(when.at, message);
        }
        return;
    };
    if let Some(evaluator) = evaluator {
        let message = "the fields of an `output` decide what follows; leave the evaluator out";
        errors.wrong(evaluator.at, message);
    }
    if frontmatter.policy.is_open() && errors.is_empty() {
        frontmatter.policy = TransitionPolicy::result();
        places.entries = vec![EntryPlace::whole(output.at)];
        places.whens = vec![None];
    }
    let Some(schema) = errors.keep(SchemaOrigin::of_tree(output)) else { return };
    let mut rules = Vec::new();
    for (index, transition) in frontmatter.policy.allowed.iter().enumerate() {
        if let Err(why) = says_all(transition) {
            errors.wrong(places.entries.get(index).map_or(output.at, |place| place.entry), why);
        }
        let tests = whens.get(index).and_then(Option::as_ref).map_or(Ok(Vec::new()), |when| {
            OutputRule::tests(&when.value).map_err(|why| Error::new(when.at, why))
        });
        let transition = transition.clone();
        rules.extend(errors.keep(tests).map(|when| OutputRule { when, transition }));
    }
    frontmatter.output = Some(OutputKey { schema, place: output.at, rules });
}

/// Checks that an entry leaves nothing to the words of a tag.
fn says_all(transition: &Transition) -> Result<(), &'static str> {
    match transition {
        Transition::Ask { .. } => Err("an `output` cannot say what to ask; goto a state that asks"),
        Transition::Fork { each: Some(each), .. } if each.list == ANY_LIST => {
            Err("an `output` cannot name the list; name it here, such as each: items.json")
        }
        Transition::Result { payload, .. } if !payload.is_empty() => {
            Err("the answer itself is the text of the result; leave `payload` out")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod named_tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn name_without_ending_is_resolved_if_one_state_fits() {
        let files = ["A.md", "B.md", "B.lisp", "raymond.yaml", "C.txt"];
        let source: BTreeMap<String, String> =
            files.map(|name| (name.to_owned(), "x".to_owned())).into();
        let resolved = |name: &str| {
            let mut name = StateName::parse(name).expect("a name");
            resolve(&mut name, &source);
            name.to_string()
        };
        assert_eq!(
            ["A", "A.md", "B", "C", "raymond", "GONE"].map(resolved),
            ["A.md", "A.md", "B", "C", "raymond", "GONE"]
        );
        let why = ambiguity(&StateName::parse("B").expect("a name"), &source);
        assert_eq!(why.as_deref(), Some("this fits B.md and B.lisp; write the ending"));
    }
}
