//! The forms of a program, each with its place: lists, and what stands in them.

use std::ops::Range;

use crate::language::place::Place;
use crate::language::report::quoted;

/// A form and where it stands.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) content: Content,
    pub(super) at: Place,
    /// Its bytes in the text.
    pub(super) span: Range<usize>,
}

/// What a form is.
#[derive(Debug)]
pub(super) enum Content {
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
            Content::String(text) | Content::Number(text) | Content::Symbol(text) => Some(text),
            Content::Boolean(value) => Some(if *value { "true" } else { "false" }),
            Content::List(_) | Content::Keyword(_) | Content::Placeholder(_) | Content::Wrong => {
                None
            }
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.content, Content::Wrong)
    }

    /// What it is, in a message.
    pub(super) fn sort(&self) -> String {
        match &self.content {
            Content::List(forms) => match forms.first().and_then(Self::text) {
                Some(head) => format!("the list {}", quoted(&format!("({head} …)"))),
                None => "a list".to_owned(),
            },
            Content::String(text) => format!("the text {}", quoted(text)),
            Content::Keyword(name) => format!("the keyword {}", quoted(&format!(":{name}"))),
            Content::Placeholder(name) => {
                format!("the placeholder {}", quoted(&format!("@{name}")))
            }
            Content::Number(number) => format!("the number {}", quoted(number)),
            Content::Boolean(value) => format!("`{value}`"),
            Content::Symbol(name) => format!("the symbol {}", quoted(name)),
            Content::Wrong => "this".to_owned(),
        }
    }
}
