//! The programs of a run, each text read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::domain::id::StateName;
use crate::language::program::checked_program::Program;
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;

/// The programs that have been read, by the checksum of their text.
#[derive(Debug, Default)]
pub struct ProgramCache(RefCell<HashMap<Arc<str>, Rc<Program>>>);

impl ProgramCache {
    /// Returns the program of a text that was kept.
    ///
    /// # Errors
    /// All errors in it, a line each.
    pub(super) fn kept(
        &self,
        hash: &Arc<str>,
        file: &StateName,
        text: &str,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        self.known(hash).map_or_else(|| self.read(file, text, source), Ok)
    }

    /// Returns the program of a text that has been read.
    pub(super) fn known(&self, hash: &Arc<str>) -> Option<Rc<Program>> {
        self.0.borrow().get(hash).map(Rc::clone)
    }

    /// Returns the program of a text.
    ///
    /// # Errors
    /// All errors in it, a line each.
    pub(super) fn read(
        &self,
        file: &StateName,
        text: &str,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        let reading = read(&source.path(file), text, source);
        let program = reading.program.ok_or_else(|| {
            let errors = reading.diagnostics.iter().filter(|one| one.is_error());
            errors.map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })?;
        let program = Rc::new(program);
        self.0.borrow_mut().insert(Arc::clone(&program.hash), Rc::clone(&program));
        Ok(program)
    }
}
