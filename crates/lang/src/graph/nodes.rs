//! Reads the nodes of a graph, its endings, and options that are made of a list in the state.

use raymond_model::json_mistake::ValuePath;

use super::checked_graph::{
    ElementText, GraphEnding, GraphNode, GraphNodeName, NodeTurn, OptionsFromState, ReferenceNode,
};
use super::keys;
use super::keys::{NODE_TYPES, names};
use super::reader::{GraphReader, MappingFields};
use crate::diagnostic::quoted;
use crate::expression::{Expression, ValueTemplate};
use crate::output::{OutputSchema, schema_of};
use crate::template::{CODE, warning};
use crate::turn_options;
use crate::turn_options::{WrittenOptions, embed_files};
use crate::yaml::{YamlContent, YamlEntry, YamlValue};

impl GraphReader<'_> {
    /// Reads a node; `None` if something in it is wrong.
    pub(super) fn graph_node(
        &mut self,
        entry: &YamlEntry,
        name: &GraphNodeName,
    ) -> Option<GraphNode> {
        let what = format!("the node {}", quoted(name));
        let fields = self.map(&entry.value, entry.at, &what)?;
        let kind = self.need(&fields, "type")?;
        let word: &str = &self.word(kind)?.text;
        let Some(known) = NODE_TYPES.iter().find(|known| known.name == word) else {
            let types = || NODE_TYPES.iter().map(|known| known.name);
            let hint = self.report.hint(word, types(), String::new);
            let all = types().collect::<Vec<_>>().join(", ");
            let end = if hint.ends_with('?') { "" } else { "." };
            let message = format!("unknown node type {}{hint}{end} There are {all}", quoted(word));
            self.report.error(kind.value.at, "WF210", message);
            return None;
        };
        let mut keys = [names(keys::NODE), names(known.keys)].concat();
        if known.asks_claude {
            keys.push("model");
            keys.extend(turn_options::KEYS);
        }
        let fields = self.fields(&entry.value, entry.at, &what, &keys)?;
        self.node_turn(&fields, name);
        let switch = self.turns.get(name).and_then(|turn| turn.options.run_command);
        self.command_prompts(&entry.value, switch);
        match word {
            "action" => self.action_node(&fields, name),
            "conditional" => self.conditional(&fields, name),
            "user_prompt" => self.user_prompt(&fields, name).map(GraphNode::UserPrompt),
            "validation_gate" => self.gate(&fields, name),
            "parallel" => self.parallel(&fields, name),
            _ => self.reference(&fields, name),
        }
    }

    /// Reads the target of a key.
    pub(super) fn required_target(
        &mut self,
        fields: &MappingFields<'_>,
        from: &GraphNodeName,
        key: &str,
    ) -> Option<GraphNodeName> {
        let entry = self.need(fields, key)?;
        let code = if key == "next_node" { "WF204" } else { "WF202" };
        self.target(from, entry, code)
    }

    /// Reads the target of an optional key; the outer option is `None` if it is wrong.
    #[expect(clippy::option_option, reason = "no way and a wrong one are different")]
    pub(super) fn optional_target(
        &mut self,
        fields: &MappingFields<'_>,
        from: &GraphNodeName,
        key: &str,
    ) -> Option<Option<GraphNodeName>> {
        let Some(entry) = fields.get(key) else { return Some(None) };
        self.target(from, entry, "WF202").map(Some)
    }

    fn action_node(
        &mut self,
        fields: &MappingFields<'_>,
        name: &GraphNodeName,
    ) -> Option<GraphNode> {
        let list = self.need(fields, "actions").and_then(|entry| self.list(entry));
        let actions = list.and_then(|list| self.actions(list));
        let on_success = self.required_target(fields, name, "on_success");
        let on_failure = self.required_target(fields, name, "on_failure");
        Some(GraphNode::Action {
            actions: actions?,
            on_success: on_success?,
            on_failure: on_failure?,
        })
    }

    fn conditional(
        &mut self,
        fields: &MappingFields<'_>,
        name: &GraphNodeName,
    ) -> Option<GraphNode> {
        let entry = self.need(fields, "condition");
        let condition = entry.and_then(|entry| self.condition(&entry.value));
        let branches = self.need(fields, "branches")?;
        let branches = self.map(&branches.value, branches.at, "`branches`")?;
        let when_true = self.branch(&branches, name, true);
        let when_false = self.branch(&branches, name, false);
        for entry in branches.entries.iter().filter(|entry| branch(&entry.key).is_none()) {
            let key = quoted(&entry.key);
            let message = format!("unknown key {key} in `branches`; it has `true` and `false`");
            self.report.error(entry.at, "WF102", message);
        }
        let (when_true, when_false) = (when_true?, when_false?);
        Some(GraphNode::Conditional { condition: condition?, when_true, when_false })
    }

    fn branch(
        &mut self,
        branches: &MappingFields<'_>,
        from: &GraphNodeName,
        value: bool,
    ) -> Option<GraphNodeName> {
        let mut found = branches.entries.iter().filter(|entry| branch(&entry.key) == Some(value));
        let Some(entry) = found.next() else {
            self.report.error(branches.at, "WF101", format!("`branches` needs `{value}`"));
            return None;
        };
        if let Some(twice) = found.next() {
            let message = format!("the branch `{value}` is already on line {}", entry.at.line);
            self.report.error(twice.at, "WF002", message);
        }
        self.target(from, entry, "WF203")
    }

    fn gate(&mut self, fields: &MappingFields<'_>, name: &GraphNodeName) -> Option<GraphNode> {
        let list = self.need(fields, "validations").and_then(|entry| self.list(entry));
        let validations = list.and_then(|list| self.conditions(list));
        let on_valid = self.required_target(fields, name, "on_valid");
        let on_invalid = self.required_target(fields, name, "on_invalid");
        self.variables.write("computed.validation_errors");
        let (on_valid, on_invalid) = (on_valid?, on_invalid?);
        Some(GraphNode::ValidationGate { validations: validations?, on_valid, on_invalid })
    }

    fn reference(&mut self, fields: &MappingFields<'_>, name: &GraphNodeName) -> Option<GraphNode> {
        let next = self.required_target(fields, name, "next_node");
        let on_failure = self.optional_target(fields, name, "on_failure");
        let context = self.context(fields.get("context").map(|entry| &entry.value));
        let section = fields.get("section");
        let sound = section.is_none_or(|entry| self.words(entry).is_some());
        let doc = self.need(fields, "doc").filter(|entry| self.word(entry).is_some());
        let text = doc
            .filter(|_| sound)
            .and_then(|doc| self.document(&doc.value, section.map(|entry| &entry.value)));
        self.answer_variables(name);
        let reference = ReferenceNode { text: text?, context: context? };
        Some(GraphNode::Reference { reference, next: next?, on_failure: on_failure? })
    }

    /// Notes the variables that the answer of a node writes.
    fn answer_variables(&mut self, name: &GraphNodeName) {
        let output = self.turns.get(name).and_then(|turn| turn.output.as_ref());
        match output.and_then(OutputSchema::closed_fields) {
            Some(fields) => {
                for field in fields {
                    self.variables.write(&format!("computed.{field}"));
                }
            }
            None => self.variables.merges("computed"),
        }
    }

    /// Reads the settings of a node's turns. Mistakes are reported, and the node is read without them.
    fn node_turn(&mut self, fields: &MappingFields<'_>, name: &GraphNodeName) {
        let mut written = WrittenOptions::read(fields.entries);
        written.faults.extend(embed_files(&mut written.options, &written.places, self.source));
        for fault in written.faults {
            self.report.error(fault.at, "WF105", fault.message);
        }
        let output = fields.get("output").and_then(|entry| {
            let read = schema_of(&entry.value, self.source);
            read.map_err(|why| self.report.error(entry.value.at, "WF106", why)).ok()
        });
        let model = self.model(fields).flatten();
        let (options, places) = (written.options, written.places);
        let turn = NodeTurn { model, options, places, output };
        if turn != NodeTurn::default() {
            self.turns.insert(GraphNodeName::clone(name), turn);
        }
    }

    /// Warns of the prompts in a node, at any depth, that look like commands and are sent as text, or cannot be
    /// commands. A kind of agent is named before its prompt.
    fn command_prompts(&mut self, node: &YamlValue, switch: Option<bool>) {
        match &node.value {
            YamlContent::List(items) => {
                items.iter().for_each(|item| self.command_prompts(item, switch));
            }
            YamlContent::Map(entries) => {
                let text = |entry: &YamlEntry| entry.value.text().map(|text| text.text.to_string());
                let kinds = entries.iter().filter(|entry| entry.key.ends_with("agent_type"));
                let is_plain = kinds.filter_map(text).all(|kind| kind == "general-purpose");
                for entry in entries.iter() {
                    self.command_prompts(&entry.value, switch);
                    let prompt =
                        text(entry).filter(|_| is_plain && entry.key.starts_with("prompt"));
                    if let Some(message) = prompt.and_then(|text| warning(text.trim(), switch)) {
                        self.report.warning(entry.value.at, CODE, message);
                    }
                }
            }
            _ => {}
        }
    }

    /// Reads an ending; `None` if something in it is wrong.
    pub(super) fn ending(&mut self, entry: &YamlEntry) -> Option<GraphEnding> {
        let what = format!("the ending {}", quoted(&entry.key));
        let fields = self.fields(&entry.value, entry.at, &what, &names(keys::ENDING))?;
        let success = self.need(&fields, "type").and_then(|kind| self.success(kind));
        let message = self.need(&fields, "message").and_then(|entry| self.message(entry));
        let details = self.optional_words(&fields, "details");
        let code = self.optional_words(&fields, "code");
        let recovery = match fields.get("recovery") {
            Some(entry) if matches!(entry.value.value, YamlContent::Map(_)) => {
                let keys = ["suggestion", "related_skill"];
                self.fields(&entry.value, entry.at, "`recovery`", &keys);
                self.template(&entry.value).map(Some)
            }
            _ => self.optional_words(&fields, "recovery"),
        };
        let delegate = match fields.get("delegate") {
            None => Some(None),
            Some(entry) => {
                let keys = ["skill", "context"];
                let delegate = self.fields(&entry.value, entry.at, "`delegate`", &keys);
                let skill = delegate.and_then(|fields| self.need(&fields, "skill"));
                skill.and_then(|_| self.template(&entry.value)).map(Some)
            }
        };
        let summary = match fields.get("summary") {
            None => Some(None),
            Some(entry) => self.template(&entry.value).map(Some),
        };
        Some(GraphEnding {
            success: success?,
            message: message?,
            recovery: recovery?,
            details: details?,
            summary: summary?,
            delegate: delegate?,
            code: code?,
        })
    }

    /// Reads the message of an ending, which may be empty.
    fn message(&mut self, entry: &YamlEntry) -> Option<ValueTemplate> {
        match entry.value.text() {
            Some(text) if text.text.is_empty() => self.template(&entry.value),
            _ => self.words(entry),
        }
    }

    fn success(&mut self, kind: &YamlEntry) -> Option<bool> {
        match &*self.word(kind)?.text {
            "success" => Some(true),
            "error" => Some(false),
            other => {
                let message =
                    format!("an ending is a `success` or an `error`, not {}", quoted(other));
                self.report.error(kind.value.at, "WF102", message);
                None
            }
        }
    }
}

/// Returns the branch that a key names; later graphs write `on_true` and `on_false`.
fn branch(key: &str) -> Option<bool> {
    match key {
        "true" | "True" | "TRUE" | "on_true" => Some(true),
        "false" | "False" | "FALSE" | "on_false" => Some(false),
        _ => None,
    }
}

// Reads options that are made of the elements of a list in the state.

/// The name of an element that needs no other one.
const ITEM: &str = "item";

impl GraphReader<'_> {
    /// Reads `options_from_state` with the texts of its options.
    pub(super) fn state_options(
        &mut self,
        entry: &YamlEntry,
        prompt: &MappingFields<'_>,
    ) -> Option<OptionsFromState> {
        let list = self.state_list(entry)?;
        let given =
            prompt.get("as").map(|entry| self.word(entry).map(|text| text.text.to_string()));
        let (template, mapping) = (prompt.get("option_template"), prompt.get("option_mapping"));
        if let (Some(_), Some(mapping)) = (template, mapping) {
            let message = "`option_template` and `option_mapping` say the same; give one of them";
            self.report.error(mapping.at, "WF102", message);
        }
        let texts = template.or(mapping);
        let mut names = vec![ITEM.to_owned()];
        match given {
            Some(name) => names.push(name?),
            None => names.extend(template.and_then(|entry| self.element_name(&entry.value))),
        }
        let mut options =
            OptionsFromState { list, names, id: None, label: None, description: None };
        let Some(entry) = texts else { return Some(options) };
        let what = format!("`{}`", entry.key);
        let fields =
            self.fields(&entry.value, entry.at, &what, &keys::names(keys::OPTION_TEMPLATE))?;
        for text in fields.entries {
            let read = if template.is_some() {
                self.variables.locals.extend(options.names.iter().cloned());
                let read = self.words(text).map(ElementText::Template);
                let kept = self.variables.locals.len() - options.names.len();
                self.variables.locals.truncate(kept);
                read
            } else {
                self.element_expression(text)
            };
            match &*text.key {
                "id" => options.id = Some(read?),
                "label" => options.label = Some(read?),
                "description" => options.description = Some(read?),
                _ => {}
            }
        }
        Some(options)
    }

    /// Reads the path of the list, also inside `${…}`.
    fn state_list(&mut self, entry: &YamlEntry) -> Option<ValueTemplate> {
        let text = self.word(entry)?;
        if text.text.contains("${") {
            return self.template(&entry.value);
        }
        match ValuePath::parse(&text.text) {
            Ok(_) => {
                self.variables.read_path(&text.text);
                let path = text.text.trim().trim_start_matches('.').to_owned();
                let at = self.beginning(entry.value.at, text);
                self.variables.read(at, path, false);
                let path = serde_json::Value::from(&*text.text);
                ValueTemplate::parse(&path).ok()
            }
            Err(error) => {
                self.report.error(entry.value.at, "WF102", error.to_string());
                None
            }
        }
    }

    /// Reads an expression that sees the fields of the element as names.
    fn element_expression(&mut self, entry: &YamlEntry) -> Option<ElementText> {
        let text = self.word(entry)?;
        let expression = match Expression::parse(&text.text) {
            Ok(expression) => Some(expression),
            // The error is reported with its place.
            Err(_) => self.expression(entry.value.at, text),
        };
        expression.map(ElementText::Expression)
    }

    /// Returns the name that the texts give to the element: the first name that is not a field of the graph.
    fn element_name(&self, texts: &YamlValue) -> Option<String> {
        let reads = texts.texts().into_iter().filter_map(|(_, text)| {
            ValueTemplate::parse(&serde_json::Value::from(&*text.text)).ok()
        });
        let mut paths = reads.flat_map(|template| template.reads()).map(|read| read.path);
        paths.find_map(|path| {
            let name = path.split(['.', '[', '?']).next().unwrap_or_default();
            let is_named = !name.is_empty() && name != ITEM && !self.variables.is_field(name);
            is_named.then(|| name.to_owned())
        })
    }
}
