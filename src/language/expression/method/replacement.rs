//! `replace` and `replaceAll`, with JavaScript's `$1`, `$<name>`, `$&` and `$$` in the replacement.

use regex::Captures;

use super::MethodArguments;
use crate::language::expression::flaw::Error;
use crate::language::expression::fuel::Fuel;

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
