//! Options that are lists: tools, rules, sources, and the environment.
//!
//! Values of options that are not lists: names, texts, switches and counts.

use std::collections::BTreeMap;

use strum::VariantArray;

use crate::hint::closest;
use crate::turn_options::OptionFault;
use crate::yaml::content::{YamlContent, YamlValue};
use raymond_model::turn_options::EnvValue;

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
        YamlContent::Text(text) if outer_parts(&text.text).len() > 1 => {
            let parts = outer_parts(&text.text);
            let parts: Vec<&str> =
                parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect();
            // Only a text of a YAML file has a range there; this one is from a program.
            let list = if text.range.is_empty() {
                format!("(\"{}\")", parts.join("\" \""))
            } else {
                format!("[{}]", parts.join(", "))
            };
            return Err(fault(node, format!("`{key}` is a list; write {list}")));
        }
        _ => vec![one(node)?],
    };
    *into = Some(list);
    Ok(())
}

/// Returns the parts of a text between the commas outside of brackets.
fn outer_parts(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_outer = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    };
    text.split(is_outer).collect()
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

/// The longest text that is passed as an argument, in bytes: the system takes no longer ones.
const MAX_ARGUMENT_BYTES: usize = 100_000;

pub(super) fn fault(node: &YamlValue, message: impl Into<String>) -> OptionFault {
    OptionFault { at: node.at, message: message.into() }
}

/// Returns the text of a scalar as it is written: numbers and booleans are texts here, too.
pub(super) fn scalar(node: &YamlValue) -> Option<String> {
    node.as_written().map(str::to_owned)
}

/// Returns the values of a kind, with their names.
pub(super) fn names<T: VariantArray + Copy + Into<&'static str>>() -> Vec<(&'static str, T)> {
    T::VARIANTS.iter().map(|&value| (value.into(), value)).collect()
}

/// Reads a value that has a name.
pub(super) fn by_name<T: Copy>(key: &str, name: &str, names: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = names.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let known = || names.iter().map(|(known, _)| *known);
    let meant = closest(name, known()).map(|meant| format!("did you mean `{meant}`?"));
    let meant = meant.unwrap_or_else(|| {
        let all: Vec<&str> = known().collect();
        format!("use {}", all.join(", "))
    });
    Err(format!("unknown value `{name}` of `{key}`; {meant}"))
}

pub(super) fn named<T: Copy>(
    key: &str,
    node: &YamlValue,
    names: &[(&str, T)],
    into: &mut Option<T>,
) -> Result<(), OptionFault> {
    let all = || names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    let text = scalar(node)
        .ok_or_else(|| fault(node, format!("`{key}` is one of {}, not {}", all(), node.sort())))?;
    *into = Some(by_name(key, &text, names).map_err(|why| fault(node, why))?);
    Ok(())
}

/// Reads a text of a system prompt.
pub(super) fn prompt(
    key: &str,
    node: &YamlValue,
    into: &mut Option<String>,
) -> Result<(), OptionFault> {
    let text = scalar(node);
    let text =
        text.ok_or_else(|| fault(node, format!("`{key}` is a text, not {}", node.sort())))?;
    if text.trim().is_empty() {
        return Err(fault(node, format!("`{key}` is empty; write a text, or leave the key out")));
    }
    if text.len() > MAX_ARGUMENT_BYTES {
        let message = format!(
            "`{key}` is {} bytes long, and may have {MAX_ARGUMENT_BYTES}; put it into the prompt",
            text.len()
        );
        return Err(fault(node, message));
    }
    if text.contains('\0') {
        return Err(fault(node, format!("`{key}` has a zero byte in it; remove it")));
    }
    *into = Some(text);
    Ok(())
}

pub(super) fn switch(
    key: &str,
    node: &YamlValue,
    into: &mut Option<bool>,
) -> Result<(), OptionFault> {
    let YamlContent::Bool(value) = node.value else {
        return Err(fault(node, format!("`{key}` is true or false, not {}", node.sort())));
    };
    *into = Some(value);
    Ok(())
}

pub(super) fn count(
    key: &str,
    node: &YamlValue,
    least: u32,
    into: &mut Option<u32>,
) -> Result<(), OptionFault> {
    let number = scalar(node).and_then(|text| text.parse().ok());
    let number = number.filter(|number| *number >= least);
    let wanted = || format!("`{key}` is a whole number from {least} to {}", u32::MAX);
    *into = Some(number.ok_or_else(|| fault(node, wanted()))?);
    Ok(())
}
