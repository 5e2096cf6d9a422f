//! Reads the consequences of a graph: changes of the state, and operations on the world.

use serde_json::{Value, json};

use super::checked_graph::{ActionKind, GraphAction, LogEntryKind, OperationTemplate};
use super::conditions::{work, work_with};
use super::packs;
use super::reader::{GivenParameters, GraphReader};
use super::vocabulary::TypeRole;
use crate::expression::ValueTemplate;
use crate::yaml::{YamlContent, YamlEntry, YamlValue};

impl GraphReader<'_> {
    /// Reads several consequences; `None` if one is wrong.
    pub(super) fn actions(&mut self, list: &[YamlValue]) -> Option<Vec<GraphAction>> {
        let read: Vec<_> = list.iter().map(|node| self.action(node)).collect();
        read.into_iter().collect()
    }

    fn action(&mut self, node: &YamlValue) -> Option<GraphAction> {
        // The name of a loop's item exists only inside the loop, so it is noted before the rest is read.
        let local = local(node);
        let known_reads = self.variables.reads_so_far();
        self.variables.locals.extend(local.clone());
        let given = self.parameters(TypeRole::Consequence, node, &[]);
        if local.is_some() {
            self.variables.locals.pop();
        }
        let action = given.and_then(|mut given| {
            let act = self.act(&mut given)?;
            Some(GraphAction { kind: given.kind.to_owned(), act })
        });
        if action.is_none() {
            if local.is_some() {
                // The name of its item may be what is wrong.
                self.variables.forget_reads(known_reads);
            }
            self.variables.writes_of_faulty(node);
        }
        action
    }

    fn act(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        Some(match given.kind {
            "evaluate" => self.evaluated(given)?,
            "compute" => match given.prose("expression") {
                Some(task) => ActionKind::Prose { task, store: self.store(given)?? },
                None => ActionKind::Compute {
                    expression: given.expression("expression")?,
                    store: self.store(given)??,
                },
            },
            "display_message" => ActionKind::DisplayMessage { message: given.template("message")? },
            "display_table" => ActionKind::DisplayTable {
                title: given.template("title"),
                headers: given.template("headers")?,
                rows: given.template("rows")?,
            },
            "create_checkpoint" => ActionKind::CreateCheckpoint { name: given.template("name")? },
            "rollback_checkpoint" => {
                ActionKind::RollbackCheckpoint { name: given.template("name")? }
            }
            "set_timestamp" => ActionKind::SetTimestamp {
                store: self.store(given)??,
                format: given.template("format"),
            },
            "evaluate_keywords" => ActionKind::Keywords {
                input: given.template("input")?,
                sets: keyword_sets(given.node("keyword_sets")?)?,
                store: self.store(given)??,
            },
            "init_log" | "log_node" | "log_event" | "log_entry" | "log_warning" | "log_error"
            | "finalize_log" => self.log(given)?,
            "write_log" => {
                self.variables.write("computed.log_file_path");
                self.check_paths(given)?;
                ActionKind::WriteLog { parameters: given.all_but(&[])? }
            }
            "file_exists_check"
            | "directory_exists_check"
            | "any_file_exists_check"
            | "glob_check"
            | "bash_check" => self.checked(given)?,
            "dynamic_route" => self.dynamic_route(given)?,
            "display" => self.display(given)?,
            "compute_hash" => self.hashed(given)?,
            "foreach" => ActionKind::ForEach {
                items: given.template("items")?,
                name: given.word("as").unwrap_or_else(|| "item".to_owned()),
                actions: given.actions()?,
            },
            "invoke_pattern" | "invoke_skill" => self.invoke(given)?,
            "spawn_agent" | "run_folder" | "run_state" => self.spawn(given)?,
            "spawn_agents_parallel" => self.parallel_agents(given)?,
            "set_flag" | "set_state" | "append_state" | "clear_state" | "merge_state"
            | "mutate_state" => self.state(given)?,
            kind => match packs::reader(kind) {
                Some(read) => read(self, given)?,
                None => self.world(given)?,
            },
        })
    }

    /// Reads an entry of a log.
    fn log(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        self.variables.write("computed.log");
        let entry = match given.kind {
            "init_log" => LogEntryKind::Begin,
            "log_node" => LogEntryKind::In("node_history"),
            "log_event" => LogEntryKind::In("events"),
            "log_warning" => LogEntryKind::In("warnings"),
            "log_error" => LogEntryKind::In("errors"),
            "log_entry" => LogEntryKind::ByLevel,
            _ => LogEntryKind::End,
        };
        if given.node("store_as").is_some() {
            self.variables.write("computed.log_stored_at");
        }
        let parameters = given.all_but(&["store_as"])?;
        Some(ActionKind::Log { entry, parameters, store: self.store(given)? })
    }

    /// Reads a consequence that changes the state.
    fn state(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let operation = match given.word("operation") {
            Some(operation) => operation,
            None => given.kind.strip_suffix("_state").unwrap_or("flag").to_owned(),
        };
        if operation == "flag" || given.kind == "set_flag" {
            self.variables.flags(given.written("flag"));
            let (flag, value) = (given.template("flag")?, given.template("value")?);
            return Some(ActionKind::SetFlag { flag, value });
        }
        let known = ["set", "append", "clear", "merge"];
        if !known.contains(&operation.as_str()) {
            self.no_such_word(given, "operation", &operation, &known);
            return None;
        }
        let written = given.written("field");
        let field = given.template("field")?;
        match operation.as_str() {
            "merge" => self.merges(written, given.node("value")),
            _ => self.variables.write(written),
        }
        if operation == "clear" {
            return Some(ActionKind::ClearState { field });
        }
        let Some(value) = given.template("value") else {
            let message = format!("`mutate_state` needs `value` to {operation} it");
            self.report.error(given.at, "WF303", message);
            return None;
        };
        Some(match operation.as_str() {
            "append" => ActionKind::AppendState { field, value },
            "merge" => ActionKind::MergeState { field, value },
            _ => ActionKind::SetState { field, value },
        })
    }

    fn merges(&mut self, field: &str, value: Option<&YamlValue>) {
        match value.map(YamlValue::json) {
            Some(Value::Object(map)) => {
                self.variables.write(field);
                map.keys().for_each(|key| self.variables.write(&format!("{field}.{key}")));
            }
            _ => self.variables.merges(field),
        }
    }

    /// Reads an operation on the world.
    fn world(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let kind = given.kind;
        let mut prompt = None;
        self.check_repetition(given)?;
        self.check_paths(given)?;
        let work = match kind {
            "cache_web_content" => self.cached(given)?,
            "run_command" => self.command(given)?,
            "web_fetch" => {
                prompt = given.template("prompt");
                work(given, kind, &["store_as", "prompt"])?
            }
            _ => work(given, kind, &["store_as"])?,
        };
        let store = match kind {
            "cache_web_content" if given.node("store_path_as").is_some() => {
                self.variables.stores(given.written("store_path_as"));
                Some(given.template("store_path_as")?)
            }
            _ => self.store(given)?,
        };
        Some(ActionKind::World { work, store, prompt })
    }

    /// Reads `cache_web_content`. The path of the fetched page is replaced by the path of its content.
    fn cached(&mut self, given: &GivenParameters<'_>) -> Option<OperationTemplate> {
        let content = format!("${{{}.content}}", self.origin_path(given)?);
        let dest = given.node("dest")?.json();
        let parameters = ValueTemplate::parse(&json!({ "content": content, "dest": dest })).ok()?;
        Some(work_with(given, given.kind, parameters))
    }

    /// Checks that a command says in one way only what makes it repeatable.
    fn check_repetition(&mut self, given: &GivenParameters<'_>) -> Option<()> {
        // The value of a `${…}` is known only when the command runs.
        let says = |name: &&&str| match **name {
            "unless" => given.node(name).is_some(),
            name => given.written_boolean(name) == Some(true),
        };
        let written: Vec<&str> =
            ["unless", "idempotent", "once"].iter().filter(says).copied().collect();
        let [first, second, ..] = written[..] else { return Some(()) };
        let at = given.node(second).map_or(given.at, |node| node.at);
        let message = format!(
            "`{}` has `{first}` and `{second}`; keep the key that says what a repetition means",
            given.kind
        );
        self.report.error(at, "WF303", message);
        None
    }

    /// Reads `run_command`, the name of `bash_exec` in later graphs.
    fn command(&mut self, given: &mut GivenParameters<'_>) -> Option<OperationTemplate> {
        let known = ["auto", "bash", "sh"];
        match given.word("interpreter") {
            Some(other) if !known.contains(&other.as_str()) => {
                self.no_such_word(given, "interpreter", &other, &known);
                None
            }
            _ => work(given, "bash_exec", &["interpreter", "store_as"]),
        }
    }

    /// Reads the path of `store_as`. The outer option
    /// is `None` if it is wrong, the inner one if there is none.
    #[expect(clippy::option_option, reason = "no path and a wrong one are different")]
    pub(super) fn store(
        &mut self,
        given: &mut GivenParameters<'_>,
    ) -> Option<Option<ValueTemplate>> {
        if given.node("store_as").is_none() {
            return Some(None);
        }
        let path = given.written("store_as");
        match given.kind {
            "bash_exec" | "run_command" => self.variables.stores_command(path),
            _ => self.variables.stores(path),
        }
        given.template("store_as").map(Some)
    }
}

/// Reads sets of keywords, in the order of the file.
fn keyword_sets(node: &YamlValue) -> Option<Vec<(String, ValueTemplate)>> {
    let YamlContent::Map(entries) = &node.value else { return None };
    let set = |entry: &YamlEntry| {
        Some((entry.key.to_string(), ValueTemplate::parse(&entry.value.json()).ok()?))
    };
    entries.iter().map(set).collect()
}

/// Returns the name of a loop's current item.
fn local(node: &YamlValue) -> Option<String> {
    let YamlContent::Map(entries) = &node.value else { return None };
    let text = |key: &str| {
        let entry = entries.iter().find(|entry| &*entry.key == key)?;
        entry.value.text().map(|text| text.text.to_string())
    };
    ["foreach", "spawn_agents_parallel"]
        .contains(&&*text("type")?)
        .then(|| text("as").unwrap_or_else(|| "item".to_owned()))
}
