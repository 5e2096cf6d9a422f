//! Formats conditions for people, as in the program but with their values.

use std::fmt::Write as _;

use crate::program::checked_program::{ProgramCondition, TextExpression};
use raymond_model::fact::Fact;
use raymond_model::printable::flat;
use raymond_model::program_execution::ProgramExecution;
use raymond_model::time::format_duration;

/// The most bytes of a text of the context in a published execution.
const MAX_CONTEXT_BYTES: usize = 2000;

/// The number of characters that are shown of a value.
const MAX_SHOWN_CHARS: usize = 60;

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

/// Formats an execution as a form: its definition, its label, its branch and its context. Long texts are cut.
pub(super) fn instance(execution: &ProgramExecution) -> String {
    let text = |text: &str| {
        let cut = text.floor_char_boundary(MAX_CONTEXT_BYTES);
        let more = if cut < text.len() { "…" } else { "" };
        atom(&format!("{}{more}", &text[..cut]))
    };
    let ProgramExecution { name, label, branch, context, .. } = execution;
    let mut form = format!("(workflow-instance :definition {} :label {}", atom(name), atom(label));
    if let Some(branch) = branch {
        let _ = write!(form, " :branch {}", atom(branch));
    }
    let context = context.iter().filter(|(_, value)| !value.is_empty());
    let context: Vec<String> =
        context.map(|(key, value)| format!("({} {})", atom(key), text(value))).collect();
    if !context.is_empty() {
        let _ = write!(form, " :context ({})", context.join(" "));
    }
    form + ")"
}

/// Says that an assertion has replaced a fact, and so many values behind it.
pub(super) fn replaced(fact: &Fact, behind: usize) -> String {
    let Fact { label, key, value, .. } = fact;
    let more = if behind > 0 { format!(" and {behind} behind it") } else { String::new() };
    let (key, value) = (atom(key), flat(value, MAX_SHOWN_CHARS));
    format!("(assert {label} :key {key}) replaces {value:?}{more}, which no program had taken")
}

pub(super) fn response(name: &str) -> String {
    format!("(transcript-response :request-id {name})")
}

pub(super) fn user_input(name: &str) -> String {
    format!("(user-input :as {})", atom(name))
}

/// Formats a command, or the beginning of a long one.
pub(super) fn command(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    let cut = text.char_indices().nth(MAX_SHOWN_CHARS).map(|(end, _)| format!("{}…", &text[..end]));
    format!("(run :command {:?})", cut.as_deref().unwrap_or(text))
}

pub(super) fn condition(
    shown: &ProgramCondition,
    value: &dyn Fn(&TextExpression) -> String,
) -> String {
    let all = |word: &str, conditions: &[ProgramCondition]| {
        let parts: Vec<String> = conditions.iter().map(|one| condition(one, value)).collect();
        format!("({word} {})", parts.join(" "))
    };
    match shown {
        ProgramCondition::Signal { label, key, equals, .. } => {
            let (key, equals) = (key.as_ref().map(value), equals.as_ref().map(value));
            signal(label, key.as_deref(), equals.as_deref())
        }
        ProgramCondition::Response { request, .. } => response(request),
        ProgramCondition::Matches { text, pattern } => {
            format!("(matches {} {:?})", expression(text, value), pattern.as_str())
        }
        ProgramCondition::Equals { one, other } => {
            format!("(equals {} {})", expression(one, value), expression(other, value))
        }
        ProgramCondition::Verdict { verdict: TextExpression::Verdict(name), word } => {
            format!("(verdict {name} {word})")
        }
        ProgramCondition::Verdict { word, .. } => format!("(verdict … {word})"),
        ProgramCondition::After(millis) => format!("(after \"{}\")", format_duration(*millis)),
        ProgramCondition::At(time) => format!("(at \"{time}\")"),
        ProgramCondition::And(conditions) => all("and", conditions),
        ProgramCondition::Or(conditions) => all("or", conditions),
        ProgramCondition::Not(one) => format!("(not {})", condition(one, value)),
    }
}

/// Formats an expression as in the program, if it is a short one.
fn expression(shown: &TextExpression, value: &dyn Fn(&TextExpression) -> String) -> String {
    match shown {
        TextExpression::Text(text) => atom(text),
        TextExpression::Response(name) => format!("(response {name})"),
        TextExpression::Signal { label, key } => {
            signal(label, key.as_deref().map(value).as_deref(), None)
        }
        TextExpression::Bound(name) => format!("@{name}"),
        _ => "…".to_owned(),
    }
}

/// Formats a value as in a form, without quotes if it needs none.
fn atom(value: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !"()\";~@#:".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("{value:?}")
    }
}
