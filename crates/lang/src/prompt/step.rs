//! The two questions a prompt folder answers: the prompt to ask in a state, and the meaning of a reply there.

use std::rc::Rc;
use std::sync::Arc;

use raymond_model::agent::AgentOptions;
use raymond_model::graph_execution::PromptTask;
use raymond_model::id::{AgentId, RunId, ScopePath};
pub use raymond_model::id::{StateKind, StateName};
use raymond_model::join::Join;
use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::policy::{AcceptedTransition, ProtocolViolation, TransitionPolicy};
use raymond_model::settings::ForkRules;
use raymond_model::transition::{ANY_LIST, Transition, TransitionProposal, Variables};
use raymond_model::turn::TurnReply;
use raymond_model::turn_options::TurnOptions;

use crate::graph::agent_states::first_agent_options;
use crate::output::{OutputContract, SchemaError, placeholder};
use crate::prompt::document::{ExaminedDocument, PromptDocument};
use crate::prompt::evaluator::Evaluator;
use crate::prompt::frontmatter::{Frontmatter, FrontmatterPlaces};
pub use crate::prompt::state_error::Error;
use crate::prompt::{document, evaluator, frontmatter, scopes};
use crate::source::{SourcePlace, WorkflowSource};
use crate::turn_options::{OptionPlaces, embed_files};
use crate::yaml::YamlErrors;
use crate::{manifest, source, tag, template, yaml};

/// A Claude turn to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedPrompt {
    /// The prompt, filled.
    pub prompt: String,
    /// The model the state takes.
    pub model: Option<ModelName>,
    /// The other options of the Claude Code turn, with their configurations read.
    pub options: TurnOptions,
    /// The places of the options.
    pub option_site: OptionSite,
    /// The options of an agent that begins here.
    pub agent_options: AgentOptions,
    /// The second check of transitions that the reply requests.
    pub evaluator: Option<Evaluator>,
    /// The transitions that the reply may request.
    pub policy: TransitionPolicy,
    /// The form of the reply, if it is an object that decides the transition.
    pub output: Option<OutputContract>,
    /// The rules for forking agents here.
    pub forks: ForkRules,
    /// The agents that the state waits for before it is asked.
    pub join: Option<Join>,
    /// Placeholders that nothing fills.
    pub unfilled: Vec<UnfilledPlaceholder>,
    /// The values that filled the other placeholders.
    pub values: Variables,
}

/// The file and the places of the options of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionSite {
    /// The file, as people see it.
    pub path: String,
    /// The places in it.
    pub places: OptionPlaces,
}

impl OptionSite {
    /// Returns the place of a part of an option, as text. Other options stand in the workflow's manifest.
    pub fn place_of(&self, key: &str, part: Option<&str>) -> String {
        match self.places.of(key, part) {
            Some(SourcePlace { line, column }) => format!("{}:{line}:{column}", self.path),
            None if self.places.is_empty() => self.path.clone(),
            None => manifest::FILE.to_owned(),
        }
    }
}

/// A placeholder that nothing fills, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnfilledPlaceholder {
    pub name: String,
    /// The file and the line.
    pub place: String,
}

/// Reads a prompt and takes it apart; the same text gives the same document.
pub type DocumentReader<'a> =
    dyn Fn(&StateName) -> Result<Rc<ExaminedDocument>, source::Error> + 'a;

/// Returns the prompt to ask in a state.
///
/// # Errors
/// [`Error`] if the state's file is missing or wrong.
pub fn step(
    position: &PromptContext,
    source: &dyn WorkflowSource,
) -> Result<PreparedPrompt, Error> {
    step_with(position, source, &|name| Ok(Rc::new(document::examine(&source.read(name)?))))
}

/// Returns the prompt to ask in a state, whose document is read by `read`.
///
/// # Errors
/// As [`step`].
pub fn step_with(
    position: &PromptContext,
    source: &dyn WorkflowSource,
    read: &DocumentReader<'_>,
) -> Result<PreparedPrompt, Error> {
    if !position.state.is_prompt() {
        return Err(Error::NotAPrompt { path: source.path(&position.state) });
    }
    let path = source.path(&position.state);
    let ExaminedDocument { document, places, errors } = Rc::unwrap_or_clone(read(&position.state)?);
    let wrong = |error| Error::Document { path: path.clone(), error };
    let PromptDocument { mut frontmatter, body, body_line } =
        errors.or_else_first(document).map_err(wrong)?;
    frontmatter.resolve_names(source);
    let values = position.values();
    let unfilled_of_entries = fill(&mut frontmatter, &values, &places);
    let output = contract(&frontmatter, &path, source)?;
    let mut options = frontmatter.options;
    let mut faults = YamlErrors::default();
    faults.add(embed_files(&mut options, &places.options, source));
    let options = faults.or_else_first(options).map_err(wrong)?;
    let filled = template::fill(&body, |name| placeholder(&values, name));
    Ok(PreparedPrompt {
        prompt: filled.text,
        model: frontmatter.model,
        options,
        option_site: OptionSite { path: path.clone(), places: places.options },
        agent_options: frontmatter.agent_options,
        evaluator: frontmatter.evaluator,
        policy: frontmatter.policy,
        output,
        forks: frontmatter.forks,
        join: frontmatter.join,
        unfilled: filled
            .unknown
            .into_iter()
            .map(|(name, line)| (name, line + body_line - 1))
            .chain(unfilled_of_entries)
            .map(|(name, line)| UnfilledPlaceholder { name, place: format!("{path}:{line}") })
            .collect(),
        values,
    })
}

/// Returns the form of a state's answer, if it has one.
fn contract(
    frontmatter: &Frontmatter,
    path: &str,
    source: &dyn WorkflowSource,
) -> Result<Option<OutputContract>, Error> {
    let Some(key) = &frontmatter.output else { return Ok(None) };
    key.load(source).map(Some).map_err(|SchemaError { file, error }| Error::Document {
        path: file.map_or_else(|| path.to_owned(), |file| source.path(&file)),
        error,
    })
}

/// Returns the turn of a graph's node or of a role, which only a result ends.
///
/// # Errors
/// [`Error`] if the schema of its answer is invalid.
pub fn task(position: &PromptContext, task: &PromptTask) -> Result<PreparedPrompt, Error> {
    let output = task.output.as_deref().map(OutputContract::of_task).transpose();
    let output = output.map_err(|message| Error::Document {
        path: task.name.to_string(),
        error: yaml::Error::new(SourcePlace::START, message),
    })?;
    Ok(PreparedPrompt {
        prompt: task.prompt.clone(),
        model: task.model.clone(),
        options: task.options.clone(),
        option_site: OptionSite { path: task.name.to_string(), places: OptionPlaces::default() },
        agent_options: AgentOptions::default(),
        evaluator: None,
        policy: TransitionPolicy::result(),
        output,
        forks: ForkRules::default(),
        join: None,
        unfilled: Vec::new(),
        values: position.values(),
    })
}

/// Returns the question to the evaluator about an agent's proposal. The answer has to be within the state's
/// policy. If no model is named, the cheapest one answers.
///
/// # Errors
/// [`Error`] if the state's file or the evaluator's is missing or wrong.
pub fn evaluation(
    position: &PromptContext,
    proposal: &TransitionProposal,
    source: &dyn WorkflowSource,
    read: &DocumentReader<'_>,
) -> Result<PreparedPrompt, Error> {
    let asked = step_with(position, source, read)?;
    let mut position = PromptContext { state: proposal.evaluator.clone(), ..position.clone() };
    position.variables.extend(evaluator::values(proposal));
    let options = step_with(&position, source, read)?;
    let model = match asked.evaluator {
        Some(Evaluator::Prompt { model, .. }) => model,
        _ => None,
    };
    Ok(PreparedPrompt {
        model: model.or(options.model).or(Some(ModelName::HAIKU)),
        policy: asked.policy,
        output: None,
        forks: asked.forks,
        join: None,
        evaluator: None,
        ..options
    })
}

/// Returns the agents that a state waits for before its prompt is asked.
///
/// # Errors
/// [`Error`] if the state's file is missing or wrong.
pub fn join(state: &StateName, source: &dyn WorkflowSource) -> Result<Option<Join>, Error> {
    join_with(state, source, &|name| Ok(Rc::new(document::examine(&source.read(name)?))))
}

/// Returns the agents that a state waits for, whose document is read by `read`.
///
/// # Errors
/// As [`join`].
pub fn join_with(
    state: &StateName,
    source: &dyn WorkflowSource,
    read: &DocumentReader<'_>,
) -> Result<Option<Join>, Error> {
    if !state.is_prompt() {
        return Ok(None);
    }
    let path = source.path(state);
    let ExaminedDocument { document, errors, .. } = Rc::unwrap_or_clone(read(state)?);
    let document =
        errors.or_else_first(document).map_err(|error| Error::Document { path, error })?;
    let mut join = document.frontmatter.join;
    if let Some(join) = &mut join {
        frontmatter::resolve_join(join, source);
    }
    Ok(join)
}

/// Returns the one transition that a reply requests, if the policy and the scope allow it.
///
/// # Errors
/// The [`ProtocolViolation`] that the agent may be asked to repair.
pub fn read(
    policy: &TransitionPolicy,
    source: &dyn WorkflowSource,
    reply: &str,
) -> Result<AcceptedTransition, ProtocolViolation> {
    let mut tags = tag::find(reply);
    for transition in tags.tags.iter_mut().flatten() {
        frontmatter::resolve_transition(transition, source);
    }
    let mut accepted = policy.judge(tags)?;
    check(&accepted.transition, source)?;
    scopes::fill_inputs(&mut accepted.transition, source)?;
    Ok(accepted)
}

/// Reads an answer whose form is given.
///
/// # Errors
/// The [`ProtocolViolation`] that the agent may be asked to repair.
pub fn read_output(
    contract: &OutputContract,
    source: &dyn WorkflowSource,
    reply: &TurnReply,
) -> Result<AcceptedTransition, ProtocolViolation> {
    let mut transition = contract.read(reply.structured.as_deref(), &reply.text)?;
    frontmatter::resolve_transition(&mut transition, source);
    check(&transition, source)?;
    scopes::fill_inputs(&mut transition, source)?;
    Ok(AcceptedTransition { transition, implicit: false, overruled: None })
}

/// Checks that the states that a transition names can be entered.
///
/// # Errors
/// [`ProtocolViolation::NoSuchState`].
pub fn check(
    transition: &Transition,
    source: &dyn WorkflowSource,
) -> Result<(), ProtocolViolation> {
    let here = transition.states().find_map(|state| frontmatter::why_no_state(state, source));
    let elsewhere = || {
        let mut crossings = transition.crossings();
        crossings.find_map(|(path, state)| frontmatter::why_no_entry(path, state, source))
    };
    match here.or_else(elsewhere) {
        None => Ok(()),
        Some(why) => Err(ProtocolViolation::NoSuchState { asked: transition.to_string(), why }),
    }
}

// Fills the placeholders in the entries of a policy, and in those of an evaluator's pattern, when the prompt is asked.
//
// The directory of a fork is left as it is: its placeholders are filled for each new agent. An inserted value gives the
// agent no choice that the entry does not give: a space before it keeps an empty text, and `any`, from meaning any.

/// Fills the entries. Returns the placeholders that nothing fills, with their lines.
pub(super) fn fill(
    frontmatter: &mut Frontmatter,
    values: &Variables,
    places: &FrontmatterPlaces,
) -> Vec<(String, u64)> {
    let mut unfilled = Vec::new();
    for (index, entry) in frontmatter.transitions_mut().enumerate() {
        let unknown = fill_entry(entry, values).into_iter();
        // Each entry of an evaluator or an output is one of the policy, too.
        if let Some(place) = places.entries.get(index) {
            unfilled.extend(unknown.map(|name| (name, place.entry.line)));
        }
    }
    unfilled
}

/// Fills an entry. Returns the placeholders that nothing fills.
pub(super) fn fill_entry(entry: &mut Transition, values: &Variables) -> Vec<String> {
    let mut unknown = Vec::new();
    entry.change_texts(|text, is_variable| {
        let filled = template::fill(text, |name| placeholder(values, name));
        unknown.extend(filled.unknown.into_iter().map(|(name, _)| name));
        *text = match filled.text.trim() {
            free @ ("" | ANY_LIST) if !is_variable && text.contains("{{") => format!(" {free}"),
            trimmed if !is_variable => trimmed.to_owned(),
            _ => filled.text,
        };
    });
    unknown
}

// The state of an agent when its prompt is rendered, and the values of all placeholders.

/// The placeholders that the runtime fills itself; no variable can take their names.
pub const RESERVED: [&str; 3] = ["workflow_id", "agent_id", "state"];

/// The placeholder for the run's id; `workflow_id` is its older name.
pub const RUN_ID: &str = "run_id";

/// Adds the placeholders that the runtime fills itself. A workflow's own `run_id` comes first.
pub fn add_reserved(values: &mut Variables, run: &RunId, agent: &AgentId, state: &StateName) {
    if values.get(RUN_ID).is_none() {
        values.insert(RUN_ID.to_owned(), run.to_string());
    }
    let ids = [run.as_str(), agent.as_str(), state.as_str()];
    values.extend(RESERVED.map(str::to_owned).into_iter().zip(ids.map(str::to_owned)));
}

/// The placeholder for the results of the agents that a state has waited for.
pub const RESULTS: &str = "results";

/// The placeholder for the path of the file with the results.
pub const RESULTS_FILE: &str = "results_file";

/// The results of the agents that a state has waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinResults {
    /// The list itself, for `{{results}}`.
    pub list: Arc<str>,
    /// The path of the file with the list, for `{{results_file}}`.
    pub file: String,
}

/// The state of an agent when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptContext {
    /// The run, for `{{run_id}}`.
    pub workflow: RunId,
    /// The agent, for `{{agent_id}}`.
    pub agent: AgentId,
    /// The state, for `{{state}}`.
    pub state: StateName,
    /// The agent's own variables, overridden by those the state was entered with.
    pub variables: Variables,
    /// The results of the agents that it has waited for.
    pub results: Option<JoinResults>,
    /// The values the run was started with; those of the agent come first.
    pub run_variables: Variables,
}

impl PromptContext {
    /// Returns all placeholders' values: the run's, then the agent's, then the runtime's. Later ones override.
    pub fn values(&self) -> Variables {
        let mut values = self.run_variables.clone();
        values.extend(self.variables.clone());
        if let Some(JoinResults { list, file }) = &self.results {
            values.insert(RESULTS.to_owned(), list.to_string());
            values.insert(RESULTS_FILE.to_owned(), file.clone());
        }
        add_reserved(&mut values, &self.workflow, &self.agent, &self.state);
        values
    }
}

// The terms that a state gives: the options of an agent that begins there, and the budget of a call that leads there.

/// Returns the options of an agent that begins in a state. A state that cannot be used gives default options: the
/// agent that starts there fails by itself, with the reason.
pub fn agent_options(state: &StateName, source: &dyn WorkflowSource) -> AgentOptions {
    if state.is_graph() {
        let text = source.read(state).unwrap_or_default();
        return first_agent_options(&text);
    }
    let text = state.is_prompt().then(|| source.read(state).ok()).flatten();
    let document = text.and_then(|text| document::parse(&text).ok());
    document.map(|document| document.frontmatter.agent_options).unwrap_or_default()
}

/// Returns the options of the agent that a transition forks, or default options if it forks none.
pub fn child_options(transition: &Transition, source: &dyn WorkflowSource) -> AgentOptions {
    match transition {
        Transition::Fork { target, scope, .. } => agent_options_at(scope.as_ref(), target, source),
        _ => AgentOptions::default(),
    }
}

/// Returns the budget of the call that a transition makes, if it is a call and the called state gives one.
pub fn call_budget(transition: &Transition, source: &dyn WorkflowSource) -> Option<Usd> {
    let (scope, target) = transition.entered().filter(|_| transition.is_call())?;
    agent_options_at(scope, target, source).budget_usd
}

/// Returns the options of an agent that begins in a state, which may be in another folder.
pub fn agent_options_at(
    scope: Option<&ScopePath>,
    state: &StateName,
    source: &dyn WorkflowSource,
) -> AgentOptions {
    match scope {
        None => agent_options(state, source),
        Some(path) => {
            source.scope(path).map(|there| agent_options(state, &*there)).unwrap_or_default()
        }
    }
}

/// Markdown that lies beside prompts and is for others.
const FOR_OTHERS: [&str; 4] = ["README.md", "CLAUDE.md", "AGENTS.md", "SKILL.md"];

/// Returns whether a file usually lies beside the prompts without being one.
pub fn is_for_others(name: &StateName) -> bool {
    FOR_OTHERS.iter().any(|file| file.eq_ignore_ascii_case(name.as_str()))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod filled_entries_tests {
    use super::*;
    use raymond_model::transition::TagName;

    fn filled(tag: TagName, attributes: &[(&str, &str)], body: &str) -> (Transition, Vec<String>) {
        let owned = attributes.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut entry = Transition::from_parts(tag, owned, body).expect("an entry");
        let values =
            [("a", "x {{b}} \"y\""), ("b", ""), ("list", " any "), ("o", r#"{"n":[1,2]}"#)];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let unknown = fill_entry(&mut entry, &values);
        (entry, unknown)
    }

    #[test]
    fn values_are_filled_once_and_unknown_placeholders_stay() {
        let (entry, unknown) =
            filled(TagName::Goto, &[("v", "-{{ a }}-"), ("w", "{{o.n[1]}}{{c}}")], "B.md");
        let value = |name: &str| entry.variables()[name].as_str();
        assert_eq!((value("v"), value("w")), ("-x {{b}} \"y\"-", "2{{c}}"));
        assert_eq!(unknown, ["c"]);
        assert_eq!(fill_entry(&mut entry.clone(), &Variables::new()), ["b", "c"]);
    }

    #[test]
    fn filled_entry_leaves_nothing_to_the_agent() {
        let (result, _) = filled(TagName::Result, &[], "{{b}}");
        assert!(matches!(&result, Transition::Result { payload, .. } if payload == " "));
        let (free, _) = filled(TagName::Result, &[], "");
        assert!(matches!(&free, Transition::Result { payload, .. } if payload.is_empty()));
        let list = |each: &str| match filled(
            TagName::Fork,
            &[("next", "N.md"), ("each", each), ("cwd", "{{a}}")],
            "W.md",
        )
        .0
        {
            Transition::Fork { each: Some(each), cwd, .. } => {
                (each.list, cwd.expect("a directory").to_string())
            }
            other => panic!("{other}"),
        };
        assert_eq!(list("{{list}}").0, " any");
        assert_eq!(list("any").0, "any");
        assert_eq!(list("{{o.n}}"), ("[1,2]".to_owned(), "{{a}}".to_owned()));
    }
}
