//! Reads what runs at the same time: `parallel` nodes and `spawn_agents_parallel`, and the join that waits for it.

use serde_json::{Map, Value};

use super::checked_graph::{
    ActionKind, GraphNode, GraphNodeName, ParallelAgents, ParallelBranch, ParallelNode, SpawnTask,
};
use super::keys::{self, names};
use super::reader::{GivenParameters, GraphReader, MappingFields};
use crate::diagnostic::quoted;
use crate::expression::ValueTemplate;
use crate::yaml::{YamlContent, YamlEntry, YamlValue};
use raymond_model::join::{Join, JoinCondition, JoinFallback, UnjoinedPolicy};
use raymond_model::time::millis;

impl GraphReader<'_> {
    /// Reads a `parallel` node.
    pub(super) fn parallel(
        &mut self,
        fields: &MappingFields<'_>,
        name: &GraphNodeName,
    ) -> Option<GraphNode> {
        let list = self.need(fields, "branches").and_then(|entry| self.list(entry));
        let mut branches: Vec<ParallelBranch> = Vec::new();
        let mut sound = list.is_some();
        for node in list.unwrap_or_default() {
            let Some(branch) = self.parallel_branch(node) else {
                sound = false;
                continue;
            };
            if branches.iter().any(|known| known.name == branch.name) {
                let message =
                    format!("two branches have the name {}; rename one", quoted(&branch.name));
                self.report.error(node.at, "WF209", message);
            }
            branches.push(branch);
        }
        if list.is_some_and(<[YamlValue]>::is_empty) {
            let at = fields.get("branches").map_or(fields.at, |entry| entry.at);
            self.report.error(at, "WF102", "`branches` has one branch at least");
            sound = false;
        }
        let node = |key| fields.get(key).map(|entry: &YamlEntry| &entry.value);
        let join = self.join(node("join"), node("timeout"), node("rest"), fields);
        if let (Some(Join { need: JoinCondition::Count(count), .. }), Some(list)) = (&join, list)
            && usize::try_from(*count).is_ok_and(|count| count > list.len())
        {
            let at = node("join").map_or(fields.at, |node| node.at);
            let message = format!("`join` waits for {count} of {} branches", list.len());
            self.report.error(at, "WF102", message);
        }
        let on_success = self.required_target(fields, name, "on_success");
        let on_failure = self.required_target(fields, name, "on_failure");
        Some(GraphNode::Parallel(ParallelNode {
            branches: sound.then_some(branches)?,
            join: join?,
            on_success: on_success?,
            on_failure: on_failure?,
        }))
    }

    fn parallel_branch(&mut self, node: &YamlValue) -> Option<ParallelBranch> {
        let fields = self.fields(node, node.at, "a branch", &names(keys::BRANCH))?;
        let name =
            self.need(&fields, "name").and_then(|entry| Some(self.word(entry)?.text.clone()));
        let is_plain =
            |name: &str| name.chars().all(|c| c == '_' || c == '-' || c.is_alphanumeric());
        if let Some(name) = name.as_ref().filter(|name| !is_plain(name)) {
            let message = format!(
                "the name {} of a branch is that of its result below `computed`; write letters, digits, `_` and `-`",
                quoted(name)
            );
            self.report.error(fields.at, "WF102", message);
        }
        let [prompt, kind, state, folder] = ["prompt", "subagent_type", "state", "folder"]
            .map(|key| self.optional_words(&fields, key));
        let variables = self.branch_variables(&fields);
        let (prompt, kind, state, folder) = (prompt?, kind?, state?, folder?);
        let node = |key| fields.get(key).map(|entry: &YamlEntry| &entry.value);
        self.begins_in(node("folder"), node("state"));
        let task = match (prompt, state.is_some() || folder.is_some()) {
            (Some(prompt), false) => SpawnTask::Prompt { kind, prompt },
            (None, true) => SpawnTask::State { folder, state, variables: variables? },
            (Some(_), true) => {
                let message = "a branch has `prompt`, or `state` and `folder`; give one of them";
                self.report.error(fields.at, "WF102", message);
                return None;
            }
            (None, false) => {
                let message = "a branch needs `prompt`, `state` or `folder`";
                self.report.error(fields.at, "WF101", message);
                return None;
            }
        };
        let name = name?.to_string();
        self.variables.write(&format!("computed.{name}"));
        Some(ParallelBranch { name, task })
    }

    /// Reads the variables of a branch; its `input` is one of them.
    fn branch_variables(&mut self, fields: &MappingFields<'_>) -> Option<ValueTemplate> {
        let mut variables = match fields.get("variables") {
            None => Map::new(),
            Some(entry) => {
                let given = self.map(&entry.value, entry.at, "`variables`")?;
                self.template(&entry.value)?;
                let variable = |entry: &YamlEntry| (entry.key.to_string(), entry.value.json());
                given.entries.iter().map(variable).collect()
            }
        };
        if let Some(entry) = fields.get("input") {
            self.template(&entry.value)?;
            variables.insert("input".to_owned(), entry.value.json());
        }
        ValueTemplate::parse(&Value::Object(variables)).ok()
    }

    /// Reads `spawn_agents_parallel`.
    pub(super) fn parallel_agents(
        &mut self,
        given: &mut GivenParameters<'_>,
    ) -> Option<ActionKind> {
        self.require_one_of(given, ["prompt_template", "prompt"])?;
        self.require_one_of(given, ["collect_as", "store_as"])?;
        let at = given.at;
        let fields = MappingFields { at, what: "`spawn_agents_parallel`", entries: &[] };
        let join =
            self.join(given.node("join"), given.node("timeout"), given.node("rest"), &fields)?;
        let store = match given.template("collect_as") {
            Some(store) => {
                self.variables.stores(given.written("collect_as"));
                store
            }
            None => self.store(given)??,
        };
        let prompt = given.template("prompt_template").or_else(|| given.template("prompt"))?;
        let kind = given.template("agent_type").or_else(|| given.template("subagent_type"));
        Some(ActionKind::SpawnParallel(ParallelAgents {
            items: self.read_list(given)?,
            name: given.word("as").unwrap_or_else(|| "item".to_owned()),
            task: SpawnTask::Prompt { kind, prompt },
            store,
            join,
        }))
    }

    /// Reads `foreach`: a list, or the path of one.
    fn read_list(&mut self, given: &mut GivenParameters<'_>) -> Option<ValueTemplate> {
        let path = given.written("foreach").trim().trim_start_matches('.').to_owned();
        self.reads_path(given, "foreach", path, false);
        given.template("foreach")
    }

    /// Reads a join. Without `join` it waits for all.
    fn join(
        &mut self,
        join: Option<&YamlValue>,
        timeout: Option<&YamlValue>,
        rest: Option<&YamlValue>,
        fields: &MappingFields<'_>,
    ) -> Option<Join> {
        let need = match join {
            None => Some(JoinCondition::All),
            Some(node) => condition(node),
        };
        if need.is_none() {
            let at = join.map_or(fields.at, |node| node.at);
            let message = "`join` is `all`, `any`, a number from 1, or `{ count: N }`";
            self.report.error(at, "WF102", message);
        }
        let timeout_ms = match timeout {
            None => Some(None),
            Some(node) => match node.text().map(|text| millis(&text.text)) {
                Some(Ok(time)) => Some(Some(time)),
                Some(Err(why)) => {
                    self.report.error(node.at, "WF102", format!("`timeout`: {why}"));
                    None
                }
                None => {
                    self.report.error(node.at, "WF102", "`timeout` is a duration such as `10m`");
                    None
                }
            },
        };
        let rest = match rest.map(|node| (node, node.text().map(|text| &*text.text))) {
            None | Some((_, Some("leave"))) => Some(UnjoinedPolicy::Leave),
            Some((_, Some("stop"))) => Some(UnjoinedPolicy::Stop),
            Some((node, _)) => {
                self.report.error(node.at, "WF102", "`rest` is `leave` or `stop`");
                None
            }
        };
        // The graph itself goes on at `on_failure`, so the agent does not fail.
        let (on_timeout, on_failure) = (JoinFallback::Keep, JoinFallback::Keep);
        Some(Join { need: need?, timeout_ms: timeout_ms?, on_timeout, on_failure, rest: rest? })
    }
}

/// Returns the number of agents that a join needs, as it is written.
fn condition(node: &YamlValue) -> Option<JoinCondition> {
    let count = |node: &YamlValue| match &node.value {
        YamlContent::Number(number) => {
            let count = u32::try_from(number.as_u64()?).ok()?;
            (count > 0).then_some(JoinCondition::Count(count))
        }
        YamlContent::Text(text) => {
            let count = text.text.trim().parse().ok()?;
            (count > 0).then_some(JoinCondition::Count(count))
        }
        _ => None,
    };
    match &node.value {
        YamlContent::Text(text) if &*text.text == "all" => Some(JoinCondition::All),
        YamlContent::Text(text) if &*text.text == "any" => Some(JoinCondition::Any),
        YamlContent::Map(entries) => match entries.as_slice() {
            [entry] if &*entry.key == "count" => count(&entry.value),
            _ => None,
        },
        _ => count(node),
    }
}
