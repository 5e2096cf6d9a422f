//! The two questions a prompt folder answers: what to ask in a state, what a reply means there.

use std::sync::Arc;

use super::document::{self, PromptDocument};
use super::evaluator::{self, Evaluator};
use super::frontmatter::Frontmatter;
use super::kind::StateKind;
use crate::domain::agent::AgentTerms;
use crate::domain::evaluation::TransitionProposal;
use crate::domain::fan_out::ForkRules;
use crate::domain::graph::PromptTask;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::join::Join;
use crate::domain::model::ModelName;
use crate::domain::policy::{AcceptedTransition, ProtocolViolation, TransitionPolicy};
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::TurnReply;
use crate::domain::turn_options::TurnOptions;
use crate::language::output::{OutputContract, SchemaError, placeholder};
use crate::language::place::SourcePlace;
use crate::language::source::{self, WorkflowSource};
use crate::language::turn_options::{OptionPlaces, embed_files};
use crate::language::yaml::YamlErrors;
use crate::language::{manifest, tag, template, yaml};

/// The placeholders that the runtime fills itself; no variable can take their names.
pub const RESERVED: [&str; 3] = ["workflow_id", "agent_id", "state"];

/// The placeholder that has what came of the agents a state has waited for.
pub const RESULTS: &str = "results";

/// The one that has the path of a file with the same.
pub const RESULTS_FILE: &str = "results_file";

/// What came of the agents a state has waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinResults {
    /// The list itself, for `{{results}}`.
    pub list: Arc<str>,
    /// The path of a file with the same, for `{{results_file}}`.
    pub file: String,
}

/// Where an agent stands when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptContext {
    /// The run, for `{{workflow_id}}`.
    pub workflow: RunId,
    /// The agent, for `{{agent_id}}`.
    pub agent: AgentId,
    /// The state, for `{{state}}`.
    pub state: StateName,
    /// The values of the state's own placeholders.
    pub variables: Variables,
    /// What came of the agents it has waited for.
    pub results: Option<JoinResults>,
    /// The values the run was started with; the state's own come first.
    pub run_variables: Variables,
}

/// A Claude turn to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedPrompt {
    /// The prompt, filled.
    pub prompt: String,
    /// The model the state takes.
    pub model: Option<ModelName>,
    /// What else the state needs of Claude Code, its configurations read.
    pub options: TurnOptions,
    /// Where that stands.
    pub option_site: OptionSite,
    /// Under which terms an agent lives that is born here.
    pub terms: AgentTerms,
    /// Who takes a second look at what the reply asks for.
    pub evaluator: Option<Evaluator>,
    /// What the reply may ask for.
    pub policy: TransitionPolicy,
    /// The form of the reply, if it is an object that decides what follows.
    pub output: Option<OutputContract>,
    /// How agents are forked here.
    pub forks: ForkRules,
    /// For which agents it is waited before it is asked.
    pub join: Option<Join>,
    /// Placeholders that nothing fills.
    pub unfilled: Vec<UnfilledPlaceholder>,
    /// What filled the others.
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
    /// Returns the place of a part of an option, as text. What does not stand in the file stands in
    /// the workflow's manifest.
    #[must_use]
    pub fn place_of(&self, key: &str, part: Option<&str>) -> String {
        match self.places.of(key, part) {
            Some(SourcePlace { line, column }) => format!("{}:{line}:{column}", self.path),
            None if self.places.is_empty() => self.path.clone(),
            None => manifest::FILE.to_owned(),
        }
    }
}

/// A placeholder that nothing fills, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnfilledPlaceholder {
    /// Its name.
    pub name: String,
    /// The file and the line.
    pub place: String,
}

/// Why a state cannot be asked. Each text begins with the file, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its file cannot be used.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// Its file is of another kind.
    #[error(
        "{path}: this is no state: a state is a prompt, NAME.md, a graph, NAME.yaml, or a program, NAME.lisp or NAME.duet"
    )]
    NotAPrompt {
        /// The file.
        path: String,
    },
    /// Its file does not say what it should.
    #[error("{path}:{error}")]
    Document {
        /// The file.
        path: String,
        /// What is wrong in it, and where.
        error: yaml::Error,
    },
}

/// What to ask in a state.
///
/// # Errors
/// [`Error`] if the state's file is missing or wrong.
pub fn step(
    position: &PromptContext,
    source: &dyn WorkflowSource,
) -> Result<PreparedPrompt, Error> {
    if !position.state.is_prompt() {
        return Err(Error::NotAPrompt { path: source.path(&position.state) });
    }
    let text = source.read(&position.state)?;
    let path = source.path(&position.state);
    let document::ExaminedDocument { document, places, errors } = document::examine(&text);
    let wrong = |error| Error::Document { path: path.clone(), error };
    let PromptDocument { frontmatter, body, body_line } =
        errors.or_else_first(document).map_err(wrong)?;
    let output = contract(&frontmatter, &path, source)?;
    let mut options = frontmatter.options;
    let mut faults = YamlErrors::default();
    faults.add_options(embed_files(&mut options, &places.options, source));
    let options = faults.or_else_first(options).map_err(wrong)?;
    let values = position.values();
    let filled = template::fill(&body, |name| placeholder(&values, name));
    Ok(PreparedPrompt {
        prompt: filled.text,
        model: frontmatter.model,
        options,
        option_site: OptionSite { path: path.clone(), places: places.options },
        terms: frontmatter.terms,
        evaluator: frontmatter.evaluator,
        policy: frontmatter.policy,
        output,
        forks: frontmatter.forks,
        join: frontmatter.join,
        unfilled: filled
            .unknown
            .into_iter()
            .map(|(name, line)| UnfilledPlaceholder {
                name,
                place: format!("{path}:{}", line + body_line - 1),
            })
            .collect(),
        values,
    })
}

/// The form of a state's answer, if it has one.
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
/// [`Error`] if the schema of its answer is none.
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
        terms: AgentTerms::default(),
        evaluator: None,
        policy: TransitionPolicy::result(),
        output,
        forks: ForkRules::default(),
        join: None,
        unfilled: Vec::new(),
        values: position.values(),
    })
}

/// What to ask the evaluator of what an agent wants in a state; the answer has to be within the
/// state's policy. Without a word on the model it is the cheapest.
///
/// # Errors
/// [`Error`] if the state's file or the evaluator's is missing or wrong.
pub fn evaluation(
    position: &PromptContext,
    proposal: &TransitionProposal,
    source: &dyn WorkflowSource,
) -> Result<PreparedPrompt, Error> {
    let asked = step(position, source)?;
    let mut position = PromptContext { state: proposal.evaluator.clone(), ..position.clone() };
    position.variables.extend(evaluator::values(proposal));
    let own = step(&position, source)?;
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

/// For which agents it is waited in a state, before its prompt is asked.
///
/// # Errors
/// [`Error`] if the state's file is missing or wrong.
pub fn join(state: &StateName, source: &dyn WorkflowSource) -> Result<Option<Join>, Error> {
    if !state.is_prompt() {
        return Ok(None);
    }
    let text = source.read(state)?;
    let path = source.path(state);
    let document = document::parse(&text).map_err(|error| Error::Document { path, error })?;
    Ok(document.frontmatter.join)
}

/// Under which terms an agent lives that is born in a state. A state that cannot be used has none:
/// the agent that is born there fails by itself, with the reason.
#[must_use]
pub fn terms(state: &StateName, source: &dyn WorkflowSource) -> AgentTerms {
    let text = state.is_prompt().then(|| source.read(state).ok()).flatten();
    let document = text.and_then(|text| document::parse(&text).ok());
    document.map(|document| document.frontmatter.terms).unwrap_or_default()
}

/// Under which terms the agent lives that a transition forks, if it forks one.
#[must_use]
pub fn terms_of_child(transition: &Transition, source: &dyn WorkflowSource) -> AgentTerms {
    match transition {
        Transition::Fork { target, .. } => terms(target, source),
        _ => AgentTerms::default(),
    }
}

/// What a reply means: the one transition it asks for, if the policy and the scope allow it.
///
/// # Errors
/// The [`ProtocolViolation`] the agent may be asked to repair.
pub fn read(
    policy: &TransitionPolicy,
    source: &dyn WorkflowSource,
    reply: &str,
) -> Result<AcceptedTransition, ProtocolViolation> {
    let accepted = policy.judge(tag::find(reply))?;
    check(&accepted.transition, source)?;
    Ok(accepted)
}

/// Reads what an answer means where its form is given.
///
/// # Errors
/// The [`ProtocolViolation`] the agent may be asked to repair.
pub fn read_output(
    contract: &OutputContract,
    source: &dyn WorkflowSource,
    reply: &TurnReply,
) -> Result<AcceptedTransition, ProtocolViolation> {
    let transition = contract.read(reply.structured.as_deref(), &reply.text)?;
    check(&transition, source)?;
    Ok(AcceptedTransition { transition, implicit: false, overruled: None })
}

/// Whether the states that a transition names can be entered.
///
/// # Errors
/// [`ProtocolViolation::NoSuchState`].
pub fn check(
    transition: &Transition,
    source: &dyn WorkflowSource,
) -> Result<(), ProtocolViolation> {
    for state in transition.states() {
        let no_such_state = |why: Error| ProtocolViolation::NoSuchState {
            asked: transition.to_string(),
            why: why.to_string(),
        };
        source.check(state).map_err(|error| no_such_state(error.into()))?;
        if StateKind::of(state).is_none() {
            return Err(no_such_state(Error::NotAPrompt { path: source.path(state) }));
        }
    }
    Ok(())
}

impl PromptContext {
    /// The values of all placeholders: the run's, over them the state's own, over them the
    /// runtime's, whose names cannot be taken.
    #[must_use]
    pub fn values(&self) -> Variables {
        let mut values = self.run_variables.clone();
        values.extend(self.variables.clone());
        if let Some(JoinResults { list, file }) = &self.results {
            values.insert(RESULTS.to_owned(), list.to_string());
            values.insert(RESULTS_FILE.to_owned(), file.clone());
        }
        let own = [self.workflow.as_str(), self.agent.as_str(), self.state.as_str()];
        values.extend(RESERVED.map(str::to_owned).into_iter().zip(own.map(str::to_owned)));
        values
    }
}

#[cfg(test)]
mod tests;
