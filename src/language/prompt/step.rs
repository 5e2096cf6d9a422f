//! The two questions a prompt folder answers: the prompt to ask in a state, and the meaning of a reply there.

use std::rc::Rc;

pub use super::agent_terms::{agent_options, call_budget, child_options};
pub use super::context::{JoinResults, PromptContext, RESERVED, RESULTS, RESULTS_FILE, RUN_ID};
use super::document::{self, ExaminedDocument, PromptDocument};
use super::evaluator::{self, Evaluator};
use super::frontmatter::Frontmatter;
pub use super::state_error::Error;
use super::{filled_entries, named, scopes};
use crate::domain::agent::AgentOptions;
use crate::domain::evaluation::TransitionProposal;
use crate::domain::fork::ForkRules;
use crate::domain::graph_execution::PromptTask;
use crate::domain::id::StateName;
use crate::domain::join::Join;
use crate::domain::model::ModelName;
use crate::domain::policy::{AcceptedTransition, ProtocolViolation, TransitionPolicy};
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::TurnReply;
use crate::domain::turn_options::TurnOptions;
use crate::language::output::{OutputContract, SchemaError, placeholder};
use crate::language::position::SourcePlace;
use crate::language::source::{self, WorkflowSource};
use crate::language::turn_options::{OptionPlaces, embed_files};
use crate::language::yaml::YamlErrors;
use crate::language::{manifest, tag, template, yaml};

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
    /// Its name.
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
    let unfilled_of_entries = filled_entries::fill(&mut frontmatter, &values, &places);
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
        error: yaml::Error { line: 1, column: 1, message },
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
    let own = step_with(&position, source, read)?;
    let model = match asked.evaluator {
        Some(Evaluator::Prompt { model, .. }) => model,
        _ => None,
    };
    Ok(PreparedPrompt {
        model: model.or(own.model).or(Some(ModelName::HAIKU)),
        policy: asked.policy,
        output: None,
        forks: asked.forks,
        join: None,
        evaluator: None,
        ..own
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
        named::resolve_join(join, source);
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
        named::resolve_transition(transition, source);
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
    named::resolve_transition(&mut transition, source);
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
    let here = transition.states().find_map(|state| named::why_no_state(state, source));
    let elsewhere = || {
        let mut crossings = transition.crossings();
        crossings.find_map(|(path, state)| named::why_no_entry(path, state, source))
    };
    match here.or_else(elsewhere) {
        None => Ok(()),
        Some(why) => Err(ProtocolViolation::NoSuchState { asked: transition.to_string(), why }),
    }
}

#[cfg(test)]
mod tests;
