//! The errors of a workflow that was not started because of them.

use crate::language::diagnostic::Diagnostic;

/// The errors of a workflow that was not started because of them.
#[derive(Debug, thiserror::Error)]
#[error("{}\n{}", .errors.iter().zip(.excerpts).map(|(error, excerpt)| with_excerpt(error.to_string(), excerpt.as_deref())).collect::<Vec<_>>().join("\n"), self.advice())]
pub struct WorkflowErrors {
    /// The path of the first state.
    pub(super) entry: String,
    /// The errors, in the order of the files.
    pub errors: Vec<Diagnostic>,
    /// The line of each that stands in a program, with a caret under the place.
    pub excerpts: Vec<Option<String>>,
}

impl WorkflowErrors {
    /// Returns the closing line: the number of errors, and what to do.
    #[must_use]
    pub fn advice(&self) -> String {
        let (errors, them) = match self.errors.len() {
            1 => ("an error".to_owned(), "it"),
            more => (format!("{more} errors"), "them"),
        };
        let entry = &self.entry;
        format!(
            "{errors} in the files that {entry} leads to, and nothing was started; fix {them}, or start the workflow as it is: --no-check"
        )
    }
}

/// Returns the line of an error, followed by that of the program, if it has one.
fn with_excerpt(line: String, excerpt: Option<&str>) -> String {
    match excerpt {
        Some(excerpt) => format!("{line}\n  {}", excerpt.replace('\n', "\n  ")),
        None => line,
    }
}
