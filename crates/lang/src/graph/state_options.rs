//! Reads options that are made of the elements of a list in the state.

use super::checked_graph::{ElementText, OptionsFromState};
use super::keys::{self, names};
use super::reader::{GraphReader, MappingFields};
use crate::expression::{Expression, ValueTemplate};
use crate::yaml::content::{YamlEntry, YamlValue};
use raymond_model::value_path::ValuePath;

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
        let fields = self.fields(&entry.value, entry.at, &what, &self::names_of_texts())?;
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
        match Expression::parse(&text.text) {
            Ok(expression) => Some(ElementText::Expression(expression)),
            Err(_) => {
                // The error is reported with its place.
                self.expression(entry.value.at, text).map(ElementText::Expression)
            }
        }
    }

    /// Returns the name that the texts give to the element: the first one that is no field of the graph.
    fn element_name(&self, texts: &YamlValue) -> Option<String> {
        let reads = texts.texts().into_iter().filter_map(|(_, text)| {
            ValueTemplate::parse(&serde_json::Value::from(&*text.text)).ok()
        });
        let mut paths = reads.flat_map(|template| template.reads()).map(|read| read.path);
        paths.find_map(|path| {
            let name = path.split(['.', '[', '?']).next().unwrap_or_default();
            let is_own = !name.is_empty() && name != ITEM && !self.variables.is_field(name);
            is_own.then(|| name.to_owned())
        })
    }
}

fn names_of_texts() -> Vec<&'static str> {
    names(keys::OPTION_TEMPLATE)
}
