//! The context that all operations share: the workspace, the locks, the permits, and the stop.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OnceCell, OwnedMutexGuard, Semaphore, SemaphorePermit, watch};
use tokio::task::spawn_blocking;

use super::files::Workspace;
use super::outcome::OperationError;
use super::web::WebClient;
use crate::gate::PathLocks;
use crate::web::masked;
use raymond_agents::captured_output::{
    CapturedOutput, ProcessFailure, ProcessOutput, ProcessSpec, environment,
};
use raymond_agents::command::locate;
use raymond_agents::working_dirs::REPOSITORY;
use raymond_model::worktree::WorkingDir;

/// The number of programs and fetches that may run at the same time.
const AT_A_TIME: usize = 16;

/// The number of last lines of stderr that are shown when a program failed.
const SHOWN_LINES: usize = 5;

/// The context of operations.
#[derive(Debug, Clone)]
pub(super) struct OperationContext {
    pub(super) place: Arc<Workspace>,
    /// The directory that operations are confined to.
    root: PathBuf,
    /// True if the root is in a worktree of an agent.
    in_tree: bool,
    common: Arc<SharedResources>,
    /// Tells that the operations of this context are to end; `None` if only all operations can be ended.
    own_stop: Option<watch::Receiver<bool>>,
}

/// The resources that all agents of a run share, regardless of their working directory.
#[derive(Debug)]
struct SharedResources {
    locks: PathLocks,
    web: OnceCell<WebClient>,
    permits: Semaphore,
    stopped: watch::Sender<bool>,
    /// The beginning of the last fetch from the exchange that succeeded.
    fetched: Mutex<Option<Instant>>,
}

/// A program that an operation runs.
pub(super) struct OperationProgram<'run> {
    /// The operation.
    pub(super) stem: &'run str,
    /// The program's name.
    pub(super) program: &'run str,
    pub(super) arguments: Vec<OsString>,
    pub(super) cwd: PathBuf,
    /// Its environment, without the run's mark.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) longest: Duration,
    pub(super) kept: usize,
}

impl OperationContext {
    pub(super) fn new(place: Workspace) -> Self {
        let root = place.working_dirs.root();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let common = SharedResources {
            locks: PathLocks::default(),
            web: OnceCell::new(),
            permits: Semaphore::new(AT_A_TIME),
            stopped: watch::Sender::new(false),
            fetched: Mutex::default(),
        };
        let (place, common) = (Arc::new(place), Arc::new(common));
        Self { place, root, in_tree: false, common, own_stop: None }
    }

    /// Returns this context for an agent's working directory.
    pub(super) fn at(&self, working_dir: &WorkingDir) -> Result<Self, String> {
        let root = self.place.working_dirs.directory(working_dir)?;
        let root = root.canonicalize().unwrap_or(root);
        let (place, common) = (Arc::clone(&self.place), Arc::clone(&self.common));
        Ok(Self { place, root, in_tree: working_dir.tree.is_some(), common, own_stop: None })
    }

    /// Returns this context for operations that end once `stop` is true.
    pub(super) fn until(&self, stop: watch::Receiver<bool>) -> Self {
        Self { own_stop: Some(stop), ..self.clone() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the client that fetches pages; it is made on first use.
    pub(super) fn web(&self) -> &OnceCell<WebClient> {
        &self.common.web
    }

    /// Returns the directories above which git is not to look for a repository.
    pub(super) fn ceiling(&self) -> Option<&OsStr> {
        if self.in_tree {
            return Some(self.place.working_dirs.trees().as_os_str());
        }
        self.place.variable("GIT_CEILING_DIRECTORIES")
    }

    /// Returns the environment of its programs, without the run's mark.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let leads_elsewhere =
            |name: &OsString| self.in_tree && REPOSITORY.iter().any(|known| name == known);
        let callers = self.place.environment.iter();
        callers.filter(|(name, _)| !leads_elsewhere(name)).cloned().collect()
    }

    /// Stops all operations.
    pub(super) fn stop(&self) {
        self.common.stopped.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        let own = self.own_stop.as_ref().is_some_and(|stop| *stop.borrow());
        own || *self.common.stopped.borrow()
    }

    /// Waits until the operations of this context are stopped, or all operations.
    pub(super) async fn stopped(&self) {
        let mut all = self.common.stopped.subscribe();
        let Some(mut own) = self.own_stop.clone() else {
            let _ = all.wait_for(|stopped| *stopped).await;
            return;
        };
        tokio::select! {
            _ = all.wait_for(|stopped| *stopped) => {}
            // Without a sender it can no longer be stopped alone.
            Ok(_) = own.wait_for(|stopped| *stopped) => {}
        }
    }

    /// Returns the result of `work`, or an error if the operations of this context are stopped before.
    pub(super) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, OperationError> {
        tokio::select! {
            biased;
            () = self.stopped() => Err(OperationError::Interrupted),
            done = work => Ok(done),
        }
    }

    /// Returns whether a fetch from the exchange has begun since then, and succeeded.
    pub(super) fn has_fetched_since(&self, then: Instant) -> bool {
        let fetched = self.common.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.is_some_and(|began| began >= then)
    }

    /// Notes that a fetch from the exchange that began then has succeeded.
    pub(super) fn note_fetch(&self, began: Instant) {
        *self.common.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
    }

    /// Waits for the lock of a path.
    pub(super) async fn lock_path(
        &self,
        path: &Path,
    ) -> Result<OwnedMutexGuard<()>, OperationError> {
        self.unless_stopped(self.common.locks.of(path)).await
    }

    /// Waits for a permit to run a program or a fetch.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, OperationError> {
        let permit = self.unless_stopped(self.common.permits.acquire()).await?;
        permit.map_err(|_| OperationError::Interrupted)
    }

    /// Runs a program to its end. The caller holds a permit.
    pub(super) async fn run(
        &self,
        run: OperationProgram<'_>,
    ) -> Result<ProcessOutput, OperationError> {
        let found = locate(run.program, self.place.path()).and_then(|path| {
            // It is started in another directory than this one.
            std::path::absolute(path).ok()
        });
        let path =
            found.ok_or_else(|| format!("no program `{}` on the PATH: install it, or correct its name (in a script: the `#!` line)", run.program))?;
        let program = ProcessSpec {
            path,
            arguments: run.arguments,
            cwd: run.cwd,
            environment: environment(run.environment, &self.place.marker, run.stem),
            longest: run.longest,
            kept: run.kept,
        };
        program.run(self.stopped()).await.map_err(|failure| match failure {
            ProcessFailure::Stopped => OperationError::Interrupted,
            ProcessFailure::TooLong { ref stderr, .. } => {
                let reason = complaint(stderr);
                OperationError::Failed(format!("`{}` {failure}{reason}", run.program))
            }
            ProcessFailure::NotStarted(ref error) => {
                OperationError::unwritten(format!("`{}` {failure}", run.program), error)
            }
        })
    }
}

/// Returns the end of a program's stderr, as the end of a message.
pub(super) fn complaint(stderr: &CapturedOutput) -> String {
    let reason = masked(&stderr.last_lines(SHOWN_LINES));
    if reason.is_empty() { reason } else { format!(": {reason}") }
}

/// Runs `work` on a thread that may wait for a disk.
pub(super) async fn blocking<T: Send + 'static>(
    shared: &Arc<OperationContext>,
    work: impl FnOnce(&OperationContext) -> T + Send + 'static,
) -> Result<T, OperationError> {
    let shared = Arc::clone(shared);
    let done = spawn_blocking(move || work(&shared)).await;
    done.map_err(|error| OperationError::Failed(format!("it came to no end: {error}")))
}
