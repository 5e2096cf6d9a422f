//! Collects the mistakes in a file of a workflow that is read to its end.

use std::cell::Cell;

use super::diagnostic::{Diagnostic, Severity};
use super::hint::{closest, is_slip};
use super::position::SourcePlace;

/// The maximum number of mistakes with a hint: with thousands of names the search for a similar one takes time.
const MAX_HINTS: u32 = 50;

/// The longest name that is compared with others, in bytes.
const MAX_COMPARED_BYTES: usize = 64;

/// The problems found so far.
pub(crate) struct FileDiagnostics {
    path: String,
    found: Vec<Diagnostic>,
    hints: Cell<u32>,
}

impl FileDiagnostics {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), found: Vec::new(), hints: Cell::new(MAX_HINTS) }
    }

    pub(crate) fn error(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add(at, code, Severity::Error, message);
    }

    pub(crate) fn warning(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add(at, code, Severity::Warning, message);
    }

    pub(crate) fn add(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        severity: Severity,
        message: impl Into<String>,
    ) {
        let SourcePlace { line, column } = at;
        let (path, message) = (self.path.clone(), message.into());
        self.found.push(Diagnostic { path, line, column, code, severity, message });
    }

    /// Returns `; did you mean …?`, or else the text of `otherwise`.
    pub(crate) fn hint<'names>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'names str>,
        otherwise: impl FnOnce() -> String,
    ) -> String {
        let left = self.hints.get();
        if left == 0 || name.len() > MAX_COMPARED_BYTES {
            return otherwise();
        }
        self.hints.set(left - 1);
        let names = names.into_iter().filter(|name| name.len() <= MAX_COMPARED_BYTES);
        let meant = closest(name, names);
        meant.map_or_else(otherwise, |name| format!("; did you mean {}?", quoted(name)))
    }

    /// Returns the likely intended name, if it differs only by a misspelling.
    pub(crate) fn slip<'names>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'names str>,
    ) -> Option<&'names str> {
        let few = self.found.len() < MAX_HINTS as usize && name.len() <= MAX_COMPARED_BYTES;
        closest(name, names).filter(|meant| few && is_slip(name, meant))
    }

    /// Returns whether there is an error among the problems.
    pub(crate) fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// Returns all diagnostics in the order of the file, each once: an alias may repeat a mistake.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// Returns a text of the file for a message: cut if it is long, and free of terminal control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("`");
    for (index, c) in text.chars().enumerate().take(61) {
        match c {
            _ if index == 60 => quoted.push('…'),
            c if c.is_control() => quoted.extend(c.escape_debug()),
            c => quoted.push(c),
        }
    }
    quoted + "`"
}
