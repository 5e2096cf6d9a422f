//! Starts agents that work at the same time, and takes in their results when the join is settled.
//!
//! Each start is a record of its own, and so is the wait. The ids of the agents that were started are in the cursor, so
//! after a crash the next one is started, and none twice.

use std::sync::Arc;

use serde_json::{Value, json};

use super::results::{ActionOutcome, as_data};
use super::{GraphInterpreter, GraphYield};
use crate::graph::checked_graph::{AgentSpawn, ParallelAgents, ParallelNode, SpawnTask};
use crate::yaml::content::YamlContent;
use crate::yaml::tree::{self, YamlFileKind};
use raymond_model::advance::AdvanceNext;
use raymond_model::graph_execution::{GraphStateChange, LoopFrame, LoopItems};
use raymond_model::join::Join;

/// The number of agents whose failures are named.
const MAX_NAMED: usize = 8;

/// The progress of agents that work at the same time.
enum ParallelProgress {
    Needs(GraphYield),
    /// The results in the order of the agents; null without one. The reasons of those that are missing follow.
    Joined(Vec<Value>, Vec<String>),
}

impl GraphInterpreter<'_> {
    /// Executes a `parallel` node.
    pub(super) fn parallel_node(&mut self, node: &ParallelNode) -> Option<GraphYield> {
        let outcome = self.parallel_branches(node);
        self.state.cursor.partial = None.or_else(|| match &outcome {
            Ok(Some(_)) => self.state.cursor.partial.take(),
            Ok(None) | Err(_) => None,
        });
        match outcome {
            Ok(Some(need)) => Some(need),
            Ok(None) => self.leave("success", None, &node.on_success),
            Err(why) => self.leave("failure", Some(why), &node.on_failure),
        }
    }

    fn parallel_branches(&mut self, node: &ParallelNode) -> Result<Option<GraphYield>, String> {
        let branches = &node.branches;
        let start = |this: &mut Self, at: usize| {
            this.branch_spawn(&branches[at].task, Some(&branches[at].name))
        };
        let (results, missing) = match self.in_parallel(branches.len(), &node.join, start)? {
            ParallelProgress::Needs(need) => return Ok(Some(need)),
            ParallelProgress::Joined(results, missing) => (results, missing),
        };
        let done = results.iter().filter(|result| !result.is_null()).count();
        for (branch, result) in branches.iter().zip(results) {
            let path = vec!["computed".to_owned(), branch.name.clone()];
            self.change(GraphStateChange::Set(path, result))?;
        }
        let name =
            |at: usize| branches.get(at).map_or("?", |branch| branch.name.as_str()).to_owned();
        settled(&node.join, branches.len(), done, &missing, name).map(|()| None)
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
        let items = Arc::new(items);
        let start = |this: &mut Self, at: usize| {
            let each = LoopItems { name: agents.name.clone(), items: Arc::clone(&items), at };
            // The prompt sees the item as in a loop.
            this.state.cursor.levels.push(LoopFrame { action: 0, each: Some(each) });
            let spawn = this.branch_spawn(&agents.task, None);
            this.state.cursor.levels.pop();
            spawn
        };
        let (results, missing) = if items.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            match self.in_parallel(items.len(), &agents.join, start)? {
                ParallelProgress::Needs(need) => return Ok(ActionOutcome::Needs(need)),
                ParallelProgress::Joined(results, missing) => (results, missing),
            }
        };
        let done = results.iter().filter(|result| !result.is_null()).count();
        let count = results.len();
        let path = self.store_path(&agents.store)?;
        self.change(GraphStateChange::Set(path, results.into()))?;
        let name = |at: usize| match items.get(at).and_then(|item| item.get("id")) {
            Some(Value::String(id)) => id.clone(),
            _ => format!("item {}", at + 1),
        };
        if count > 0 {
            settled(&agents.join, count, done, &missing, name)?;
        }
        Ok(ActionOutcome::Done)
    }

    fn branch_spawn(
        &mut self,
        task: &SpawnTask,
        branch: Option<&str>,
    ) -> Result<AdvanceNext, String> {
        let spawn = AgentSpawn { task: task.clone(), store: None, background: None };
        Ok(match self.spawn_agent(&spawn, branch)? {
            AdvanceNext::Agent { spec, .. } => {
                AdvanceNext::Agent { spec, background: false, joined: true }
            }
            other => other,
        })
    }

    /// Starts the next agent, or waits for all, or takes in their results.
    fn in_parallel(
        &mut self,
        count: usize,
        join: &Join,
        mut start: impl FnMut(&mut Self, usize) -> Result<AdvanceNext, String>,
    ) -> Result<ParallelProgress, String> {
        let mut started = match self.state.cursor.partial.take() {
            Some(Value::Array(started)) => started,
            _ => Vec::new(),
        };
        let came = self.take_heard().transpose()?;
        if started.len() == count
            && let Some(list) = &came
        {
            let (results, missing) = outcomes(&started, list);
            return Ok(ParallelProgress::Joined(results, missing));
        }
        started.extend(came);
        let next = if started.len() < count {
            start(self, started.len())?
        } else {
            AdvanceNext::Join(Box::new(join.clone()))
        };
        self.state.cursor.partial = Some(started.into());
        Ok(ParallelProgress::Needs(GraphYield::Record(next)))
    }
}

/// Returns the results of the agents in their order, and the reasons of those without one.
fn outcomes(started: &[Value], list: &Value) -> (Vec<Value>, Vec<String>) {
    let all: Vec<&Value> = list.as_array().into_iter().flatten().collect();
    let mut missing = Vec::new();
    let results = started.iter().map(|id| {
        let found = all.iter().find(|outcome| outcome["id"] == *id);
        let Some(outcome) = found else {
            missing.push("its end is unknown".to_owned());
            return Value::Null;
        };
        if let Some(result) = outcome.get("result") {
            missing.push(String::new());
            return of_agent(result.clone());
        }
        let status = outcome["status"].as_str().unwrap_or("unknown");
        let why =
            outcome["error"].as_str().map_or_else(|| format!("it is {status}"), str::to_owned);
        missing.push(why);
        Value::Null
    });
    (results.collect(), missing)
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
    count: usize,
    done: usize,
    missing: &[String],
    name: impl Fn(usize) -> String,
) -> Result<(), String> {
    let needed = join.needs(u32::try_from(count).unwrap_or(u32::MAX));
    if u32::try_from(done).unwrap_or(u32::MAX) >= needed {
        return Ok(());
    }
    let failed = missing.iter().enumerate().filter(|(_, why)| !why.is_empty());
    let named: Vec<String> =
        failed.take(MAX_NAMED).map(|(at, why)| format!("{}: {why}", name(at))).collect();
    Err(format!(
        "{done} of {count} agents have a result (join: {}): {}",
        join.need,
        named.join("; ")
    ))
}
