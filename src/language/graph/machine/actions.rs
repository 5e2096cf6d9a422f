//! Consequences, in order; the first that fails ends the list.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::super::table::table;
use super::{ACTION, Action, Machine, Need, Progress};
use crate::domain::graph::{Change, Each, Heard, Level};
use crate::domain::operation::Operation;
use crate::domain::walk::Then;
use crate::language::expression::{Template, truth};
use crate::language::graph::program::{Act, Store, Work};

/// What became of one action.
enum Acted {
    Done,
    Loop(Each),
    Needs(Need),
}

impl<'graph> Machine<'graph> {
    pub(super) fn actions(&mut self, root: &'graph [Action]) -> Progress {
        if self.state.cursor.levels.is_empty() {
            self.state.cursor.levels.push(Level::default());
        }
        loop {
            if self.is_long() && self.heard.is_none() && self.state.cursor.partial.is_none() {
                return Progress::Needs(Need::Record(Then::Walk));
            }
            self.computed += ACTION;
            let list = self.inner(root);
            let Some(level) = self.state.cursor.levels.last_mut() else {
                return Progress::Over(Ok(()));
            };
            let Some(action) = list.get(level.action) else {
                if self.step_out() {
                    continue;
                }
                return Progress::Over(Ok(()));
            };
            match self.act(action) {
                Ok(Acted::Done) => self.step_on(),
                Ok(Acted::Loop(each)) if each.items.is_empty() => self.step_on(),
                Ok(Acted::Loop(each)) => {
                    self.state.cursor.levels.push(Level { action: 0, each: Some(each) });
                }
                Ok(Acted::Needs(need)) => return Progress::Needs(need),
                Err(why) => return Progress::Over(Err(format!("{}: {why}", action.kind))),
            }
        }
    }

    /// The list that is being gone through: the node's own, or a loop's in it.
    fn inner(&self, root: &'graph [Action]) -> &'graph [Action] {
        let levels = &self.state.cursor.levels;
        let outer = &levels[..levels.len().saturating_sub(1)];
        outer.iter().fold(root, |list, level| match list.get(level.action).map(|one| &one.act) {
            Some(Act::ForEach { actions, .. }) => actions,
            _ => &[],
        })
    }

    fn step_on(&mut self) {
        self.state.cursor.partial = None;
        if let Some(level) = self.state.cursor.levels.last_mut() {
            level.action += 1;
        }
    }

    /// At the end of a list: the loop's next round, or on after the loop. Not if there is none.
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

    fn act(&mut self, action: &'graph Action) -> Result<Acted, String> {
        let change = match &action.act {
            Act::SetFlag { flag, value } => {
                let value = self.fill(value)?;
                Change::Set(self.flag(flag)?, truth(&value).into())
            }
            Act::SetState { field, value } => {
                let value = self.fill(value)?;
                Change::Set(self.path(field)?, value)
            }
            Act::AppendState { field, value } => {
                let value = self.fill(value)?;
                Change::Push(self.path(field)?, value)
            }
            Act::ClearState { field } => Change::Set(self.path(field)?, Value::Null),
            Act::MergeState { field, value } => self.merged(field, value)?,
            Act::Evaluate { expression, set_flag } => {
                let value = self.evaluate(expression)?;
                Change::Set(self.flag(set_flag)?, truth(&value).into())
            }
            Act::Compute { expression, store } => {
                let value = self.evaluate(expression)?;
                Change::Set(self.path(store)?, value)
            }
            Act::CreateCheckpoint { name } => Change::Checkpoint(self.text(name)?),
            Act::RollbackCheckpoint { name } => Change::Rollback(self.text(name)?),
            Act::SetTimestamp { store } => {
                let path = self.text(store)?;
                Change::Set(computed(&path)?, self.now.to_string().into())
            }
            Act::ComputeHash { from, store } => {
                let hashed = hash(&self.field(from)?);
                Change::Set(self.path(store)?, hashed.into())
            }
            Act::DisplayMessage { message } => {
                let text = self.text(message)?;
                self.shown.push(text);
                return Ok(Acted::Done);
            }
            Act::DisplayTable { title, headers, rows } => {
                let title = title.as_ref().map(|title| self.text(title)).transpose()?;
                let (headers, rows) = (self.fill(headers)?, self.fill(rows)?);
                self.shown.push(table(title.as_deref(), &headers, &rows)?);
                return Ok(Acted::Done);
            }
            Act::ForEach { items, name, .. } => {
                let Value::Array(items) = self.fill(items)? else {
                    return Err("WF403 `items` is not a list".to_owned());
                };
                return Ok(Acted::Loop(Each { name: name.clone(), items: Arc::new(items), at: 0 }));
            }
            Act::Reference { reference, store } => {
                return self.turn(store.as_ref(), |this| this.task_of(reference));
            }
            Act::Spawn(spawn) => return self.spawned(spawn),
            Act::World { work, store, prompt } => {
                return self.world(work, store.as_ref(), prompt.as_ref());
            }
        };
        self.change(change)?;
        Ok(Acted::Done)
    }

    fn merged(&mut self, field: &Template, value: &Template) -> Result<Change, String> {
        let path = self.path(field)?;
        let mut map = match self.at(&path.join(".")) {
            Value::Null => Map::new(),
            Value::Object(map) => map,
            _ => return Err(format!("{} is not a map", path.join("."))),
        };
        let Value::Object(more) = self.fill(value)? else {
            return Err("`value` is not a map".to_owned());
        };
        map.extend(more);
        Ok(Change::Set(path, map.into()))
    }

    /// What was waited for, if it came.
    fn take_heard(&mut self) -> Option<Result<Value, String>> {
        self.heard.take().map(|heard| match heard {
            Heard::Done(value) => Ok(value),
            Heard::Failed(why) => Err(why),
            Heard::Answered(_) => Err("an answer came where none was asked for".to_owned()),
        })
    }

    fn world(
        &mut self,
        work: &Work,
        store: Option<&Store>,
        prompt: Option<&Template>,
    ) -> Result<Acted, String> {
        if let (Some(page), Some(prompt)) = (self.state.cursor.partial.clone(), prompt) {
            return self.digested(page, prompt, store);
        }
        let Some(came) = self.take_heard() else {
            return Ok(Acted::Needs(Need::Operation(self.operation(work)?)));
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

    /// What Claude Code makes of a page stands in the place of its content.
    fn digested(
        &mut self,
        mut page: Value,
        prompt: &Template,
        store: Option<&Store>,
    ) -> Result<Acted, String> {
        let Some(came) = self.take_heard() else {
            let task = self.task_about(&page, prompt)?;
            return Ok(Acted::Needs(Need::Record(Then::Task(Box::new(task)))));
        };
        page["content"] = came?;
        self.stored(store, page)
    }

    fn stored(&mut self, store: Option<&Store>, value: Value) -> Result<Acted, String> {
        if let Some(Store { path, full }) = store {
            let path = self.text(path)?;
            let path = if *full { split(&path)? } else { computed(&path)? };
            self.change(Change::Set(path, value))?;
        }
        Ok(Acted::Done)
    }

    /// What a Claude turn gave is merged into `computed`, or stored.
    fn turn(
        &mut self,
        store: Option<&Template>,
        task: impl FnOnce(&mut Self) -> Result<crate::domain::graph::Task, String>,
    ) -> Result<Acted, String> {
        let Some(came) = self.take_heard() else {
            return Ok(Acted::Needs(Need::Record(Then::Task(Box::new(task(self)?)))));
        };
        let outputs = came?;
        match store {
            Some(store) => {
                let path = self.text(store)?;
                self.change(Change::Set(computed(&path)?, outputs))?;
            }
            None => self.merge_outputs(outputs)?,
        }
        Ok(Acted::Done)
    }

    fn spawned(&mut self, spawn: &super::super::program::Spawn) -> Result<Acted, String> {
        let Some(came) = self.take_heard() else {
            return Ok(Acted::Needs(Need::Record(self.birth(spawn)?)));
        };
        let value = as_data(came?);
        if let Some(store) = &spawn.store {
            let path = self.text(store)?;
            self.change(Change::Set(computed(&path)?, value))?;
        }
        Ok(Acted::Done)
    }

    /// The outputs of a turn become fields of `computed`.
    pub(super) fn merge_outputs(&mut self, outputs: Value) -> Result<(), String> {
        let Value::Object(outputs) = outputs else {
            return Err("its outputs are not a map".to_owned());
        };
        for (key, value) in outputs {
            self.change(Change::Set(vec!["computed".to_owned(), key], value))?;
        }
        Ok(())
    }

    /// The operation of some work, with its parameters filled in.
    pub(super) fn operation(&mut self, work: &Work) -> Result<Operation, String> {
        let Value::Object(mut parameters) = self.fill(&work.parameters)? else {
            return Err("its parameters are not a map".to_owned());
        };
        if let Some(class) = work.own {
            return Ok(Operation::Own { name: work.kind.clone(), parameters, class });
        }
        let empty = |key: &&&str| match parameters.get(**key) {
            Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            _ => false,
        };
        let places = ["path", "url", "id", "dest", "repo_path", "pattern"];
        if let Some(key) = places.iter().find(empty) {
            return Err(format!("`{key}` is empty"));
        }
        parameters.insert("type".to_owned(), work.kind.as_str().into());
        serde_json::from_value(Value::Object(parameters)).map_err(|error| error.to_string())
    }

    fn flag(&mut self, flag: &Template) -> Result<Vec<String>, String> {
        let flag = self.text(flag)?;
        split(&format!("flags.{}", flag.strip_prefix("flags.").unwrap_or(&flag)))
    }

    fn path(&mut self, path: &Template) -> Result<Vec<String>, String> {
        split(&self.text(path)?)
    }
}

/// Whether something was fetched: of what failed, Claude Code is asked nothing.
fn is_page(page: &Value) -> bool {
    page.get("status").and_then(Value::as_u64).is_some_and(|status| (1..400).contains(&status))
}

/// A path below `computed`, with or without that word.
fn computed(path: &str) -> Result<Vec<String>, String> {
    split(&format!("computed.{}", path.strip_prefix("computed.").unwrap_or(path)))
}

fn split(path: &str) -> Result<Vec<String>, String> {
    let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
    if parts.iter().any(String::is_empty) {
        return Err(format!("`{path}` is not a path: names with dots between them"));
    }
    Ok(parts)
}

/// The result of an agent: data if it is a JSON object or list, else text.
fn as_data(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    match serde_json::from_str::<Value>(text) {
        Ok(data @ (Value::Object(_) | Value::Array(_))) => data,
        _ => value,
    }
}

/// The checksum of a text, or of a value as JSON.
fn hash(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let digest = Sha256::digest(text.as_bytes());
    let mut hash = String::from("sha256:");
    for byte in digest {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}
