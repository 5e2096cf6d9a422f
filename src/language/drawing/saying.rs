//! What a program's conditions say, as short as a label has to be.

use crate::domain::time::span;
use crate::language::program::definition::{Condition, Definition, Expression};

/// How many characters a label has at the most.
const LONGEST: usize = 40;

/// A condition in few words.
#[must_use]
pub(super) fn condition(said: &Condition, program: &Definition) -> String {
    let all = |conditions: &[Condition], word: &str| {
        let parts: Vec<String> = conditions.iter().map(|one| condition(one, program)).collect();
        parts.join(word)
    };
    match said {
        Condition::Signal { label, key, equals, .. } => {
            let key = match key {
                Some(Expression::Text(key)) => format!(" {key}"),
                _ => String::new(),
            };
            let equals = equals.as_ref().map(|value| format!(" = {}", expression(value, program)));
            format!("{label}{key}{}", equals.unwrap_or_default())
        }
        Condition::Response { request, .. } => format!("{request} ended"),
        Condition::Matches { text, pattern } => {
            format!("{} ~ /{pattern}/", expression(text, program))
        }
        Condition::After(millis) => format!("after {}", span(*millis)),
        Condition::At(time) => format!("at {time}"),
        Condition::And(conditions) => all(conditions, " and "),
        Condition::Or(conditions) => all(conditions, " or "),
        Condition::Not(one) => format!("not {}", condition(one, program)),
    }
}

fn expression(said: &Expression, program: &Definition) -> String {
    let role = |number: usize| program.roles.get(number).map_or("", |role| &role.name);
    match said {
        Expression::Text(text) => text.clone(),
        Expression::WorkflowId => "@workflow-id".to_owned(),
        Expression::Label => "@label".to_owned(),
        Expression::Branch => "@branch".to_owned(),
        Expression::Context(key) => format!("@context/{key}"),
        Expression::Bound(name) => format!("@{name}"),
        Expression::Signal { label, .. } => label.clone(),
        Expression::Response(name) => format!("response {name}"),
        Expression::Feedback(number) => format!("feedback {}", role(*number)),
        Expression::Artifact(number) => format!("artifact {}", role(*number)),
        Expression::Field { answer, path } => format!("{} {path}", expression(answer, program)),
    }
}

/// A text on one line, of which no more is left than a label shows.
#[must_use]
pub(super) fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
