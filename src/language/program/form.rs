//! The forms of a program, each with its place: lists, and what stands in them.

use std::ops::Range;

use crate::language::place::SourcePlace;
use crate::language::report::quoted;

/// A form and where it stands.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) content: FormContent,
    pub(super) at: SourcePlace,
    /// Its bytes in the text.
    pub(super) span: Range<usize>,
}

/// What a form is.
#[derive(Debug)]
pub(super) enum FormContent {
    List(Vec<Form>),
    /// A text in quotes, without them.
    String(String),
    /// A keyword, without its `:`.
    Keyword(String),
    /// A placeholder, without its `@`.
    Placeholder(String),
    /// A number, as it is written.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    Symbol(String),
    /// What was no word. It has been told, and nothing more is said about it.
    Wrong,
}

impl Form {
    /// The text of what may stand where a text is meant.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            FormContent::String(text) | FormContent::Number(text) | FormContent::Symbol(text) => {
                Some(text)
            }
            FormContent::Boolean(value) => Some(if *value { "true" } else { "false" }),
            FormContent::List(_)
            | FormContent::Keyword(_)
            | FormContent::Placeholder(_)
            | FormContent::Wrong => None,
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.content, FormContent::Wrong)
    }

    /// What it is, in a message.
    pub(super) fn sort(&self) -> String {
        match &self.content {
            FormContent::List(forms) => match forms.first().and_then(Self::text) {
                Some(head) => format!("the list {}", quoted(&format!("({head} …)"))),
                None => "a list".to_owned(),
            },
            FormContent::String(text) => format!("the text {}", quoted(text)),
            FormContent::Keyword(name) => format!("the keyword {}", quoted(&format!(":{name}"))),
            FormContent::Placeholder(name) => {
                format!("the placeholder {}", quoted(&format!("@{name}")))
            }
            FormContent::Number(number) => format!("the number {}", quoted(number)),
            FormContent::Boolean(value) => format!("`{value}`"),
            FormContent::Symbol(name) => format!("the symbol {}", quoted(name)),
            FormContent::Wrong => "this".to_owned(),
        }
    }
}
