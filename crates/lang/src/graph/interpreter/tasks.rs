//! The requests to others: a turn of Claude Code, a further agent, a question to a person.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::{GraphInterpreter, GraphYield};
use crate::expression::{ValueTemplate, text};
use crate::graph::begun_states::FIRST_STATE;
use crate::graph::checked_graph::{
    AgentSpawn, NodeTurn, ReferenceNode, ReferenceText, SpawnTask, UserPrompt,
};
use crate::graph::companions::section;
use crate::graph::contract;
use crate::replies::branch_key;
use raymond_model::advance::AdvanceNext;
use raymond_model::agent::AgentSpec;
use raymond_model::graph_execution::{OutputFormat, PromptTask};
use raymond_model::id::{Folder, StateName};
use raymond_model::question::{OTHER, Question, QuestionOption};
use raymond_model::transition::Variables;

impl GraphInterpreter<'_> {
    /// Returns the task that carries out a document or a skill.
    pub(super) fn task_of(&mut self, reference: &ReferenceNode) -> Result<PromptTask, String> {
        let context = self.fill(&reference.context)?;
        let prompt = match &reference.text {
            ReferenceText::Document { path, section, choose: None, text } => {
                contract::document(path, section.as_deref(), text, &context)
            }
            ReferenceText::Document { path, choose: Some(choose), text, .. } => {
                let title = self.text(choose)?;
                let part = section(text, &title).map_or_else(
                    || {
                        let lost = format!("warning: WF321 {path} has no section `{title}`");
                        self.shown.push(format!("{lost}; Claude Code gets the whole document"));
                        Cow::Owned(contract::without_heading(text, &title))
                    },
                    Cow::Borrowed,
                );
                contract::document(path, Some(&title), &part, &context)
            }
            ReferenceText::Skill { name, arguments } => {
                let name = self.text(name)?;
                let arguments =
                    arguments.as_ref().map(|arguments| self.text(arguments)).transpose()?;
                contract::skill(&name, arguments.as_deref(), &context)
            }
        };
        Ok(self.task(&prompt, OutputFormat::Outputs, None))
    }

    /// Returns the task about a page.
    pub(super) fn task_about(
        &mut self,
        page: &Value,
        prompt: &ValueTemplate,
    ) -> Result<PromptTask, String> {
        let prompt = self.text(prompt)?;
        Ok(self.task(&contract::page(&prompt, page), OutputFormat::Text, None))
    }

    /// Returns the task that asks for a value which is only described.
    pub(super) fn task_of_prose(&mut self, prose: &ValueTemplate) -> Result<PromptTask, String> {
        let prose = self.text(prose)?;
        let state = Value::Object(self.state.fields.clone());
        Ok(self.task(&contract::prose(&prose, &state), OutputFormat::Text, None))
    }

    /// Returns a task with the model, the options and the output schema of its node. The task of a branch is named
    /// after it.
    fn task(&self, prompt: &str, contract: OutputFormat, branch: Option<&str>) -> PromptTask {
        let file = &self.around.file;
        let node = &self.state.current_node;
        let name = match branch {
            Some(branch) => format!("{file}#{}", branch_key(node, branch)),
            None => format!("{file}#{node}"),
        };
        let name = StateName::parse(&name).unwrap_or_else(|_| file.clone());
        let NodeTurn { model, options, output, .. } =
            self.graph.turns.get(node).cloned().unwrap_or_default();
        let contract = if output.is_some() { OutputFormat::Object } else { contract };
        PromptTask {
            prompt: contract::with_ending(prompt, contract),
            model: model.or_else(|| self.graph.model.clone()),
            options,
            output: output.map(|schema| Arc::clone(schema.text())),
            contract,
            expect: Vec::new(),
            name,
        }
    }

    /// Returns the next action that creates a further agent, in a `parallel` node the one of a branch.
    pub(super) fn spawn_agent(
        &mut self,
        spawn: &AgentSpawn,
        branch: Option<&str>,
    ) -> Result<AdvanceNext, String> {
        let spec = match &spawn.task {
            SpawnTask::Prompt { kind, prompt } => {
                let kind = kind.as_ref().map(|kind| self.text(kind)).transpose()?;
                let prompt = contract::agent(kind.as_deref(), &self.text(prompt)?);
                let task = self.task(&prompt, OutputFormat::Text, branch);
                let plain = AgentSpec::plain(self.around.file.clone());
                AgentSpec {
                    folder: self.around.folder.clone(),
                    task: Some(Box::new(task)),
                    ..plain
                }
            }
            SpawnTask::State { folder, state, variables } => {
                let below = folder.as_ref().map(|folder| self.text(folder)).transpose()?;
                let below = below.map(|below| Folder::parse(&below)).transpose();
                let folder = match (self.around.folder.clone(), below.map_err(words)?) {
                    (Some(here), Some(below)) => Some(here.join(&below)),
                    (here, below) => below.or(here),
                };
                let state = state.as_ref().map(|state| self.text(state)).transpose()?;
                let state =
                    StateName::parse(state.as_deref().unwrap_or(FIRST_STATE)).map_err(words)?;
                let variables = texts(&self.fill(variables)?)?;
                AgentSpec { folder, variables, ..AgentSpec::plain(state) }
            }
        };
        let background = match &spawn.background {
            Some(background) => self.boolean("run_in_background", background)?,
            None => false,
        };
        Ok(AdvanceNext::Agent { spec: Box::new(spec), background, joined: false })
    }

    /// Returns the question of a node.
    pub(super) fn question(&mut self, prompt: &UserPrompt) -> Result<GraphYield, String> {
        let from_state = match &prompt.from_state {
            Some(from) => self.options_of(from)?.into_iter().map(|(option, _)| option).collect(),
            None => Vec::new(),
        };
        let options = prompt.options.iter().map(|option| {
            let description = option.description.as_ref().map(|text| self.text(text));
            Ok(QuestionOption {
                id: option.id.clone(),
                label: self.text(&option.label)?,
                description: description.transpose()?.unwrap_or_default(),
            })
        });
        let mut options = options.collect::<Result<Vec<_>, String>>()?;
        options.extend(from_state);
        let header = prompt.header.as_ref().map(|header| self.text(header)).transpose()?;
        let question = Question {
            node: self.state.current_node.to_string(),
            text: self.text(&prompt.question)?,
            header,
            options,
            free: prompt.responses.contains_key(OTHER),
        };
        Ok(GraphYield::Record(AdvanceNext::Question(Box::new(question))))
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns values for placeholders from a map: texts as they are, others as JSON.
fn texts(map: &Value) -> Result<Variables, String> {
    let map = match map {
        Value::Null => return Ok(Variables::new()),
        Value::Object(map) => map,
        _ => return Err("`variables` is not a map".to_owned()),
    };
    Ok(map.iter().map(|(name, value)| (name.clone(), text(value).into_owned())).collect())
}
