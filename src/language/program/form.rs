//! The forms of a program, each with its place: lists, and the forms in them.

use std::ops::Range;

use crate::language::position::SourcePlace;
use crate::language::report::quoted;

/// A form and its place.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) content: FormContent,
    pub(super) at: SourcePlace,
    /// Its byte range in the text.
    pub(super) span: Range<usize>,
}

/// The content of a form.
#[derive(Debug, Clone)]
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
    /// An invalid word. It has been reported, so no further error is.
    Wrong,
}

impl Form {
    /// Returns the symbol that a list begins with.
    pub(super) fn head(&self) -> Option<&str> {
        match &self.content {
            FormContent::List(forms) => match forms.first().map(|first| &first.content) {
                Some(FormContent::Symbol(name)) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Moves the form, and those in it, by a number of lines and bytes.
    pub(super) fn shift(&mut self, lines: u64, bytes: usize) {
        self.at.line += lines;
        self.span = self.span.start + bytes..self.span.end + bytes;
        if let FormContent::List(forms) = &mut self.content {
            for form in forms {
                form.shift(lines, bytes);
            }
        }
    }

    /// Returns the number of lists within each other.
    pub(super) fn height(&self) -> usize {
        match &self.content {
            FormContent::List(forms) => 1 + forms.iter().map(Self::height).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the text of a form that can be read as one.
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

    /// Returns its description for a message.
    pub(super) fn described(&self) -> String {
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
