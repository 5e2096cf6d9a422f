//! The labels of a program's conditions, kept short.

use crate::domain::time::format_duration;
use crate::language::program::checked_program::{Program, ProgramCondition, TextExpression};

/// The maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 40;

/// Returns a condition in few words.
pub(super) fn condition_label(condition: &ProgramCondition, program: &Program) -> String {
    let all = |conditions: &[ProgramCondition], word: &str| {
        let parts: Vec<String> =
            conditions.iter().map(|one| condition_label(one, program)).collect();
        parts.join(word)
    };
    match condition {
        ProgramCondition::Signal { label, key, equals, .. } => {
            let key = match key {
                Some(TextExpression::Text(key)) => format!(" {key}"),
                _ => String::new(),
            };
            let equals = equals.as_ref().map(|value| format!(" = {}", expression(value, program)));
            format!("{label}{key}{}", equals.unwrap_or_default())
        }
        ProgramCondition::Response { request, .. } => format!("{request} ended"),
        ProgramCondition::Matches { text, pattern } => {
            format!("{} ~ /{pattern}/", expression(text, program))
        }
        ProgramCondition::Equals { one, other } => {
            format!("{} = {}", expression(one, program), expression(other, program))
        }
        ProgramCondition::Verdict { verdict: TextExpression::Verdict(request), word } => {
            format!("{request}: {word}")
        }
        ProgramCondition::Verdict { word, .. } => word.clone(),
        ProgramCondition::After(millis) => format!("after {}", format_duration(*millis)),
        ProgramCondition::At(time) => format!("at {time}"),
        ProgramCondition::And(conditions) => all(conditions, " and "),
        ProgramCondition::Or(conditions) => all(conditions, " or "),
        ProgramCondition::Not(one) => format!("not {}", condition_label(one, program)),
    }
}

fn expression(said: &TextExpression, program: &Program) -> String {
    let role = |number: usize| program.roles.get(number).map_or("", |role| &role.name);
    match said {
        TextExpression::Text(text) => text.clone(),
        TextExpression::WorkflowId => "@workflow-id".to_owned(),
        TextExpression::Label => "@label".to_owned(),
        TextExpression::Branch => "@branch".to_owned(),
        TextExpression::Context(key) => format!("@context/{key}"),
        TextExpression::Bound(name) => format!("@{name}"),
        TextExpression::Signal { label, .. } => label.clone(),
        TextExpression::Response(name) => format!("response {name}"),
        TextExpression::Verdict(name) => format!("verdict {name}"),
        TextExpression::Together(all) => {
            let all: Vec<String> = all.iter().map(|(_, one)| expression(one, program)).collect();
            all.join(", ")
        }
        TextExpression::Feedback(number) => format!("feedback {}", role(*number)),
        TextExpression::Artifact(number) => format!("artifact {}", role(*number)),
        TextExpression::Field { answer, path } => format!("{} {path}", expression(answer, program)),
    }
}

/// Returns a text on one line, cut to the length of a label.
pub(super) fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_LABEL_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
