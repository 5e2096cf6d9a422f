//! The values that a parameter of each kind takes.

use crate::graph::vocabulary::ParameterKind;
use crate::yaml::content::{YamlContent, YamlScalar, YamlValue};

/// Returns a description of the values that a parameter takes, if this one is of another kind.
pub(super) fn expected(node: &YamlValue, takes: ParameterKind) -> Option<&'static str> {
    let filled = |text: &YamlScalar| !text.text.trim().is_empty();
    let text = node.text();
    let stands_for = text.is_some_and(|text| text.text.contains("${"));
    let (right, expected) = match takes {
        ParameterKind::Any => (true, ""),
        ParameterKind::Text => (text.is_some(), "a text; put quotes around it"),
        ParameterKind::Filled | ParameterKind::Path => (text.is_some_and(filled), "a text"),
        ParameterKind::Expression => (text.is_some_and(filled), "an expression in quotes"),
        ParameterKind::Boolean => (
            stands_for
                || matches!(node.value, YamlContent::Bool(_))
                || text.is_some_and(|text| ["true", "false"].contains(&text.text.trim())),
            "`true`, `false` or a `${…}`",
        ),
        ParameterKind::Number => {
            let written =
                |text: &YamlScalar| text.text.trim().parse::<serde_json::Number>().is_ok();
            let is_number = matches!(node.value, YamlContent::Number(_));
            (stands_for || is_number || text.is_some_and(written), "a number or a `${…}`")
        }
        ParameterKind::List => {
            (stands_for || matches!(node.value, YamlContent::List(_)), "a list or a `${…}`")
        }
        ParameterKind::Map => {
            (stands_for || matches!(node.value, YamlContent::Map(_)), "a mapping or a `${…}`")
        }
        ParameterKind::Conditions => {
            (matches!(node.value, YamlContent::List(_)), "a list of preconditions")
        }
        ParameterKind::Actions => {
            (matches!(node.value, YamlContent::List(_)), "a list of consequences")
        }
        ParameterKind::Word => {
            let named = matches!(node.value, YamlContent::Bool(_) | YamlContent::Null);
            (text.is_some_and(filled) || named, "a word")
        }
    };
    (!right).then_some(expected)
}
