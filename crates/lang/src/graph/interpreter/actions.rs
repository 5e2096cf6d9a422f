//! Carries out consequences in order, and fills the parameters of their operations.
//!
//! The first consequence that fails ends the list.

use std::sync::Arc;

use raymond_model::event::NextAction;
use raymond_model::graph_execution::{GraphStateChange, LoopFrame, LoopItems, WaitResult};
use raymond_model::graph_types::{PACKS, ParameterKind};
use raymond_model::operation::Operation;
use serde_json::{Map, Number, Value};

use crate::expression::{ValueTemplate, as_text, truth};
use crate::graph::checked_graph::{ActionKind, AgentSpawn, OperationTemplate, ReferenceNode};
use crate::graph::interpreter::results::{ActionOutcome, as_data, hash, is_page, needs_turn};
use crate::graph::interpreter::{ActionProgress, GraphAction, GraphInterpreter, GraphYield, log};
use crate::graph::vocabulary::parameter_kind;

impl GraphInterpreter {
    pub(super) fn actions(&mut self, root: &[GraphAction]) -> ActionProgress {
        if self.state.cursor.levels.is_empty() {
            self.state.cursor.levels.push(LoopFrame::default());
        }
        loop {
            if self.is_to_be_cut() && self.state.cursor.partial.is_none() {
                return ActionProgress::Needs(GraphYield::action(NextAction::Walk));
            }
            self.fuel.spend_action();
            let list = self.inner(root);
            let Some(level) = self.state.cursor.levels.last_mut() else {
                return ActionProgress::Over(Ok(()));
            };
            let Some(action) = list.get(level.action) else {
                if self.step_out() {
                    continue;
                }
                return ActionProgress::Over(Ok(()));
            };
            match self.act(action) {
                Ok(ActionOutcome::Done) => self.step_on(),
                Ok(ActionOutcome::Loop(each)) if each.items.is_empty() => self.step_on(),
                Ok(ActionOutcome::Loop(each)) => {
                    self.state.cursor.levels.push(LoopFrame { action: 0, each: Some(each) });
                }
                Ok(ActionOutcome::Needs(need)) => return ActionProgress::Needs(need),
                Err(why) => return ActionProgress::Over(Err(format!("{}: {why}", action.kind))),
            }
        }
    }

    /// Returns the current list: the node's own, or that of a loop in it.
    fn inner<'actions>(&self, root: &'actions [GraphAction]) -> &'actions [GraphAction] {
        let levels = &self.state.cursor.levels;
        let outer = &levels[..levels.len().saturating_sub(1)];
        outer.iter().fold(root, |list, level| {
            match list.get(level.action).map(|action| &action.act) {
                Some(ActionKind::ForEach { actions, .. }) => actions,
                _ => &[],
            }
        })
    }

    fn step_on(&mut self) {
        self.state.cursor.partial = None;
        if let Some(level) = self.state.cursor.levels.last_mut() {
            level.action += 1;
        }
    }

    /// Ends a list: starts the loop's next round, or continues after the loop. Returns false outside a loop.
    fn step_out(&mut self) -> bool {
        let Some(level) = self.state.cursor.levels.last_mut() else { return false };
        let Some(each) = &mut level.each else { return false };
        each.at += 1;
        level.action = 0;
        if each.at >= each.items.len() {
            self.state.cursor.levels.pop();
            self.step_on();
        }
        true
    }

    fn act(&mut self, action: &GraphAction) -> Result<ActionOutcome, String> {
        let change = match &action.act {
            ActionKind::SetFlag { flag, value } => {
                let value = is_true(&self.fill(value)?);
                GraphStateChange::Set(self.flag(flag)?, value.into())
            }
            ActionKind::SetState { field, value } => {
                let value = self.fill(value)?;
                GraphStateChange::Set(self.path(field)?, value)
            }
            ActionKind::AppendState { field, value } => {
                let value = self.fill(value)?;
                GraphStateChange::Push(self.path(field)?, value)
            }
            ActionKind::ClearState { field } => {
                GraphStateChange::Set(self.path(field)?, Value::Null)
            }
            ActionKind::MergeState { field, value } => self.merged(field, value)?,
            ActionKind::Evaluate { expression, set_flag } => {
                let value = self.evaluate(expression)?;
                GraphStateChange::Set(self.flag(set_flag)?, truth(&value).into())
            }
            ActionKind::Compute { expression, store } => {
                let value = self.evaluate(expression)?;
                GraphStateChange::Set(self.store_path(store)?, value)
            }
            ActionKind::Prose { task, store } => return self.prose(task, store),
            ActionKind::CreateCheckpoint { name } => GraphStateChange::Checkpoint(self.text(name)?),
            ActionKind::RollbackCheckpoint { name } => {
                let name = self.text(name)?;
                return self.roll_back(name).map(|()| ActionOutcome::Done);
            }
            ActionKind::SetTimestamp { store, format } => {
                let format = self.optional_text(format.as_ref())?;
                let time = log::formatted(&self.now.to_string(), format.as_deref());
                GraphStateChange::Set(self.store_path(store)?, time.into())
            }
            ActionKind::Keywords { input, sets, store } => {
                let found = self.matching_set(input, sets)?;
                GraphStateChange::Set(self.store_path(store)?, found)
            }
            ActionKind::Log { entry, parameters, store } => {
                self.log(*entry, parameters, store.as_ref())?;
                return Ok(ActionOutcome::Done);
            }
            ActionKind::WriteLog { parameters } => return self.write_log(parameters),
            ActionKind::Display { title, content, json } => {
                return self.show(title.as_ref(), content, *json);
            }
            ActionKind::HashValue { content, store } => {
                let hashed = hash(&self.fill(content)?);
                GraphStateChange::Set(self.store_path(store)?, hashed.into())
            }
            ActionKind::ComputeHash { from, store } => {
                let hashed = hash(&self.existing(from)?);
                GraphStateChange::Set(self.store_path(store)?, hashed.into())
            }
            ActionKind::DisplayMessage { message } => {
                let text = self.text(message)?;
                self.shown.push(text);
                return Ok(ActionOutcome::Done);
            }
            ActionKind::DisplayTable { title, headers, rows } => {
                return self.show_table(title.as_ref(), headers, rows);
            }
            ActionKind::ForEach { items, name, .. } => {
                let Value::Array(items) = self.fill(items)? else {
                    return Err("WF403 `items` is not a list".to_owned());
                };
                return Ok(ActionOutcome::Loop(LoopItems {
                    name: name.clone(),
                    items: Arc::new(items),
                    at: 0,
                }));
            }
            ActionKind::Reference { reference, store } => {
                return self.turn(reference, store.as_ref());
            }
            ActionKind::Spawn(spawn) => return self.spawned(spawn),
            ActionKind::SpawnParallel(agents) => return self.parallel_action(agents),
            ActionKind::Pack(act) => return (act.perform)(self, act),
            ActionKind::World { work, store, prompt } => {
                return self.world(work, store.as_ref(), prompt.as_ref());
            }
        };
        self.change(change)?;
        Ok(ActionOutcome::Done)
    }

    fn merged(
        &mut self,
        field: &ValueTemplate,
        value: &ValueTemplate,
    ) -> Result<GraphStateChange, String> {
        let path = self.path(field)?;
        let mut map = match self.written(&path) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return Err(format!("{} is not a map", path.join("."))),
        };
        let Value::Object(more) = self.fill(value)? else {
            return Err("`value` is not a map".to_owned());
        };
        map.extend(more);
        Ok(GraphStateChange::Set(path, map.into()))
    }

    /// Takes the awaited result, if it has come.
    pub(in crate::graph) fn take_result(&mut self) -> Option<Result<Value, String>> {
        self.wait_result.take().map(|wait_result| match wait_result {
            WaitResult::Done(value) => Ok(value),
            WaitResult::Failed(why) => Err(why),
            WaitResult::Answered(_) => Err("an answer came where none was asked for".to_owned()),
        })
    }

    fn world(
        &mut self,
        work: &OperationTemplate,
        store: Option<&ValueTemplate>,
        prompt: Option<&ValueTemplate>,
    ) -> Result<ActionOutcome, String> {
        if let (Some(page), Some(prompt)) = (self.state.cursor.partial.clone(), prompt) {
            return self.digested(page, prompt, store);
        }
        let Some(came) = self.take_result() else {
            return Ok(ActionOutcome::Needs(GraphYield::Operation(self.operation(work)?)));
        };
        let value = came?;
        match prompt {
            Some(prompt) if is_page(&value) => {
                self.state.cursor.partial = Some(value.clone());
                self.digested(value, prompt, store)
            }
            _ => self.stored(store, value),
        }
    }

    /// Replaces the content of a page by the answer of Claude Code about it.
    fn digested(
        &mut self,
        mut page: Value,
        prompt: &ValueTemplate,
        store: Option<&ValueTemplate>,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_result() else {
            return Ok(needs_turn(self.task_about(&page, prompt)?));
        };
        page["content"] = came?;
        self.stored(store, page)
    }

    /// Stores a value at a path, if there is one.
    pub(in crate::graph) fn stored(
        &mut self,
        store: Option<&ValueTemplate>,
        value: Value,
    ) -> Result<ActionOutcome, String> {
        if let Some(path) = store {
            let path = self.store_path(path)?;
            self.change(GraphStateChange::Set(path, value))?;
        }
        Ok(ActionOutcome::Done)
    }

    /// Merges the result of a Claude turn into `computed`, or stores it.
    fn turn(
        &mut self,
        reference: &ReferenceNode,
        store: Option<&ValueTemplate>,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_result() else {
            return Ok(needs_turn(self.task_of(reference)?));
        };
        let outputs = came?;
        if store.is_some() {
            return self.stored(store, outputs);
        }
        self.merge_outputs(outputs)?;
        Ok(ActionOutcome::Done)
    }

    fn spawned(&mut self, spawn: &AgentSpawn) -> Result<ActionOutcome, String> {
        if let Some(came) = self.take_result() {
            return self.stored(spawn.store.as_ref(), as_data(came?));
        }
        let spec = Box::new(self.agent_of(&spawn.task, None)?);
        let background = match &spawn.background {
            Some(background) => self.boolean("run_in_background", background)?,
            None => false,
        };
        let agent = NextAction::Agent { spec, background, joined: false };
        Ok(ActionOutcome::Needs(GraphYield::action(agent)))
    }

    /// Sets the outputs of a turn as fields of `computed`.
    pub(super) fn merge_outputs(&mut self, outputs: Value) -> Result<(), String> {
        let Value::Object(outputs) = outputs else {
            return Err("its outputs are not a map".to_owned());
        };
        for (key, value) in outputs {
            self.change(GraphStateChange::Set(vec!["computed".to_owned(), key], value))?;
        }
        Ok(())
    }
}

// Fills the parameters of operations, and converts them to the kinds that the operations take.
//
// A text that is one `${…}` has the type of its value. Where a text is wanted, a number or a boolean becomes one;
// where a number or a boolean is wanted, it is read from a text.

/// The parameters of a command that say what a repetition of it means.
const REPETITION: [&str; 3] = ["unless", "idempotent", "once"];

impl GraphInterpreter {
    /// Returns the operation with its parameters filled in.
    pub(super) fn operation(&mut self, work: &OperationTemplate) -> Result<Operation, String> {
        let Value::Object(mut parameters) = self.fill(&work.parameters)? else {
            return Err("its parameters are not a map".to_owned());
        };
        if let Some(class) = work.custom_class {
            return Ok(Operation::Own { name: work.kind.clone(), parameters, class });
        }
        let empty = |key: &&&str| {
            parameters.get(**key).is_some_and(|value| {
                value.is_null() || as_text(value).is_some_and(|text| text.trim().is_empty())
            })
        };
        if let Some(key) = PACKS.iter().flat_map(|pack| pack.filled).find(empty) {
            return Err(format!("`{key}` is empty"));
        }
        for (name, value) in &mut parameters {
            let kind = parameter_kind(&work.kind, name).unwrap_or(ParameterKind::Text);
            convert(name, value, kind)?;
        }
        check_repetition(&parameters)?;
        parameters.insert("type".to_owned(), work.kind.as_str().into());
        serde_json::from_value(Value::Object(parameters))
            .map_err(|_| "its parameters do not fit together".to_owned())
    }

    /// Returns a boolean parameter with its value filled in.
    pub(super) fn boolean(&mut self, name: &str, template: &ValueTemplate) -> Result<bool, String> {
        let mut value = self.fill(template)?;
        convert(name, &mut value, ParameterKind::Boolean)?;
        Ok(value == Value::Bool(true))
    }
}

/// Checks that a command says in one way only what makes it repeatable.
fn check_repetition(parameters: &Map<String, Value>) -> Result<(), String> {
    let says = |name: &&&str| match parameters.get(**name) {
        None | Some(Value::Bool(false)) => false,
        Some(_) => true,
    };
    let given: Vec<&str> = REPETITION.iter().filter(says).copied().collect();
    match given[..] {
        [first, second, ..] => Err(format!(
            "WF403 it has `{first}` and `{second}`; keep the key that says what a repetition means"
        )),
        _ => Ok(()),
    }
}

/// Converts a value to the kind that a parameter takes.
fn convert(name: &str, value: &mut Value, kind: ParameterKind) -> Result<(), String> {
    let takes = match kind {
        ParameterKind::Text | ParameterKind::Filled | ParameterKind::Path => {
            if let Some(text) = as_text(value) {
                *value = text.into();
                return Ok(());
            }
            let is_word = !value.is_array() && !value.is_object();
            if value.is_null() {
                "a text; where it may be null, write `${… ?? ''}`"
            } else if is_word || kind == ParameterKind::Text {
                if !value.is_string() {
                    *value = value.to_string().into();
                }
                return Ok(());
            } else {
                "a text"
            }
        }
        ParameterKind::Boolean => match boolean(value) {
            Some(read) => {
                *value = read.into();
                return Ok(());
            }
            None => "`true` or `false`",
        },
        ParameterKind::Number => {
            let whole = number(value).as_ref().and_then(whole);
            match whole {
                Some(read) => {
                    *value = read.into();
                    return Ok(());
                }
                None => "a whole number from 0",
            }
        }
        ParameterKind::List if !value.is_array() => "a list",
        ParameterKind::Map if !value.is_object() => "a mapping",
        ParameterKind::List
        | ParameterKind::Map
        | ParameterKind::Any
        | ParameterKind::Expression
        | ParameterKind::Conditions
        | ParameterKind::Actions
        | ParameterKind::Word => return Ok(()),
    };
    Err(format!("WF403 `{name}` takes {takes}, but got {}", shown(value)))
}

/// Returns a whole number that an operation can take.
fn whole(number: &Number) -> Option<u32> {
    let exact = number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole")]
        Some(float as u64)
    });
    exact.and_then(|exact| u32::try_from(exact).ok())
}

/// Returns a boolean, also from its text; `None` for another value.
fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        other => match as_text(other)?.trim().to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
    }
}

/// Returns the boolean that a flag is set to: that of a text which says it, else the truth of the value.
pub(super) fn is_true(value: &Value) -> bool {
    boolean(value).unwrap_or_else(|| truth(value))
}

/// Returns a number, also from its text; `None` for another value.
pub(in crate::graph) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        other => as_text(other)?.trim().parse().ok(),
    }
}

/// Returns a value for an error: its beginning, or its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::String(text) => format!("the text `{}`", text.chars().take(40).collect::<String>()),
        other => other.to_string(),
    }
}
