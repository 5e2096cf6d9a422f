//! The graphs of a run, each read once.
//!
//! As long as this process serves a run, a graph stays as it was when it was first entered. A later edit is seen
//! when the run is resumed, and refused there unless it is asked for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::domain::id::{Folder, StateName};
use crate::language::graph::checked_graph::Graph;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::source::WorkflowSource;

/// The graphs that have been read, by folder and file.
type GraphsByFile = HashMap<(Option<Folder>, StateName), Rc<Graph>>;

/// The graphs of a run.
#[derive(Debug, Default)]
pub struct GraphCache {
    /// The types its nodes may use.
    pub vocabulary: GraphVocabulary,
    /// True if a graph that was edited since an agent entered it is taken as it is now.
    pub migrate: bool,
    read: RefCell<GraphsByFile>,
}

impl GraphCache {
    /// Returns a cache of graphs with these types.
    #[must_use]
    pub fn new(vocabulary: GraphVocabulary, migrate: bool) -> Self {
        Self { vocabulary, migrate, read: RefCell::default() }
    }

    /// Returns the graph of a file.
    ///
    /// # Errors
    /// All errors in it, a line each.
    pub(super) fn get(
        &self,
        folder: Option<&Folder>,
        file: &StateName,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Graph>, String> {
        let key = (folder.cloned(), file.clone());
        if let Some(program) = self.read.borrow().get(&key) {
            return Ok(Rc::clone(program));
        }
        let text = source.read(file).map_err(|error| error.to_string())?;
        let path = source.path(file);
        let reading = read(&path, None, &text, &self.vocabulary, source, GraphProfile::Lenient);
        let program = reading.program.ok_or_else(|| {
            let errors = reading.diagnostics.iter().filter(|one| one.is_error());
            errors.map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })?;
        let program = Rc::new(program);
        self.read.borrow_mut().insert(key, Rc::clone(&program));
        Ok(program)
    }
}
