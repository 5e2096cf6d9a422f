//! Reads comments in the place of an expression, whose value Claude Code is asked for.

use serde_json::Value;

use super::reader::GraphReader;
use crate::language::expression::ValueTemplate;
use crate::language::yaml::content::{YamlScalar, YamlValue};

impl GraphReader<'_> {
    /// Reads comments in the place of an expression, as the task of a turn of Claude Code.
    pub(super) fn prose(&mut self, node: &YamlValue, text: &YamlScalar) -> Option<ValueTemplate> {
        let message = "this is prose, not an expression, so raymond asks Claude Code for the value; write an \
                       expression, or use `spawn_agent` to make that explicit";
        self.lenient(self.beginning(node.at, text), "WF312", message.to_owned());
        let written = Value::String(text.text.to_string());
        match ValueTemplate::parse(&written) {
            Ok(_) => self.template(node),
            Err(_) => ValueTemplate::parse(&Value::String(text.text.replace("${", "$${"))).ok(),
        }
    }
}

/// Returns whether a text is nothing but comments.
pub(super) fn is_comment(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with('#'))
}
