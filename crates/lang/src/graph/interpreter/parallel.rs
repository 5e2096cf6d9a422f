//! Starts agents that work at the same time and takes in their results, makes requests to others, and ends a graph.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use raymond_model::advance::AdvanceNext;
use raymond_model::agent::AgentSpec;
use raymond_model::event::NextAction;
use raymond_model::graph_execution::{
    GraphStateChange, LoopFrame, LoopItems, OutputFormat, PromptTask,
};
use raymond_model::id::{Folder, StateName};
use raymond_model::join::Join;
use raymond_model::question::{OTHER, Question, QuestionOption};
use raymond_model::transition::Variables;
use serde_json::{Map, Value, json};

use super::results::{ActionOutcome, as_data, shown};
use super::{GraphInterpreter, GraphYield};
use crate::expression::{ValueTemplate, text};
use crate::graph::agent_states::FIRST_STATE;
use crate::graph::checked_graph::{
    GraphEnding, GraphNodeName, NodeTurn, ParallelAgents, ParallelNode, ReferenceNode,
    ReferenceText, SpawnTask, UserPrompt,
};
use crate::graph::companions::section;
use crate::graph::contract;
use crate::replies::branch_key;
use crate::yaml::tree::YamlFileKind;
use crate::yaml::{YamlContent, tree};

// Starts agents that work at the same time, and takes in their results when the join is settled.
//
// Each start is a separate record, and so is the wait. The cursor has the ids of the agents that were started, so after
// a crash the next agent is started, and none is started twice.

/// The number of agents whose failures are named.
const MAX_NAMED: usize = 8;

/// The progress of agents that work at the same time.
enum ParallelProgress {
    Needs(GraphYield),
    Joined(Vec<AgentOutcome>),
}

/// The result of an agent, or the reason why it has none.
type AgentOutcome = Result<Value, String>;

impl GraphInterpreter {
    /// Executes a `parallel` node.
    pub(super) fn parallel_node(&mut self, node: &ParallelNode) -> Option<GraphYield> {
        match self.parallel_branches(node) {
            Ok(Some(need)) => Some(need),
            Ok(None) => self.leave("success", None, &node.on_success),
            Err(why) => self.leave("failure", Some(why), &node.on_failure),
        }
    }

    fn parallel_branches(&mut self, node: &ParallelNode) -> Result<Option<GraphYield>, String> {
        let branches = &node.branches;
        let spec = |this: &mut Self, at: usize| {
            this.agent_of(&branches[at].task, Some(&branches[at].name))
        };
        let outcomes = match self.in_parallel(branches.len(), &node.join, spec)? {
            ParallelProgress::Needs(need) => return Ok(Some(need)),
            ParallelProgress::Joined(outcomes) => outcomes,
        };
        let settled = settled(&node.join, &outcomes, |at| branches[at].name.clone());
        for (branch, outcome) in branches.iter().zip(outcomes) {
            let path = vec!["computed".to_owned(), branch.name.clone()];
            self.change(GraphStateChange::Set(path, outcome.unwrap_or_default()))?;
        }
        settled.map(|()| None)
    }

    /// Executes `spawn_agents_parallel`.
    pub(super) fn parallel_action(
        &mut self,
        agents: &ParallelAgents,
    ) -> Result<ActionOutcome, String> {
        let items = match self.fill(&agents.items)? {
            Value::String(path) => self.elements_at(&path)?,
            other => other,
        };
        let Value::Array(items) = items else {
            return Err("WF403 `foreach` is the path of no list".to_owned());
        };
        if items.is_empty() {
            return self.stored(Some(&agents.store), items.into());
        }
        let items = Arc::new(items);
        let spec = |this: &mut Self, at: usize| {
            let each = LoopItems { name: agents.name.clone(), items: Arc::clone(&items), at };
            // The prompt sees the item as in a loop.
            this.state.cursor.levels.push(LoopFrame { action: 0, each: Some(each) });
            let spec = this.agent_of(&agents.task, None);
            this.state.cursor.levels.pop();
            spec
        };
        let outcomes = match self.in_parallel(items.len(), &agents.join, spec)? {
            ParallelProgress::Needs(need) => return Ok(ActionOutcome::Needs(need)),
            ParallelProgress::Joined(outcomes) => outcomes,
        };
        let settled = settled(&agents.join, &outcomes, |at| match items[at].get("id") {
            Some(Value::String(id)) => id.clone(),
            _ => format!("item {}", at + 1),
        });
        let results: Value = outcomes.into_iter().map(Result::unwrap_or_default).collect();
        self.stored(Some(&agents.store), results)?;
        settled.map(|()| ActionOutcome::Done)
    }

    /// Starts the next agent, or waits for all, or takes in their results.
    fn in_parallel(
        &mut self,
        count: usize,
        join: &Join,
        mut spec: impl FnMut(&mut Self, usize) -> Result<AgentSpec, String>,
    ) -> Result<ParallelProgress, String> {
        let mut started = match self.state.cursor.partial.take() {
            Some(Value::Array(started)) => started,
            _ => Vec::new(),
        };
        let came = self.take_result().transpose()?;
        if started.len() == count
            && let Some(list) = &came
        {
            return Ok(ParallelProgress::Joined(outcomes(&started, list)));
        }
        started.extend(came);
        let next = if started.len() < count {
            let spec = Box::new(spec(self, started.len())?);
            NextAction::Agent { spec, background: false, joined: true }
        } else {
            NextAction::Join(Box::new(join.clone()))
        };
        self.state.cursor.partial = Some(started.into());
        Ok(ParallelProgress::Needs(GraphYield::action(next)))
    }
}

/// Returns the outcomes of the agents in their order.
fn outcomes(started: &[Value], list: &Value) -> Vec<AgentOutcome> {
    let ended: HashMap<&str, &Value> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|outcome| Some((outcome["id"].as_str()?, outcome)))
        .collect();
    let outcome = |id: &Value| {
        let found = id.as_str().and_then(|id| ended.get(id));
        let outcome = found.ok_or("its end is unknown")?;
        if let Some(result) = outcome.get("result") {
            return Ok(of_agent(result.clone()));
        }
        let status = outcome["status"].as_str().unwrap_or("unknown");
        Err(outcome["error"].as_str().map_or_else(|| format!("it is {status}"), str::to_owned))
    };
    started.iter().map(outcome).collect()
}

/// Returns the result of an agent: data if it is JSON or a YAML mapping or list, also in a fence; else its text.
fn of_agent(result: Value) -> Value {
    let data = as_data(result);
    let Value::String(text) = &data else { return data };
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.and_then(|rest| rest.split_once('\n')).map_or(trimmed, |(_, inner)| inner);
    if inner.is_empty() || inner.contains("${") {
        return data;
    }
    match tree::parse(YamlFileKind::GRAPH, inner) {
        (Some(value), faults)
            if faults.is_empty()
                && matches!(value.value, YamlContent::Map(_) | YamlContent::List(_)) =>
        {
            value.json()
        }
        _ if text.is_empty() => json!(""),
        _ => data,
    }
}

/// Returns an error if too few of the agents have a result.
fn settled(
    join: &Join,
    outcomes: &[AgentOutcome],
    name: impl Fn(usize) -> String,
) -> Result<(), String> {
    let count = outcomes.len();
    let has_result = |outcome: &&AgentOutcome| outcome.as_ref().is_ok_and(|value| !value.is_null());
    let done = outcomes.iter().filter(has_result).count();
    let needed = join.needs(u32::try_from(count).unwrap_or(u32::MAX));
    if u32::try_from(done).unwrap_or(u32::MAX) >= needed {
        return Ok(());
    }
    let failed = outcomes.iter().enumerate().filter_map(|(at, outcome)| {
        outcome.as_ref().err().map(|why| format!("{}: {why}", name(at)))
    });
    let named: Vec<String> = failed.take(MAX_NAMED).collect();
    Err(format!(
        "{done} of {count} agents have a result (join: {}): {}",
        join.need,
        named.join("; ")
    ))
}

// The requests to others: a turn of Claude Code, a further agent, a question to a person.

impl GraphInterpreter {
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
                let arguments = self.optional_text(arguments.as_ref())?;
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

    /// Returns a further agent, in a `parallel` node the one of a branch.
    pub(super) fn agent_of(
        &mut self,
        task: &SpawnTask,
        branch: Option<&str>,
    ) -> Result<AgentSpec, String> {
        match task {
            SpawnTask::Prompt { kind, prompt } => {
                let kind = self.optional_text(kind.as_ref())?;
                let prompt = contract::agent(kind.as_deref(), &self.text(prompt)?);
                let task = Some(Box::new(self.task(&prompt, OutputFormat::Text, branch)));
                let folder = self.around.folder.clone();
                Ok(AgentSpec { folder, task, ..AgentSpec::plain(self.around.file.clone()) })
            }
            SpawnTask::State { folder, state, variables } => {
                let below = self.optional_text(folder.as_ref())?;
                let below = below.map(|below| Folder::parse(&below)).transpose();
                let folder = match (self.around.folder.clone(), below.map_err(words)?) {
                    (Some(here), Some(below)) => Some(here.join(&below)),
                    (here, below) => below.or(here),
                };
                let state = self.optional_text(state.as_ref())?;
                let state =
                    StateName::parse(state.as_deref().unwrap_or(FIRST_STATE)).map_err(words)?;
                let variables = texts(&self.fill(variables)?)?;
                Ok(AgentSpec { folder, variables, ..AgentSpec::plain(state) })
            }
        }
    }

    /// Returns the question of a node.
    pub(super) fn question(&mut self, prompt: &UserPrompt) -> Result<GraphYield, String> {
        let from_state = match &prompt.from_state {
            Some(from) => self.options_of(from)?.into_iter().map(|(option, _)| option).collect(),
            None => Vec::new(),
        };
        let options = prompt.options.iter().map(|option| {
            let description = self.optional_text(option.description.as_ref())?;
            Ok(QuestionOption {
                id: option.id.clone(),
                label: self.text(&option.label)?,
                description: description.unwrap_or_default(),
            })
        });
        let mut options = options.collect::<Result<Vec<_>, String>>()?;
        options.extend(from_state);
        let header = self.optional_text(prompt.header.as_ref())?;
        let question = Question {
            node: self.state.current_node.to_string(),
            text: self.text(&prompt.question)?,
            header,
            options,
            free: prompt.responses.contains_key(OTHER),
        };
        Ok(GraphYield::action(NextAction::Question(Box::new(question))))
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

// The endings of a graph: the message for people, and the result.
//
// The result is always one JSON object: `ending`, `type`, `message`, and `summary`, `details`, `recovery`
// if the ending has them.

impl GraphInterpreter {
    pub(super) fn end(
        &mut self,
        name: &GraphNodeName,
        ending: &GraphEnding,
    ) -> Result<AdvanceNext, String> {
        // Report an error even if a part of its text has no value, rather than hide the rest.
        let mut fill = |template: Option<&ValueTemplate>| {
            if ending.success {
                template.map(|text| self.fill(text)).transpose()
            } else {
                Ok(template.map(|text| self.fill_known(text)))
            }
        };
        let message = fill(Some(&ending.message))?;
        let message = message.as_ref().map(shown).unwrap_or_default();
        let summary = fill(ending.summary.as_ref())?;
        let details = fill(ending.details.as_ref())?;
        let recovery = fill(ending.recovery.as_ref())?;
        let delegate = fill(ending.delegate.as_ref())?;
        let code = fill(ending.code.as_ref())?;
        let mut lines = Vec::from_iter((!message.is_empty()).then(|| message.clone()));
        if ending.success {
            lines.extend(listed(summary.as_ref()));
        } else {
            lines.extend(details.as_ref().map(shown));
            lines.extend(recovery.iter().flat_map(advice));
        }
        let skill = delegate.as_ref().and_then(|delegate| delegate.get("skill"));
        lines.extend(skill.map(|skill| format!("Continue with: /{}", name_of(&shown(skill)))));
        let report = lines.join("\n");
        if !report.is_empty() {
            self.shown.push(report.clone());
        }
        let mut given = Map::new();
        given.insert("ending".to_owned(), name.to_string().into());
        let kind = if ending.success { "success" } else { "error" };
        given.insert("type".to_owned(), kind.into());
        given.insert("message".to_owned(), message.into());
        for (key, value) in [
            ("summary", summary),
            ("details", details),
            ("recovery", recovery),
            ("delegate", delegate),
            ("code", code),
        ] {
            given.extend(value.map(|value| (key.to_owned(), value)));
        }
        let error = (!ending.success).then_some(report);
        Ok(AdvanceNext::End { payload: Value::Object(given).to_string(), error })
    }

    /// Ends a graph whose entry preconditions do not hold.
    pub(super) fn turned_away(&mut self, why: &str) -> GraphYield {
        let message = format!("Entry gate failed: {why}");
        self.shown.push(message.clone());
        let given = json!({ "ending": "entry_gate", "type": "error", "message": message });
        let error = Some(format!("WF401 {message}"));
        GraphYield::Record(AdvanceNext::End { payload: given.to_string(), error })
    }
}

/// Returns the lines that suggest what to do after an error: a skill, or the text itself if it is not a name.
fn advice(recovery: &Value) -> Vec<String> {
    let skill = |skill: &str| format!("Try running: /{}", name_of(skill));
    match recovery {
        Value::Object(map) => {
            let suggestion = map.get("suggestion").map(shown);
            let related = map.get("related_skill").map(|name| skill(&shown(name)));
            suggestion.into_iter().chain(related).collect()
        }
        other => {
            let text = shown(other);
            let is_name = !text.trim().contains(char::is_whitespace);
            vec![if is_name { skill(text.trim()) } else { text.trim_end().to_owned() }]
        }
    }
}

fn name_of(skill: &str) -> &str {
    skill.trim_start_matches('/')
}

/// Returns the lines of a summary, one per entry.
fn listed(summary: Option<&Value>) -> Vec<String> {
    match summary {
        Some(Value::Object(map)) => {
            map.iter().map(|(key, value)| format!("  {key}: {}", shown(value))).collect()
        }
        Some(other) => vec![shown(other)],
        None => Vec::new(),
    }
}
