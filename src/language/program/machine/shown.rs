//! What is waited for, as the program says it but with its values: for people.

use std::fmt::Write as _;

use crate::domain::time::span;
use crate::language::program::definition::{Condition, Expression};

pub(super) fn signal(label: &str, key: Option<&str>, equals: Option<&str>) -> String {
    let mut text = format!("(signal {label}");
    for (keyword, value) in [(":key", key), (":equals", equals)] {
        if let Some(value) = value {
            let _ = write!(text, " {keyword} {}", atom(value));
        }
    }
    text.push(')');
    text
}

pub(super) fn response(name: &str) -> String {
    format!("(transcript-response :request-id {name})")
}

pub(super) fn condition(shown: &Condition, value: &dyn Fn(&Expression) -> String) -> String {
    let all = |word: &str, conditions: &[Condition]| {
        let parts: Vec<String> = conditions.iter().map(|one| condition(one, value)).collect();
        format!("({word} {})", parts.join(" "))
    };
    match shown {
        Condition::Signal { label, key, equals, .. } => {
            let (key, equals) = (key.as_ref().map(value), equals.as_ref().map(value));
            signal(label, key.as_deref(), equals.as_deref())
        }
        Condition::Response { request, .. } => response(request),
        Condition::Matches { pattern, .. } => format!("(matches … {:?})", pattern.as_str()),
        Condition::After(millis) => format!("(after \"{}\")", span(*millis)),
        Condition::At(time) => format!("(at \"{time}\")"),
        Condition::And(conditions) => all("and", conditions),
        Condition::Or(conditions) => all("or", conditions),
        Condition::Not(one) => format!("(not {})", condition(one, value)),
    }
}

/// A value as it stands in a form: without quotes, if it needs none.
fn atom(value: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !"()\";~@#:".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("{value:?}")
    }
}
