//! Options that are lists: tools, rules, sources, and the environment.

use std::collections::BTreeMap;

use super::OptionFault;
use super::values::{fault, scalar};
use crate::domain::turn_options::EnvValue;
use crate::language::yaml::content::{YamlContent, YamlValue};

/// Reads a list, or a single text that stands for a list of one.
pub(super) fn each<T>(
    key: &str,
    node: &YamlValue,
    read: impl Fn(&str) -> Result<T, String>,
    into: &mut Option<Vec<T>>,
) -> Result<(), OptionFault> {
    let one = |node: &YamlValue| {
        let text = scalar(node).ok_or_else(|| {
            fault(node, format!("`{key}` is a list of texts, and this is {}", node.sort()))
        })?;
        read(&text).map_err(|why| fault(node, why))
    };
    let list = match &node.value {
        YamlContent::List(list) => list.iter().map(one).collect::<Result<Vec<_>, _>>()?,
        YamlContent::Text(text) if has_outer_comma(&text.text) => {
            let message = format!("`{key}` is a list; write [{}]", text.text);
            return Err(fault(node, message));
        }
        _ => vec![one(node)?],
    };
    *into = Some(list);
    Ok(())
}

/// Returns whether a comma stands outside of brackets.
fn has_outer_comma(text: &str) -> bool {
    let mut depth = 0_i32;
    text.chars().any(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
}

/// Reads the name of a tool.
pub(super) fn tool(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*');
    if text.starts_with('-') || text.is_empty() || !text.chars().all(is_name) {
        let rule = if text.contains('(') {
            "; a rule such as `Bash(cargo test:*)` stands in `allowed_tools` or `disallowed_tools`"
        } else {
            "; write for example Read, or [] for no tools"
        };
        return Err(format!("`{text}` is not the name of a tool{rule}"));
    }
    Ok(text.to_owned())
}

/// Reads a rule: the name of a tool, or a tool and its use in brackets.
///
/// # Errors
/// A text that says what is expected.
pub fn rule(text: &str) -> Result<String, String> {
    let (name, rest) = text.split_once('(').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let is_one_use = |rest: &str| rest.len() > 1 && rest.find(['(', ')']) == Some(rest.len() - 1);
    let closes = rest.is_none_or(is_one_use);
    if tool(name).is_err() || !closes || text.chars().any(char::is_control) {
        return Err(format!(
            "`{}` is not a rule; write a tool, such as WebFetch, or a tool and what it is used for without further brackets, such as Bash(cargo test:*)",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// Reads the environment: a list of names to pass, or a mapping of names to values.
pub(super) fn environment(
    node: &YamlValue,
    into: &mut Option<BTreeMap<String, EnvValue>>,
) -> Result<(), OptionFault> {
    let mut env = BTreeMap::new();
    add_variables(node, &mut env)?;
    *into = Some(env);
    Ok(())
}

fn add_variables(
    node: &YamlValue,
    env: &mut BTreeMap<String, EnvValue>,
) -> Result<(), OptionFault> {
    match &node.value {
        YamlContent::List(list) => return list.iter().try_for_each(|one| add_variables(one, env)),
        YamlContent::Map(entries) => {
            for entry in entries.iter() {
                let name = variable(&entry.key).map_err(|why| fault(&entry.value, why))?;
                let value = match (&entry.value.value, scalar(&entry.value)) {
                    (YamlContent::Null, _) => EnvValue::Pass,
                    (_, Some(text)) if !text.contains('\0') => EnvValue::Set(text),
                    _ => {
                        let message =
                            format!("the value of `{name}` is a text; put quotes around it");
                        return Err(fault(&entry.value, message));
                    }
                };
                env.insert(name, value);
            }
        }
        _ => {
            let name = scalar(node).ok_or_else(|| {
                fault(node, "`env` is a list of names to pass, or a mapping NAME: value")
            })?;
            let name = variable(&name).map_err(|why| fault(node, why))?;
            env.insert(name, EnvValue::Pass);
        }
    }
    Ok(())
}

/// Reads the name of an environment variable.
fn variable(name: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(is_word)
    {
        let hint = match name.split_once('=') {
            Some((name, value)) => format!("; write {{ {name}: {value} }}"),
            None => String::new(),
        };
        return Err(format!("`{name}` is not the name of an environment variable{hint}"));
    }
    if name.starts_with("RAYMOND_") {
        return Err(format!("`{name}` is set by raymond itself; leave it out"));
    }
    Ok(name.to_owned())
}
