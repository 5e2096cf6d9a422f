//! Makes the options of a question of the elements of a list in the state.

use std::collections::BTreeSet;

use serde_json::Value;

use super::GraphInterpreter;
use super::scope::GraphScope;
use crate::expression::{Error, Fuel, NameScope, as_text, text};
use crate::graph::checked_graph::{ElementText, OptionsFromState};
use raymond_model::question::{OTHER, QuestionOption};

/// The fields of an element that may be the text of its option, the first one that it has.
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
        if self.names.iter().any(|own| own == name) {
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

impl GraphInterpreter<'_> {
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
        let found = raymond_model::value_path::ValuePath::parse(path).ok();
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
        let own = |keys: &[&str]| keys.iter().find_map(|key| element.get(key)).map(shown);
        let whole = || if element.is_object() { String::new() } else { shown(element) };
        let id = id.or_else(|| own(&["id", "name"])).unwrap_or_else(whole);
        let label = label.or_else(|| own(&NAMES)).unwrap_or_else(|| shown(element));
        let description = description.or_else(|| own(&["description"])).unwrap_or_default();
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

fn shown(value: &Value) -> String {
    text(value).into_owned()
}
