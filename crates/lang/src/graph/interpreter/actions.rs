//! Carries out consequences in order; the first that fails ends the list.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::expression::{ValueTemplate, truth};
use crate::graph::checked_graph::{ActionKind, OperationTemplate};
use crate::graph::interpreter::operations::is_true;
use crate::graph::interpreter::results::{ActionOutcome, as_data, hash, is_page};
use crate::graph::interpreter::{ActionProgress, GraphAction, GraphInterpreter, GraphYield, log};
use raymond_model::advance::AdvanceNext;
use raymond_model::graph_execution::{GraphStateChange, LoopFrame, LoopItems, WaitResult};

impl<'graph> GraphInterpreter<'graph> {
    pub(super) fn actions(&mut self, root: &'graph [GraphAction]) -> ActionProgress {
        if self.state.cursor.levels.is_empty() {
            self.state.cursor.levels.push(LoopFrame::default());
        }
        loop {
            if self.is_to_be_cut() && self.state.cursor.partial.is_none() {
                return ActionProgress::Needs(GraphYield::Record(AdvanceNext::Continue));
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
    fn inner(&self, root: &'graph [GraphAction]) -> &'graph [GraphAction] {
        let levels = &self.state.cursor.levels;
        let outer = &levels[..levels.len().saturating_sub(1)];
        outer.iter().fold(root, |list, level| match list.get(level.action).map(|one| &one.act) {
            Some(ActionKind::ForEach { actions, .. }) => actions,
            _ => &[],
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

    fn act(&mut self, action: &'graph GraphAction) -> Result<ActionOutcome, String> {
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
                let format = format.as_ref().map(|format| self.text(format)).transpose()?;
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
                return self.turn(store.as_ref(), |this| this.task_of(reference));
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
    pub(in crate::graph) fn take_heard(&mut self) -> Option<Result<Value, String>> {
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
        let Some(came) = self.take_heard() else {
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
        let Some(came) = self.take_heard() else {
            let task = self.task_about(&page, prompt)?;
            return Ok(ActionOutcome::Needs(GraphYield::Record(AdvanceNext::Task(Box::new(task)))));
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
        store: Option<&ValueTemplate>,
        task: impl FnOnce(&mut Self) -> Result<raymond_model::graph_execution::PromptTask, String>,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_heard() else {
            return Ok(ActionOutcome::Needs(GraphYield::Record(AdvanceNext::Task(Box::new(
                task(self)?,
            )))));
        };
        let outputs = came?;
        match store {
            Some(store) => {
                let path = self.store_path(store)?;
                self.change(GraphStateChange::Set(path, outputs))?;
            }
            None => self.merge_outputs(outputs)?,
        }
        Ok(ActionOutcome::Done)
    }

    fn spawned(
        &mut self,
        spawn: &super::super::checked_graph::AgentSpawn,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_heard() else {
            return Ok(ActionOutcome::Needs(GraphYield::Record(self.spawn_agent(spawn, None)?)));
        };
        let value = as_data(came?);
        if let Some(store) = &spawn.store {
            let path = self.store_path(store)?;
            self.change(GraphStateChange::Set(path, value))?;
        }
        Ok(ActionOutcome::Done)
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
