//! Carries out consequences in order; the first that fails ends the list.
//!
//! Intents in a text, in three-valued logic: flags that are T (true), F (false) or U (unknown), and rules for them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::expression::{ValueTemplate, text, truth};
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
            ActionKind::LogRetention { parameters } => return self.removed_logs(parameters),
            ActionKind::CiSummary { format } => return self.show_summary(format),
            ActionKind::IntentFlags { input, definitions, store } => {
                let (input, definitions) = (self.fill(input)?, self.fill(definitions)?);
                let flags = flags_of(&input, &definitions)?;
                GraphStateChange::Set(self.store_path(store)?, flags)
            }
            ActionKind::IntentRules { flags, rules, store } => {
                let (flags, rules) = (self.fill(flags)?, self.fill(rules)?);
                let matches = matches(&flags, &rules)?;
                GraphStateChange::Set(self.store_path(store)?, matches)
            }
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
    pub(super) fn take_heard(&mut self) -> Option<Result<Value, String>> {
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

    fn stored(
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

/// The number of rules that are listed as the best.
const MAX_TOP: usize = 3;

/// The lead that makes a rule the clear winner.
const CLEAR_LEAD: i64 = 2;

/// Returns the flags of a text: F if it has one of a flag's negative keywords, else T if it has one of its keywords,
/// else U.
pub(super) fn flags_of(input: &Value, definitions: &Value) -> Result<Value, String> {
    let input = match input {
        Value::Null => String::new(),
        other => text(other).to_lowercase(),
    };
    let Value::Object(definitions) = definitions else {
        return Err("WF403 `flag_definitions` is not a map".to_owned());
    };
    let mut flags = Map::new();
    for (name, definition) in definitions {
        let has = |key: &str| match definition.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Array(words)) => {
                let mut words = words.iter().filter_map(Value::as_str).map(str::to_lowercase);
                Ok(words.any(|word| input.contains(&word)))
            }
            Some(_) => Err(format!("WF403 `{key}` of the flag `{name}` is not a list")),
        };
        let value = match (has("negative_keywords")?, has("keywords")?) {
            (true, _) => "F",
            (false, true) => "T",
            (false, false) => "U",
        };
        flags.insert(name.clone(), value.into());
    }
    Ok(Value::Object(flags))
}

/// Returns the rules that fit the flags, the best first. A rule is excluded if one of its conditions contradicts its
/// flag. Equal ones count 2, a known and an unknown one count 1.
pub(super) fn matches(flags: &Value, rules: &Value) -> Result<Value, String> {
    let Value::Object(flags) = flags else {
        return Err("WF403 `flags` is not a map".to_owned());
    };
    let Value::Array(rules) = rules else {
        return Err("WF403 `rules` is not a list".to_owned());
    };
    let mut candidates: Vec<(i64, i64, &Value)> = Vec::new();
    for rule in rules {
        let conditions = match rule.get("conditions") {
            None | Some(Value::Null) => &Map::new(),
            Some(Value::Object(conditions)) => conditions,
            Some(_) => return Err("WF403 `conditions` of a rule is not a map".to_owned()),
        };
        let scores = conditions
            .iter()
            .map(|(name, wanted)| score(flags.get(name).and_then(Value::as_str), wanted.as_str()));
        if let Some(score) = scores.sum::<Option<i64>>() {
            let priority = rule.get("priority").and_then(Value::as_i64).unwrap_or_default();
            candidates.push((score, priority, rule));
        }
    }
    candidates.sort_by_key(|(score, priority, _)| (-score, -priority));
    let clear = match candidates.as_slice() {
        [] => false,
        [_] => true,
        [first, second, ..] => first.0 >= second.0 + CLEAR_LEAD,
    };
    let winner = candidates.first().filter(|_| clear).map(|(.., rule)| (*rule).clone());
    let listed = |some: &[(i64, i64, &Value)]| -> Vec<Value> {
        some.iter().map(|(score, _, rule)| json!({ "rule": rule, "score": score })).collect()
    };
    let top = &candidates[..candidates.len().min(MAX_TOP)];
    Ok(json!({
        "clear_winner": clear,
        "winner": winner,
        "top_candidates": listed(top),
        "all_candidates": listed(&candidates),
    }))
}

/// Returns the score of a condition; `None` if it contradicts its flag.
fn score(flag: Option<&str>, wanted: Option<&str>) -> Option<i64> {
    match (flag.unwrap_or("U"), wanted.unwrap_or("U")) {
        ("T", "T") | ("F", "F") => Some(2),
        ("T", "F") | ("F", "T") => None,
        ("T" | "F", _) | (_, "T" | "F") => Some(1),
        _ => Some(0),
    }
}

#[cfg(test)]
mod intents_tests {
    use super::*;

    fn definitions() -> Value {
        json!({
            "has_help": { "keywords": ["help", "?"] },
            "has_init": { "keywords": ["create"], "negative_keywords": ["don't create"] },
            "has_list": {},
        })
    }

    #[test]
    fn flag_is_false_by_negative_keyword_true_by_keyword_and_unknown_without() {
        let flags = |text: Value| flags_of(&text, &definitions()).expect("flags");
        let of =
            |help: &str, init: &str| json!({"has_help": help, "has_init": init, "has_list": "U"});
        assert_eq!(flags(json!("HELP me create")), of("T", "T"));
        assert_eq!(flags(json!("please don't create it")), of("U", "F"));
        assert_eq!(flags(Value::Null), of("U", "U"));
        let why = flags_of(&json!("x"), &json!({"a": {"keywords": "x"}})).expect_err("refused");
        assert_eq!(why, "WF403 `keywords` of the flag `a` is not a list");
        assert!(flags_of(&json!("x"), &json!([])).is_err());
    }

    #[test]
    fn best_rule_wins_with_a_lead_and_contradicted_rules_are_excluded() {
        let rules = json!([
            {"name": "help", "conditions": {"has_help": "T", "has_init": "F"}, "priority": 100},
            {"name": "init", "conditions": {"has_init": "T"}, "priority": 90},
            {"name": "both", "conditions": {"has_help": "T", "has_init": "T"}, "priority": 80},
        ]);
        let of = |help: &str, init: &str| {
            matches(&json!({"has_help": help, "has_init": init}), &rules).expect("matches")
        };
        let both = of("T", "T");
        assert_eq!(both["clear_winner"], true);
        assert_eq!(both["winner"]["name"], "both");
        assert_eq!(both["all_candidates"].as_array().map(Vec::len), Some(2));
        let help = of("T", "U");
        assert_eq!((&help["clear_winner"], &help["winner"]), (&json!(false), &Value::Null));
        assert_eq!(help["top_candidates"][0], json!({"rule": rules[0], "score": 3}));
        assert_eq!(help["top_candidates"][1]["rule"]["name"], "both");
        let none = matches(&json!({"a": "F"}), &json!([{"conditions": {"a": "T"}}]));
        assert_eq!(none.expect("matches")["clear_winner"], false);
    }
}
