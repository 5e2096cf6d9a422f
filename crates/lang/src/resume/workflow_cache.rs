//! The files of a run's states, in any language: each version of a file is read once.
//!
//! As long as this process serves a run, a graph and a script stay as they were when they were first entered. A later
//! edit is seen when the run is resumed, and refused then unless it is asked for. Programs are identified by the
//! checksum of their text. So are prompts, because they may be read again.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::LoadedWorkflow;
use crate::diagnostic::Diagnostic;
use crate::graph::checked_graph::Graph;
use crate::graph::profile::GraphProfile;
use crate::graph::read::read as read_graph;
use crate::graph::vocabulary::GraphVocabulary;
use crate::program::checked_program::Program;
use crate::program::interpreter::selected_facts;
use crate::program::read::read as read_program;
use crate::prompt::document::{self, ExaminedDocument};
use crate::prompt::script::PreparedScript;
use crate::source::checksum;
use crate::source::{self, WorkflowSource};
use raymond_model::agent::Agent;
use raymond_model::fact::FactSelection;
use raymond_model::graph_execution::ProgramSource;
use raymond_model::id::{Folder, StateKind, StateName};
use raymond_model::run::Run;
use raymond_model::turn::{FailureCause, TurnFailure};

/// The most files that are kept. Beyond that all are forgotten, and those still in use are read again.
const MAX_KEPT: usize = 1024;

/// A version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileKey {
    folder: Option<Folder>,
    file: StateName,
    /// The checksum of its text; `None` for a file that stays as it was when it was first entered.
    version: Option<Arc<str>>,
}

/// The files of a run's states.
#[derive(Debug, Default)]
pub struct WorkflowCache {
    vocabulary: GraphVocabulary,
    migrate: bool,
    kept: RefCell<HashMap<FileKey, Rc<dyn Any>>>,
}

impl WorkflowCache {
    /// Returns an empty cache. Graphs are read with these types. With `migrate`, a graph that was edited since an agent
    /// entered it is taken as it is now.
    pub fn new(vocabulary: GraphVocabulary, migrate: bool) -> Self {
        Self { vocabulary, migrate, kept: RefCell::default() }
    }

    /// Returns the workflow that an agent's state is written in. A program is taken from the run's record of it, if
    /// there is one: `kept`.
    ///
    /// # Errors
    /// The failure of an agent whose state cannot be executed. An unreadable prompt fails once its turn is prepared.
    pub fn load(
        &self,
        agent: &Agent,
        kept: Option<&ProgramSource>,
        source: &dyn WorkflowSource,
    ) -> Result<LoadedWorkflow, TurnFailure> {
        let loaded = match StateKind::of(&agent.current_state) {
            _ if agent.has_only_tasks() => Ok(LoadedWorkflow::Prompts),
            Some(StateKind::Graph) => self.graph(agent, source).map(LoadedWorkflow::Graph),
            Some(StateKind::Program) => {
                let path = source.path(&agent.current_state);
                let program = self.program_of(agent, kept, source);
                program.map(|program| LoadedWorkflow::Program(program, path))
            }
            Some(StateKind::Script) if agent.runs_script() => {
                self.script(agent, source).map(LoadedWorkflow::Script)
            }
            Some(StateKind::Prompt | StateKind::Script) | None => Ok(LoadedWorkflow::Prompts),
        };
        loaded.map_err(|why| TurnFailure::new(FailureCause::Workflow, why))
    }

    /// Returns the facts that the programs of a run can match at their positions. `files` are the files of the folder
    /// of each.
    pub fn selected_facts<E>(
        &self,
        run: &Run,
        files: impl Fn(Option<&Folder>) -> Result<Arc<dyn WorkflowSource>, E>,
    ) -> FactSelection {
        selected_facts(run, |program| {
            let known =
                self.known(&program_key(program.folder.as_ref(), &program.file, &program.program));
            known.or_else(|| -> Option<Rc<Program>> {
                let source = files(program.folder.as_ref()).ok()?;
                self.kept_program(program, program.folder.as_ref(), &program.file, &*source).ok()
            })
        })
    }

    /// Returns a prompt, taken apart.
    pub(super) fn document(
        &self,
        folder: Option<&Folder>,
        file: &StateName,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<ExaminedDocument>, source::Error> {
        let text = source.read(file)?;
        let version = Some(checksum(&text).into());
        let key = FileKey { folder: folder.cloned(), file: file.clone(), version };
        self.once(key, || Ok(document::examine(&text)))
    }

    /// Returns the graph that an agent is to enter, or has entered.
    ///
    /// # Errors
    /// All errors in it, a line each, or WF503 if it was edited since it was entered.
    fn graph(&self, agent: &Agent, source: &dyn WorkflowSource) -> Result<Rc<Graph>, String> {
        let file = &agent.current_state;
        let key = FileKey { folder: agent.folder(), file: file.clone(), version: None };
        let graph: Rc<Graph> = self.once(key, || {
            let text = source.read(file).map_err(|error| error.to_string())?;
            let (path, types) = (source.path(file), &self.vocabulary);
            let reading = read_graph(&path, None, &text, types, source, GraphProfile::Lenient);
            reading.graph.ok_or_else(|| errors(&reading.diagnostics))
        })?;
        let entered = agent.graph().map(|graph| &graph.state.program);
        let is_edited = entered.is_some_and(|entered| **entered != *graph.hash);
        if is_edited && !self.migrate {
            return Err(format!(
                "{}: WF503 the graph has been edited since this run entered it; restore the old text, or resume with the new one by --migrate",
                source.path(file)
            ));
        }
        Ok(graph)
    }

    /// Returns the program of an agent's state: the kept program, or that of the file.
    ///
    /// # Errors
    /// All errors in it, a line each.
    fn program_of(
        &self,
        agent: &Agent,
        kept: Option<&ProgramSource>,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        let (folder, file) = (agent.folder(), &agent.current_state);
        if let Some(kept) = kept {
            return self.kept_program(kept, folder.as_ref(), file, source);
        }
        let text = source.read(file).map_err(|error| error.to_string())?;
        let version = checksum(text.strip_prefix('\u{feff}').unwrap_or(&text)).into();
        self.program(program_key(folder.as_ref(), file, &version), &text, source)
    }

    fn kept_program(
        &self,
        kept: &ProgramSource,
        folder: Option<&Folder>,
        file: &StateName,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        self.program(program_key(folder, file, &kept.program), &kept.text, source)
    }

    fn program(
        &self,
        key: FileKey,
        text: &str,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        let path = source.path(&key.file);
        self.once(key, || {
            let reading = read_program(&path, text, source);
            reading.program.ok_or_else(|| errors(&reading.diagnostics))
        })
    }

    fn script(
        &self,
        agent: &Agent,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<PreparedScript>, String> {
        let (folder, file) = (agent.folder(), &agent.current_state);
        let key = FileKey { folder: folder.clone(), file: file.clone(), version: None };
        let script = self.once(key, || PreparedScript::read(file, folder.as_ref(), source));
        script.map_err(|error| error.to_string())
    }

    /// Returns a file that has been read, or reads it. One with mistakes is not kept.
    fn once<T: Any, E>(
        &self,
        key: FileKey,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Rc<T>, E> {
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let new = Rc::new(read()?);
        let mut kept = self.kept.borrow_mut();
        if kept.len() == MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, Rc::clone(&new) as Rc<dyn Any>);
        Ok(new)
    }

    /// Returns a file that has been read.
    fn known<T: Any>(&self, key: &FileKey) -> Option<Rc<T>> {
        self.kept.borrow().get(key).cloned()?.downcast().ok()
    }
}

fn program_key(folder: Option<&Folder>, file: &StateName, hash: &Arc<str>) -> FileKey {
    FileKey { folder: folder.cloned(), file: file.clone(), version: Some(Arc::clone(hash)) }
}

/// Returns the errors among the diagnostics, a line each.
fn errors(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    errors.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
