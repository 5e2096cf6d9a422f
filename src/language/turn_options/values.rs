//! Values of options that are not lists: names, texts, switches and counts.

use strum::VariantArray;

use super::OptionFault;
use crate::language::hint::closest;
use crate::language::yaml::content::{YamlContent, YamlValue};

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
