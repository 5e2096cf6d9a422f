//! The methods of texts. Lengths and indices are in characters.
//!
//! `replace` and `replaceAll`, with JavaScript's `$1`, `$<name>`, `$&` and `$$` in the replacement.

use regex::Captures;
use serde_json::Value;

use crate::expression::flaw::Error;
use crate::expression::fuel::Fuel;
use crate::expression::method::{BuiltinMethod, MethodArguments};
use crate::expression::token::RegexPattern;
use crate::expression::value;

pub(super) fn apply(
    method: BuiltinMethod,
    text: &str,
    arguments: MethodArguments<'_>,
    fuel: &mut Fuel,
) -> Result<Value, Error> {
    fuel.read(text.len())?;
    let made = match method {
        BuiltinMethod::EndsWith => return Ok(Value::Bool(text.ends_with(arguments.text(0)?))),
        BuiltinMethod::Includes => return Ok(Value::Bool(text.contains(arguments.text(0)?))),
        BuiltinMethod::StartsWith => return Ok(Value::Bool(text.starts_with(arguments.text(0)?))),
        BuiltinMethod::IndexOf => {
            let place = text.find(arguments.text(0)?).map(|at| text[..at].chars().count());
            return Ok(place.map_or(Value::from(-1), value::count));
        }
        BuiltinMethod::Match => {
            return arguments
                .pattern()
                .map_or(Ok(Value::Null), |pattern| found(text, pattern, fuel));
        }
        BuiltinMethod::Split => return split(text, arguments, fuel),
        BuiltinMethod::CharAt => {
            let at = usize::try_from(arguments.whole(0, 0)?).ok();
            at.and_then(|at| text.chars().nth(at)).map(String::from).unwrap_or_default()
        }
        BuiltinMethod::Concat => concat(text, arguments, fuel)?,
        BuiltinMethod::Replace | BuiltinMethod::ReplaceAll => {
            replace(text, arguments, method == BuiltinMethod::ReplaceAll, fuel)?
        }
        BuiltinMethod::Slice => {
            let (start, end) = arguments.range(text.chars().count())?;
            part(text, start, end).to_owned()
        }
        BuiltinMethod::Substring => substring(text, arguments)?.to_owned(),
        BuiltinMethod::ToLowerCase => text.to_lowercase(),
        BuiltinMethod::ToUpperCase => text.to_uppercase(),
        BuiltinMethod::Trim => text.trim().to_owned(),
        _ => return Err(arguments.refuse("a function", None)),
    };
    fuel.text(made.len())?;
    Ok(Value::String(made))
}

/// Returns the part from one character to before another.
fn part(text: &str, start: usize, end: usize) -> &str {
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let from = places.nth(start).unwrap_or(text.len());
    let to = if end > start { places.nth(end - start - 1) } else { Some(from) };
    &text[from..to.unwrap_or(text.len())]
}

/// Returns a part like `slice`, but a negative index is 0, and indices in the wrong order are swapped.
fn substring<'text>(text: &'text str, arguments: MethodArguments<'_>) -> Result<&'text str, Error> {
    let length = text.chars().count();
    let place = |at: i128| usize::try_from(at.clamp(0, length as i128)).unwrap_or(0);
    let (one, other) = (arguments.whole(0, 0)?, arguments.whole(1, length as i128)?);
    let (one, other) = (place(one), place(other));
    Ok(part(text, one.min(other), one.max(other)))
}

fn concat(text: &str, arguments: MethodArguments<'_>, fuel: &mut Fuel) -> Result<String, Error> {
    let mut joined = text.to_owned();
    for place in 0..arguments.given.len() {
        if let Some(more) = arguments.get(place) {
            joined.push_str(&value::text(more));
            fuel.fits(joined.len())?;
        }
    }
    Ok(joined)
}

fn split(text: &str, arguments: MethodArguments<'_>, fuel: &mut Fuel) -> Result<Value, Error> {
    let limit = usize::try_from(arguments.whole(1, i128::from(u32::MAX))?).unwrap_or(usize::MAX);
    let most = limit.min(fuel.list + 1);
    let parts = match arguments.pattern() {
        Some(pattern) => {
            let mut start = 0;
            let mut parts = Vec::new();
            for found in pattern.regex.find_iter(text) {
                fuel.search(text.len() - found.start())?;
                if parts.len() == most {
                    break;
                }
                parts.push(Value::from(&text[start..found.start()]));
                start = found.end();
            }
            if parts.len() < most {
                parts.push(Value::from(&text[start..]));
            }
            parts
        }
        None if arguments.text(0)?.is_empty() => {
            let mut bytes = [0; 4];
            let chars = text.chars().take(most);
            chars.map(|char| Value::from(&*char.encode_utf8(&mut bytes))).collect()
        }
        None => text.split(arguments.text(0)?).take(most).map(Value::from).collect(),
    };
    fuel.list(parts.len())?;
    Ok(Value::Array(parts))
}

/// Returns all matches if the pattern has the flag `g`, else the first and its groups; null if there is none.
fn found(text: &str, pattern: &RegexPattern, fuel: &mut Fuel) -> Result<Value, Error> {
    let mut all = Vec::new();
    if pattern.all {
        for found in pattern.regex.find_iter(text) {
            fuel.search(text.len() - found.start())?;
            fuel.room(all.len() + 1)?;
            all.push(Value::from(found.as_str()));
        }
    } else if let Some(groups) = pattern.regex.captures(text) {
        all.extend(groups.iter().map(|group| group.map(|group| group.as_str()).into()));
    }
    fuel.list(all.len())?;
    Ok(if all.is_empty() { Value::Null } else { Value::Array(all) })
}

/// Replaces all matches in the text, or the first.
pub(super) fn replace(
    text: &str,
    arguments: MethodArguments<'_>,
    all: bool,
    fuel: &mut Fuel,
) -> Result<String, Error> {
    let with = arguments.text(1)?;
    let mut made = String::new();
    let mut start = 0;
    if let Some(pattern) = arguments.pattern() {
        let most = if all || pattern.all { usize::MAX } else { 1 };
        for groups in pattern.regex.captures_iter(text).take(most) {
            let Some(found) = groups.get(0) else { continue };
            fuel.search(text.len() - found.start())?;
            made.push_str(&text[start..found.start()]);
            expand(with, found.as_str(), Some(&groups), &mut made, fuel)?;
            start = found.end();
        }
    } else {
        let sought = arguments.text(0)?;
        for (at, found) in text.match_indices(sought).take(if all { usize::MAX } else { 1 }) {
            fuel.spend(1)?;
            made.push_str(&text[start..at]);
            expand(with, found, None, &mut made, fuel)?;
            start = at + found.len();
        }
    }
    made.push_str(&text[start..]);
    Ok(made)
}

/// Adds the replacement of a match.
fn expand(
    with: &str,
    found: &str,
    groups: Option<&Captures<'_>>,
    made: &mut String,
    fuel: &Fuel,
) -> Result<(), Error> {
    let mut rest = with;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let length = match rest.as_bytes().first() {
            Some(b'$') => {
                made.push('$');
                1
            }
            Some(b'&') => {
                made.push_str(found);
                1
            }
            _ => groups.and_then(|groups| group(rest, groups, made)).unwrap_or_else(|| {
                made.push('$');
                0
            }),
        };
        rest = &rest[length..];
        fuel.fits(made.len())?;
    }
    made.push_str(rest);
    fuel.fits(made.len())
}

/// Adds the group that a `$` names, and returns the length of its name; `None` if there is no such group.
fn group(rest: &str, groups: &Captures<'_>, made: &mut String) -> Option<usize> {
    if let Some(name) = rest.strip_prefix('<') {
        let name = &name[..name.find('>')?];
        made.push_str(groups.name(name).map_or("", |group| group.as_str()));
        return Some(name.len() + 2);
    }
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let length = (1..=digits).rev().find(|length| {
        let number: usize = rest[..*length].parse().unwrap_or(0);
        (1..groups.len()).contains(&number)
    })?;
    let number = rest[..length].parse().ok()?;
    made.push_str(groups.get(number).map_or("", |group| group.as_str()));
    Some(length)
}
