//! Collects what is wrong with a file of a workflow that is read to its end.

use std::cell::Cell;

use super::diagnostic::{Diagnostic, Severity};
use super::hint::{closest, is_slip};
use super::place::SourcePlace;

/// For so many mistakes a similar name is looked for; with thousands of names it takes time.
const HINTS: u32 = 50;

/// The longest name that is compared with others, in bytes.
const COMPARED: usize = 64;

/// What was found so far.
pub(crate) struct FileDiagnostics {
    path: String,
    found: Vec<Diagnostic>,
    hints: Cell<u32>,
}

impl FileDiagnostics {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), found: Vec::new(), hints: Cell::new(HINTS) }
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

    /// `; did you mean …?`, or else what `otherwise` says.
    pub(crate) fn hint<'names>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'names str>,
        otherwise: impl FnOnce() -> String,
    ) -> String {
        let left = self.hints.get();
        if left == 0 || name.len() > COMPARED {
            return otherwise();
        }
        self.hints.set(left - 1);
        let names = names.into_iter().filter(|name| name.len() <= COMPARED);
        let meant = closest(name, names);
        meant.map_or_else(otherwise, |name| format!("; did you mean {}?", quoted(name)))
    }

    /// The name that was meant, if only a slip makes the difference.
    pub(crate) fn slip<'names>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'names str>,
    ) -> Option<&'names str> {
        let few = self.found.len() < HINTS as usize && name.len() <= COMPARED;
        closest(name, names).filter(|meant| few && is_slip(name, meant))
    }

    /// Whether there is an error among it.
    pub(crate) fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// All of it in the order of the file, each once: what an alias repeats is wrong only once.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// A text of the file in a message: not all of it if it is long, and nothing that a terminal obeys.
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
