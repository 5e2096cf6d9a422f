//! Reads a program: from the text of its file to a definition, or to everything that is wrong with it.

use super::definition::Definition;
use crate::language::diagnostic::Diagnostic;
use crate::language::source::Source;

/// What reading a program came to.
#[derive(Debug)]
pub struct Reading {
    /// The program, if there are no errors.
    pub program: Option<Definition>,
    /// What was found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a program. `path` is its file as people see it; the folders it runs are looked for in `source`.
#[must_use]
pub fn read(path: &str, text: &str, source: &dyn Source) -> Reading {
    let _ = (path, text, source);
    todo!()
}
