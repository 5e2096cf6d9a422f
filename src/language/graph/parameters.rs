//! The parameters of a precondition or a consequence, checked against its table.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::program::{Action, Condition};
use super::reader::{DEEPEST, Reader};
use super::tree::{Content, Entry, Node, Place, Written, quoted};
use super::vocabulary::{Parameter, Role, Takes, comes_with};
use crate::domain::operation::Class;
use crate::language::expression::{Expression, Template};

/// The parameters that tell what an operation is about, the most telling first.
const SUBJECTS: [&str; 5] = ["command", "url", "repo_path", "id", "module"];

/// A parameter that is what it should be.
enum Given {
    Template(Template),
    Expression(Expression),
    Conditions(Vec<Condition>),
    Actions(Vec<Action>),
    Switch(bool),
    Word(String),
}

/// The parameters that were given, and the type they belong to.
pub(super) struct Parameters<'t> {
    /// The type, as it is written.
    pub(super) kind: &'t str,
    pub(super) at: Place,
    /// What a crash in the middle of it means, if a program has added the type.
    pub(super) own: Option<Class>,
    given: BTreeMap<&'t str, Given>,
    nodes: BTreeMap<&'t str, &'t Node>,
}

impl<'t> Parameters<'t> {
    /// The value as it is written, and where.
    pub(super) fn node(&self, name: &str) -> Option<&'t Node> {
        self.nodes.get(name).copied()
    }

    /// The text as it is written; empty if it is none.
    pub(super) fn written(&self, name: &str) -> &'t str {
        self.node(name).and_then(Node::text).map_or("", |text| &text.text)
    }

    /// Returns the parameter that tells what an operation is about, as it is written.
    pub(super) fn subject(&self) -> String {
        let found = SUBJECTS.iter().find_map(|name| self.nodes.get(name));
        found.map_or_else(String::new, |node| match node.json() {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    pub(super) fn template(&mut self, name: &str) -> Option<Template> {
        match self.given.remove(name)? {
            Given::Template(template) => Some(template),
            _ => None,
        }
    }

    pub(super) fn expression(&mut self, name: &str) -> Option<Expression> {
        match self.given.remove(name)? {
            Given::Expression(expression) => Some(expression),
            _ => None,
        }
    }

    pub(super) fn conditions(&mut self) -> Option<Vec<Condition>> {
        match self.given.remove("conditions")? {
            Given::Conditions(conditions) => Some(conditions),
            _ => None,
        }
    }

    pub(super) fn actions(&mut self) -> Option<Vec<Action>> {
        match self.given.remove("actions")? {
            Given::Actions(actions) => Some(actions),
            _ => None,
        }
    }

    pub(super) fn switch(&mut self, name: &str) -> bool {
        matches!(self.given.remove(name), Some(Given::Switch(true)))
    }

    pub(super) fn word(&mut self, name: &str) -> Option<String> {
        match self.given.remove(name)? {
            Given::Word(word) => Some(word),
            _ => None,
        }
    }

    /// All that were given but these, as one map that is filled when it is needed.
    pub(super) fn all_but(&self, left_out: &[&str]) -> Option<Template> {
        let kept = self.nodes.iter().filter(|(name, _)| !left_out.contains(name));
        let map: Map<_, _> = kept.map(|(name, node)| ((*name).to_owned(), node.json())).collect();
        Template::parse(&Value::Object(map)).ok()
    }
}

/// A parameter of either kind of type.
struct Asked<'a> {
    name: &'a str,
    takes: Takes,
    required: bool,
}

impl Reader<'_> {
    /// The type of a precondition or consequence with its parameters. Nothing, if one of them is wrong;
    /// all that are wrong are reported.
    pub(super) fn parameters<'t>(
        &mut self,
        role: Role,
        node: &'t Node,
        besides: &[&str],
    ) -> Option<Parameters<'t>> {
        let (what, code, unknown) = match role {
            Role::Precondition => ("a precondition", "WF301", "Unknown precondition type"),
            Role::Consequence => ("a consequence", "WF302", "Unknown consequence type"),
        };
        let fields = self.map(node, node.at, what)?;
        let entry = self.need(&fields, "type")?;
        let kind: &str = &self.word(entry)?.text;
        let at = entry.value.at;
        let known = comes_with(role, kind).map(|known| known.parameters);
        let own = self.vocabulary.own(role, kind);
        let asked: Vec<Asked<'_>> = match (known, own) {
            (Some(parameters), _) => parameters.iter().map(Asked::of).collect(),
            (None, Some(own)) => Asked::own(role, &own.required, &own.optional),
            (None, None) => {
                let otherwise = || "; use one that is known, or add it to the library".to_owned();
                let hint = self.report.hint(kind, self.vocabulary.names(role), otherwise);
                self.report.error(at, code, format!("{unknown}: {}{hint}", quoted(kind)));
                return None;
            }
        };
        let own = own.map(|own| own.class);
        let mut parameters =
            Parameters { kind, at, own, given: BTreeMap::new(), nodes: BTreeMap::new() };
        let sound = self.all_known(kind, fields.entries, &asked, besides);
        let sound = self.each(&asked, fields.entries, &mut parameters) && sound;
        sound.then_some(parameters)
    }

    fn all_known(
        &mut self,
        kind: &str,
        entries: &[Entry],
        asked: &[Asked<'_>],
        besides: &[&str],
    ) -> bool {
        let known = |key: &str| {
            key == "type" || besides.contains(&key) || asked.iter().any(|one| one.name == key)
        };
        let mut sound = true;
        for entry in entries.iter().filter(|entry| !known(&entry.key)) {
            sound = false;
            let names = asked.iter().map(|one| one.name);
            let otherwise = || {
                let names: Vec<&str> = asked.iter().map(|one| one.name).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("; it takes {names}")
            };
            let hint = self.report.hint(&entry.key, names, otherwise);
            let message = format!("`{kind}` has no parameter {}{hint}", quoted(&entry.key));
            self.report.error(entry.at, "WF303", message);
        }
        sound
    }

    fn each<'t>(
        &mut self,
        asked: &[Asked<'_>],
        entries: &'t [Entry],
        parameters: &mut Parameters<'t>,
    ) -> bool {
        let mut sound = true;
        for Asked { name, takes, required } in asked {
            let Some(entry) = entries.iter().find(|entry| &*entry.key == *name) else {
                if *required {
                    let message = format!("`{}` needs `{name}`", parameters.kind);
                    self.report.error(parameters.at, "WF303", message);
                    sound = false;
                }
                continue;
            };
            let Some(given) = self.given(parameters.kind, entry, *takes) else {
                sound = false;
                continue;
            };
            parameters.given.insert(&entry.key, given);
            parameters.nodes.insert(&entry.key, &entry.value);
        }
        sound
    }

    fn given(&mut self, kind: &str, entry: &Entry, takes: Takes) -> Option<Given> {
        let node = &entry.value;
        let Some(expected) = expected(node, takes) else {
            return self.take(node, takes);
        };
        let sort = match node.text() {
            Some(text) if text.text.trim().is_empty() => "an empty text",
            _ => node.sort(),
        };
        let message = format!("{} of `{kind}` takes {expected}, not {sort}", quoted(&entry.key));
        self.report.error(node.at, "WF303", message);
        None
    }

    fn take(&mut self, node: &Node, takes: Takes) -> Option<Given> {
        match (takes, &node.value) {
            (Takes::Expression, Content::Text(text)) => {
                self.expression(node.at, text).map(Given::Expression)
            }
            (Takes::Conditions, Content::List(list)) => {
                self.deeper(node, |reader| reader.conditions(list)).map(Given::Conditions)
            }
            (Takes::Actions, Content::List(list)) => {
                self.deeper(node, |reader| reader.actions(list)).map(Given::Actions)
            }
            (Takes::Switch, Content::Bool(value)) => Some(Given::Switch(*value)),
            (Takes::Word, Content::Text(text)) => Some(Given::Word(text.text.to_string())),
            (Takes::Word, Content::Bool(value)) => Some(Given::Word(value.to_string())),
            (Takes::Word, Content::Null) => Some(Given::Word("null".to_owned())),
            _ => self.template(node).map(Given::Template),
        }
    }

    /// Reads what stands in something, unless it is too deep.
    fn deeper<T>(&mut self, node: &Node, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= DEEPEST {
            let message = format!("this is nested too deeply; {DEEPEST} levels are allowed");
            self.report.error(node.at, "WF303", message);
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

impl<'a> Asked<'a> {
    fn of(parameter: &'a Parameter) -> Self {
        let Parameter { name, takes, required } = *parameter;
        Self { name, takes, required }
    }

    fn own(role: Role, required: &'a [String], optional: &'a [String]) -> Vec<Self> {
        let any = |name, required| Self { name, takes: Takes::Any, required };
        let required = required.iter().map(|name| any(name, true));
        let mut all: Vec<_> =
            required.chain(optional.iter().map(|name| any(name, false))).collect();
        if role == Role::Consequence && !all.iter().any(|one| one.name == "store_as") {
            all.push(Self { name: "store_as", takes: Takes::Filled, required: false });
        }
        all
    }
}

/// What is expected of a parameter, if this is something else.
fn expected(node: &Node, takes: Takes) -> Option<&'static str> {
    let filled = |text: &Written| !text.text.trim().is_empty();
    let text = node.text();
    let stands_for = text.is_some_and(|text| text.text.contains("${"));
    let (right, expected) = match takes {
        Takes::Any => (true, ""),
        Takes::Text => (text.is_some(), "a text; put quotes around it"),
        Takes::Filled => (text.is_some_and(filled), "a text"),
        Takes::Expression => (text.is_some_and(filled), "an expression in quotes"),
        Takes::Boolean => {
            (stands_for || matches!(node.value, Content::Bool(_)), "`true`, `false` or a `${…}`")
        }
        Takes::Number => {
            (stands_for || matches!(node.value, Content::Number(_)), "a number or a `${…}`")
        }
        Takes::List => (stands_for || matches!(node.value, Content::List(_)), "a list or a `${…}`"),
        Takes::Map => {
            (stands_for || matches!(node.value, Content::Map(_)), "a mapping or a `${…}`")
        }
        Takes::Conditions => (matches!(node.value, Content::List(_)), "a list of preconditions"),
        Takes::Actions => (matches!(node.value, Content::List(_)), "a list of consequences"),
        Takes::Switch => (matches!(node.value, Content::Bool(_)), "`true` or `false`"),
        Takes::Word => {
            let named = matches!(node.value, Content::Bool(_) | Content::Null);
            (text.is_some_and(filled) || named, "a word")
        }
    };
    (!right).then_some(expected)
}
