//! Collects what is wrong with a graph.

use std::cell::Cell;

use super::tree::{Place, quoted};
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::hint::closest;

/// For so many mistakes a similar name is looked for; with thousands of names it takes time.
const HINTS: u32 = 50;

/// The longest name that is compared with others, in bytes.
const COMPARED: usize = 64;

/// What was found so far.
pub(super) struct Report {
    path: String,
    found: Vec<Diagnostic>,
    hints: Cell<u32>,
}

impl Report {
    pub(super) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), found: Vec::new(), hints: Cell::new(HINTS) }
    }

    pub(super) fn error(&mut self, at: Place, code: &'static str, message: impl Into<String>) {
        self.add(at, code, Severity::Error, message);
    }

    pub(super) fn warning(&mut self, at: Place, code: &'static str, message: impl Into<String>) {
        self.add(at, code, Severity::Warning, message);
    }

    pub(super) fn add(
        &mut self,
        at: Place,
        code: &'static str,
        severity: Severity,
        message: impl Into<String>,
    ) {
        let Place { line, column } = at;
        let (path, message) = (self.path.clone(), message.into());
        self.found.push(Diagnostic { path, line, column, code, severity, message });
    }

    /// `; did you mean …?`, or else what `otherwise` says.
    pub(super) fn hint<'names>(
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

    /// All of it in the order of the file, each once: what an alias repeats is wrong only once.
    pub(super) fn sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}
