//! The results of actions, the paths and names that a graph reads and writes, and the options of questions.
//!
//! Results are texts for people, checksums, and what agents and pages give.

use std::collections::BTreeSet;

use raymond_model::event::NextAction;
use raymond_model::graph_execution::{LoopFrame, LoopItems, PromptTask};
use raymond_model::json_mistake::ValuePath;
use raymond_model::question::{OTHER, QuestionOption};
use serde_json::{Map, Value};

use super::{GraphInterpreter, GraphYield};
use crate::expression::{Error, Fuel, NameScope, ValueTemplate, as_text, text};
use crate::graph::checked_graph::{ElementText, OptionsFromState};
use crate::graph::reader::table;
use crate::source::checksum;

/// The outcome of one action.
pub(in crate::graph) enum ActionOutcome {
    Done,
    Loop(LoopItems),
    Needs(GraphYield),
}

impl GraphInterpreter {
    /// Stores the value that Claude Code gives for a description.
    pub(super) fn prose(
        &mut self,
        task: &ValueTemplate,
        store: &ValueTemplate,
    ) -> Result<ActionOutcome, String> {
        match self.take_result() {
            Some(came) => self.stored(Some(store), as_value(came?)),
            None => Ok(needs_turn(self.task_of_prose(task)?)),
        }
    }

    /// Writes the log to its file.
    pub(super) fn write_log(
        &mut self,
        parameters: &ValueTemplate,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_result() else {
            let write = self.log_file(parameters)?;
            return Ok(ActionOutcome::Needs(GraphYield::Operation(write)));
        };
        came?;
        self.note_log_file(parameters).map(|()| ActionOutcome::Done)
    }

    /// Shows a table.
    pub(super) fn show_table(
        &mut self,
        title: Option<&ValueTemplate>,
        headers: &ValueTemplate,
        rows: &ValueTemplate,
    ) -> Result<ActionOutcome, String> {
        let title = self.optional_text(title)?;
        let (headers, rows) = (self.fill(headers)?, self.fill(rows)?);
        self.shown.push(table(title.as_deref(), &headers, &rows)?);
        Ok(ActionOutcome::Done)
    }

    /// Shows a value.
    pub(super) fn show(
        &mut self,
        title: Option<&ValueTemplate>,
        content: &ValueTemplate,
        json: bool,
    ) -> Result<ActionOutcome, String> {
        let title = self.optional_text(title)?;
        let content = self.fill(content)?;
        let content = match as_text(&content).filter(|_| !json) {
            Some(text) => text.to_owned(),
            None => serde_json::to_string_pretty(&content).unwrap_or_default(),
        };
        self.shown.push(title.into_iter().chain([content]).collect::<Vec<_>>().join("\n\n"));
        Ok(ActionOutcome::Done)
    }
}

/// Returns the outcome of an action that needs a turn of Claude Code.
pub(super) fn needs_turn(task: PromptTask) -> ActionOutcome {
    ActionOutcome::Needs(GraphYield::action(NextAction::Task(Box::new(task))))
}

/// Returns whether a page was fetched. Claude Code is not asked about a failed fetch.
pub(super) fn is_page(page: &Value) -> bool {
    page.get("status").and_then(Value::as_u64).is_some_and(|status| (1..400).contains(&status))
}

/// Returns the result of an agent: data if it is a JSON object or list, else text.
pub(super) fn as_data(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    match serde_json::from_str::<Value>(text) {
        Ok(data @ (Value::Object(_) | Value::Array(_))) => data,
        _ => value,
    }
}

/// Returns the value that a reply is: any JSON, also in a fence of Markdown, else the text.
fn as_value(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    let inside = text.trim();
    let inside = inside.strip_prefix("```json").or(inside.strip_prefix("```")).unwrap_or(inside);
    serde_json::from_str(inside.trim_end_matches("```").trim()).unwrap_or(value)
}

/// Returns the checksum of a text, or of a value as JSON. Equal maps have the same checksum: the order of their keys
/// does not matter.
pub(super) fn hash(value: &Value) -> String {
    if let Some(text) = as_text(value) {
        return checksum(text);
    }
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    checksum(sorted.to_string())
}

// The paths of parameters: where values are read, and where they are written.

impl GraphInterpreter {
    /// Returns a path with its values filled in.
    pub(super) fn value_path(&mut self, path: &ValueTemplate) -> Result<ValuePath, String> {
        ValuePath::parse(&self.text(path)?).map_err(|error| format!("WF403 {error}"))
    }

    /// Returns the value at a path, which has to exist.
    pub(super) fn existing(&mut self, path: &ValueTemplate) -> Result<Value, String> {
        let path = self.value_path(path)?;
        self.at(&path).ok_or_else(|| format!("WF402 Unresolved variable: ${{{path}}}"))
    }

    /// Returns the keys of a full path that is written to.
    pub(super) fn path(&mut self, path: &ValueTemplate) -> Result<Vec<String>, String> {
        let path = self.value_path(path)?;
        self.keys(&path)
    }

    /// Returns the keys of a path that a result is stored at: a field that exists already, else one below
    /// `computed`.
    pub(in crate::graph) fn store_path(
        &mut self,
        path: &ValueTemplate,
    ) -> Result<Vec<String>, String> {
        let path = self.value_path(path)?;
        let fields = &self.state.fields;
        let is_field = path.root().is_some_and(|root| {
            let is_computed = fields.get("computed").is_some_and(|all| all.get(root).is_some());
            if ROOTS.contains(&root) {
                path.segments().len() > 1
            } else {
                fields.contains_key(root) && !is_computed
            }
        });
        let is_state = path.root() == Some("state") && !fields.contains_key("state");
        if is_field || is_state { self.keys(&path) } else { self.keys(&path.below("computed")) }
    }

    /// Returns the keys of a flag, which is given with or without the word `flags`.
    pub(super) fn flag(&mut self, flag: &ValueTemplate) -> Result<Vec<String>, String> {
        let path = self.value_path(flag)?.below("flags");
        self.keys(&path)
    }

    fn keys(&self, path: &ValuePath) -> Result<Vec<String>, String> {
        let below = path.without("state").filter(|_| !self.state.fields.contains_key("state"));
        below
            .as_ref()
            .unwrap_or(path)
            .keys_in(&self.state.fields)
            .map_err(|why| format!("WF403 {why}"))
    }

    /// Returns the value at a path that is written to, if there is one.
    pub(in crate::graph) fn written(&self, path: &[String]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.state.fields.get(first)?, |here, key| match here {
            Value::Array(list) => list.get(key.parse::<usize>().ok()?),
            other => other.get(key),
        })
    }
}

// Resolves names in a graph: loops first, then an explicit root, then the first map with a bare name.

/// The root names whose values are maps.
pub(super) const ROOTS: [&str; 3] = ["computed", "flags", "user_responses"];

/// The scope of a graph's nodes.
pub(super) struct GraphScope<'state> {
    fields: &'state Map<String, Value>,
    levels: &'state [LoopFrame],
    names: &'state Map<String, Value>,
    builtins: &'state Map<String, Value>,
    now: &'state Value,
}

impl GraphInterpreter {
    pub(super) fn scope(&self) -> GraphScope<'_> {
        GraphScope {
            fields: &self.state.fields,
            levels: &self.state.cursor.levels,
            names: &self.names,
            builtins: &self.around.builtins,
            now: &self.now_text,
        }
    }

    /// Returns the value at a path; `None` if it is missing.
    pub(super) fn at(&self, path: &ValuePath) -> Option<Value> {
        let scope = self.scope();
        let name = path.root()?;
        if let Some(found) = scope.root(name) {
            return path.rest_of(found).cloned();
        }
        let path = path.without("state")?;
        path.rest_of(scope.field(path.root()?)?).cloned()
    }
}

impl NameScope for GraphScope<'_> {
    fn root(&self, name: &str) -> Option<&Value> {
        let mut loops = self.levels.iter().rev().filter_map(|level| level.each.as_ref());
        if let Some(each) = loops.find(|each| each.name == name) {
            return each.items.get(each.at);
        }
        if ROOTS.contains(&name) {
            return self.fields.get(name);
        }
        let mut maps = ROOTS.into_iter().filter_map(|root| self.fields.get(root)?.get(name));
        let field = maps.next().or_else(|| self.fields.get(name));
        let builtin = match name {
            "cwd" => "PWD",
            "ARGUMENTS" => "arguments",
            name => name,
        };
        field.or_else(|| self.names.get(name)).or_else(|| self.builtins.get(builtin))
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).or_else(|| self.names.get(name))
    }

    fn now(&self) -> Option<&Value> {
        Some(self.now)
    }
}

// Makes the options of a question from the elements of a list in the state.

/// The fields of an element that may be the text of its option. The first field that the element has is used.
const NAMES: [&str; 4] = ["label", "name", "title", "id"];

/// A scope that knows an element as well.
struct ElementScope<'scope> {
    around: GraphScope<'scope>,
    names: &'scope [String],
    element: &'scope Value,
    /// True if the fields of the element are names, too.
    is_open: bool,
}

impl NameScope for ElementScope<'_> {
    fn root(&self, name: &str) -> Option<&Value> {
        if self.names.iter().any(|known| known == name) {
            return Some(self.element);
        }
        let field = self.element.get(name).filter(|_| self.is_open);
        field.or_else(|| self.around.root(name))
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.around.field(name)
    }

    fn now(&self) -> Option<&Value> {
        self.around.now()
    }
}

impl GraphInterpreter {
    /// Returns the options and their elements.
    pub(super) fn options_of(
        &mut self,
        from: &OptionsFromState,
    ) -> Result<Vec<(QuestionOption, Value)>, String> {
        let elements = match self.fill(&from.list)? {
            Value::String(path) => self.elements_at(&path)?,
            list => list,
        };
        let elements = match elements {
            Value::Array(elements) => elements,
            // The output of a command is a list of lines.
            other => match as_text(&other) {
                Some(lines) => {
                    lines.lines().filter(|line| !line.is_empty()).map(Value::from).collect()
                }
                None => {
                    return Err("WF403 `options_from_state` is the path of no list".to_owned());
                }
            },
        };
        if elements.is_empty() {
            return Err("WF403 the list of `options_from_state` is empty, so there is nothing to choose from; check it before, as with `count_above`".to_owned());
        }
        let mut ids = BTreeSet::from([OTHER.to_owned()]);
        let mut options = Vec::with_capacity(elements.len());
        for (place, element) in elements.into_iter().enumerate() {
            let mut option = self.option_of(from, &element)?;
            if option.id.trim().is_empty() {
                option.id = format!("option_{}", place + 1);
            }
            let plain = option.id.clone();
            let mut number = 2;
            while !ids.insert(option.id.clone()) {
                option.id = format!("{plain}_{number}");
                number += 1;
            }
            options.push((option, element));
        }
        Ok(options)
    }

    /// Returns the value at a path as it is written, or a text of several lines.
    pub(super) fn elements_at(&self, path: &str) -> Result<Value, String> {
        let found = ValuePath::parse(path).ok();
        match found.and_then(|path| self.at(&path)) {
            Some(found) => Ok(found),
            None if path.contains('\n') => Ok(path.into()),
            None => Err(format!("WF402 Unresolved variable: ${{{path}}}")),
        }
    }

    fn option_of(
        &mut self,
        from: &OptionsFromState,
        element: &Value,
    ) -> Result<QuestionOption, String> {
        let id = self.element_text(from, from.id.as_ref(), element)?;
        let label = self.element_text(from, from.label.as_ref(), element)?;
        let description = self.element_text(from, from.description.as_ref(), element)?;
        let field = |keys: &[&str]| keys.iter().find_map(|key| element.get(key)).map(shown);
        let whole = || if element.is_object() { String::new() } else { shown(element) };
        let id = id.or_else(|| field(&["id", "name"])).unwrap_or_else(whole);
        let label = label.or_else(|| field(&NAMES)).unwrap_or_else(|| shown(element));
        let description = description.or_else(|| field(&["description"])).unwrap_or_default();
        Ok(QuestionOption { id, label, description })
    }

    fn element_text(
        &self,
        from: &OptionsFromState,
        text: Option<&ElementText>,
        element: &Value,
    ) -> Result<Option<String>, String> {
        let Some(text) = text else { return Ok(None) };
        let is_open = matches!(text, ElementText::Expression(_));
        let scope = ElementScope { around: self.scope(), names: &from.names, element, is_open };
        let mut fuel = Fuel::default();
        let value = match text {
            ElementText::Template(template) => template.fill(&scope, &mut fuel),
            ElementText::Expression(expression) => expression.evaluate(&scope, &mut fuel),
        };
        let value = value.map_err(|error: Error| error.to_string())?;
        Ok((!value.is_null()).then(|| shown(&value)))
    }
}

/// Returns a value as text.
pub(super) fn shown(value: &Value) -> String {
    text(value).into_owned()
}
