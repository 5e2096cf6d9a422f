//! The environment of a run's graphs: the workspace they change, and the types that are added to their language.
//!
//! The checks of operations that need trust: what was trusted are the files as they were when the run began.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use serde_json::{Map, Value};

use super::local_executor::LocalActivityExecutor;
use crate::actor::process::StayUp;
use crate::actor::runner::ActivityExecutor;
use crate::domain::id::RunId;
use crate::domain::operation::RecoveryClass;
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::engine::Engine;
use crate::language::graph::vocabulary::{GraphVocabulary, OwnTypeSpec, TypeNameTaken, TypeRole};
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::process::command::EnvironmentMarker;
use crate::process::plugin_process::{NamedVariables, passed_on};
use crate::process::working_dirs::{ExchangeCopy, WorkingDirs};
use crate::proof::StepProofs;
use crate::runtime::local_executor::{ProgramStarter, RunLauncher};
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::workflow::WorkflowDir;
use crate::world::files::Workspace;
use crate::world::gate::NameLookup;
use crate::world::own_types::{OwnType, OwnTypeRegistry};
use crate::world::perform::WorkspaceExecutor;

/// The environment of a run's graphs.
#[derive(Debug, Default)]
pub struct GraphSetup {
    vocabulary: GraphVocabulary,
    own: OwnTypeRegistry,
    /// The error of the first type that could not be added.
    refused: Option<TypeNameTaken>,
    /// True if a graph that was edited since an agent entered it is taken as it is now.
    pub migrate: bool,
    /// The condition for the run to stay up while questions wait.
    pub stay_up: StayUp,
    /// The launcher of the runs that its programs start; without one they start none.
    pub launcher: Option<Arc<dyn RunLauncher>>,
    /// The engine with the facts that the run shares with others; `None` if its directory has them alone.
    pub facts: Option<Arc<dyn Engine>>,
}

impl GraphSetup {
    /// Adds a type of preconditions or consequences.
    ///
    /// # Errors
    /// [`TypeNameTaken`] if there is one of that name.
    pub fn add(
        &mut self,
        name: &str,
        own: OwnTypeSpec,
        performs: impl OwnType + 'static,
    ) -> Result<(), TypeNameTaken> {
        self.vocabulary.add(name, own)?;
        self.own.add(name, performs);
        Ok(())
    }

    /// Adds a type, or remembers why it cannot be.
    pub(super) fn offer(&mut self, name: &str, own: OwnTypeSpec, performs: impl OwnType + 'static) {
        let added = self.add(name, own, performs);
        self.refused = self.refused.take().or(added.err());
    }

    /// Checks that all offered types could be added.
    pub(super) fn all_taken_up(&mut self) -> Result<(), TypeNameTaken> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// Returns the types that graph nodes may use.
    pub fn vocabulary(&self) -> &GraphVocabulary {
        &self.vocabulary
    }

    pub(super) fn cache(&self) -> WorkflowCache {
        WorkflowCache::new(self.vocabulary.clone(), self.migrate)
    }

    /// Returns the world of a run, whose notes go into `steps`.
    pub(super) fn world(
        &self,
        working_dirs: WorkingDirs,
        steps: (PathBuf, StepProofs),
        marker: EnvironmentMarker,
        space: Dataspace,
        (settings, scope, starter): (&Settings, &WorkflowDir, Arc<dyn ProgramStarter>),
    ) -> Rc<dyn ActivityExecutor> {
        let run = marker.run.clone();
        let world = world(working_dirs, steps, marker, self.own.clone(), settings);
        let trusted = settings.consent.trusts_workflow.then(|| scope.clone());
        Rc::new(LocalActivityExecutor::new(run, world, space, (trusted, starter)))
    }
}

fn world(
    working_dirs: WorkingDirs,
    (steps, proofs): (PathBuf, StepProofs),
    marker: EnvironmentMarker,
    own: OwnTypeRegistry,
    settings: &Settings,
) -> WorkspaceExecutor {
    let environment = passed_on(std::env::vars_os(), &NamedVariables::of(&settings.options));
    let allowed_addresses = settings.allowed_addresses.clone();
    let lookup = NameLookup::default();
    WorkspaceExecutor::new(Workspace {
        working_dirs,
        environment,
        steps,
        proofs,
        marker,
        allowed_addresses,
        lookup,
        is_trusted: settings.consent.trusts_workflow,
        own,
    })
}

/// Returns the working directories of a run's agents.
pub fn working_dirs(root: &RunsRoot, id: &RunId, settings: &Settings) -> WorkingDirs {
    WorkingDirs::new(&settings.cwd, root.worktrees(id))
}

/// Returns the world of a run's agents, for the care of their worktrees.
pub fn world_of(root: &RunsRoot, id: &RunId, settings: &Settings) -> WorkspaceExecutor {
    world_in(root, id, settings, working_dirs(root, id, settings))
}

/// Waits for git where nothing else is pending: before a run is supervised or hosted. This needs a thread, because the
/// caller may itself run in a runtime.
///
/// # Errors
/// The reason why the wait failed.
pub(super) fn waited_for<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(work))
        });
        let waited = waiting.join().map_err(|_| "it came to no end".to_owned())?;
        waited.map_err(|error| format!("cannot wait for git: {error}"))
    })
}

/// Returns the world in which git makes a host's clone of the exchange of a run.
pub(super) fn world_of_exchange(
    root: &RunsRoot,
    id: &RunId,
    settings: &Settings,
    copy: ExchangeCopy,
) -> WorkspaceExecutor {
    let working_dirs = WorkingDirs::new(copy.root(), root.worktrees(id)).with_exchange(Some(copy));
    world_in(root, id, settings, working_dirs)
}

/// Returns the world of a run's agents, whose worktrees begin with the run's snapshots of them.
pub(super) fn world_of_run(root: &RunsRoot, run: &Run) -> WorkspaceExecutor {
    let (id, settings) = (&run.workflow_id, &run.settings);
    let working_dirs = working_dirs(root, id, settings).with_snapshots(run.worktrees.clone());
    world_in(root, id, settings, working_dirs)
}

/// Returns the world of a run in these directories, without the types that a program adds.
fn world_in(
    root: &RunsRoot,
    id: &RunId,
    settings: &Settings,
    working_dirs: WorkingDirs,
) -> WorkspaceExecutor {
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let steps = (root.run(id).steps(), StepProofs::default());
    world(working_dirs, steps, marker, OwnTypeRegistry::default(), settings)
}

/// Returns the built-in variables of graphs.
pub(super) fn builtins(settings: &Settings, scope: &WorkflowDir) -> Map<String, Value> {
    let mut builtins = Map::new();
    let root = Path::new(&settings.cwd);
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    builtins.insert("PWD".to_owned(), root.display().to_string().into());
    if let Some(home) = std::env::var_os("HOME") {
        builtins.insert("HOME".to_owned(), home.to_string_lossy().into());
    }
    if let Some(plugin) = scope.plugin() {
        builtins.insert("CLAUDE_PLUGIN_ROOT".to_owned(), plugin.to_string_lossy().into());
    }
    builtins
}

/// Returns a type of preconditions, which change nothing.
pub fn precondition(required: &[&str], optional: &[&str]) -> OwnTypeSpec {
    own(TypeRole::Precondition, required, optional, RecoveryClass::Read)
}

/// Returns a type of consequences; `class` decides the recovery from a crash in the middle of one.
pub fn consequence(required: &[&str], optional: &[&str], class: RecoveryClass) -> OwnTypeSpec {
    own(TypeRole::Consequence, required, optional, class)
}

fn own(role: TypeRole, required: &[&str], optional: &[&str], class: RecoveryClass) -> OwnTypeSpec {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    OwnTypeSpec { role, required: owned(required), optional: owned(optional), class }
}
