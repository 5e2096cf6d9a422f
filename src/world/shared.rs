//! What all operations of a world have in common: the place, whose turn it is, and the end.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OnceCell, OwnedMutexGuard, Semaphore, SemaphorePermit, watch};
use tokio::task::spawn_blocking;

use super::address::masked;
use super::locks::PathLocks;
use super::outcome::OperationError;
use super::place::Workspace;
use super::web::WebClient;
use crate::domain::home::WorkingDir;
use crate::process::command::locate;
use crate::process::home::REPOSITORY;
use crate::process::program::{
    CapturedOutput, ProcessFailure, ProcessOutput, ProcessSpec, environment,
};

/// How many programs run, and pages are fetched, at a time.
const AT_A_TIME: usize = 16;

/// How many of its last lines tell why a program failed.
const LINES: usize = 5;

/// What the operations share.
#[derive(Debug)]
pub(super) struct OperationContext {
    pub(super) place: Arc<Workspace>,
    /// The directory nothing outside of which is read or written.
    root: PathBuf,
    /// Whether that is in a worktree of an agent's own.
    in_tree: bool,
    common: Arc<SharedResources>,
}

/// What all agents of a run share, wherever they are at home.
#[derive(Debug)]
struct SharedResources {
    locks: PathLocks,
    web: OnceCell<WebClient>,
    permits: Semaphore,
    stopped: watch::Sender<bool>,
}

/// A program that an operation runs.
pub(super) struct OperationProgram<'run> {
    /// The operation.
    pub(super) stem: &'run str,
    /// The program's name.
    pub(super) program: &'run str,
    pub(super) arguments: Vec<OsString>,
    pub(super) cwd: PathBuf,
    /// Its environment, but for the run's mark.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) longest: Duration,
    pub(super) kept: usize,
}

impl OperationContext {
    pub(super) fn new(place: Workspace) -> Self {
        let root = place.homes.root();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let common = SharedResources {
            locks: PathLocks::default(),
            web: OnceCell::new(),
            permits: Semaphore::new(AT_A_TIME),
            stopped: watch::Sender::new(false),
        };
        Self { place: Arc::new(place), root, in_tree: false, common: Arc::new(common) }
    }

    /// The same for an agent's home.
    pub(super) fn at(&self, home: &WorkingDir) -> Result<Self, String> {
        let root = self.place.homes.directory(home)?;
        let root = root.canonicalize().unwrap_or(root);
        let (place, common) = (Arc::clone(&self.place), Arc::clone(&self.common));
        Ok(Self { place, root, in_tree: home.tree.is_some(), common })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// What pages are fetched by, made when it is first asked for.
    pub(super) fn web(&self) -> &OnceCell<WebClient> {
        &self.common.web
    }

    /// Above which directories git is not to look for a repository.
    pub(super) fn ceiling(&self) -> Option<&OsStr> {
        if self.in_tree {
            return Some(self.place.homes.trees().as_os_str());
        }
        self.place.variable("GIT_CEILING_DIRECTORIES")
    }

    /// The environment of its programs, but for the run's mark.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let leads_elsewhere =
            |name: &OsString| self.in_tree && REPOSITORY.iter().any(|known| name == known);
        let callers = self.place.environment.iter();
        callers.filter(|(name, _)| !leads_elsewhere(name)).cloned().collect()
    }

    /// Brings everything to its end.
    pub(super) fn stop(&self) {
        self.common.stopped.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.common.stopped.borrow()
    }

    /// Comes to pass when everything is to end.
    pub(super) async fn stopped(&self) {
        let _ = self.common.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// What comes of `work`, unless everything is to end before.
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

    /// Waits until nobody else is at a place.
    pub(super) async fn turn(&self, path: &Path) -> Result<OwnedMutexGuard<()>, OperationError> {
        self.unless_stopped(self.common.locks.of(path)).await
    }

    /// Waits until not too many others are at work.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, OperationError> {
        let permit = self.unless_stopped(self.common.permits.acquire()).await?;
        permit.map_err(|_| OperationError::Interrupted)
    }

    /// Runs a program to its end. Whoever does has a permit.
    pub(super) async fn run(
        &self,
        run: OperationProgram<'_>,
    ) -> Result<ProcessOutput, OperationError> {
        let found = locate(run.program, self.place.path()).and_then(|path| {
            // It is started in another directory than this one.
            std::path::absolute(path).ok()
        });
        let path = found.ok_or_else(|| {
            format!("there is no program `{}` on the PATH: install it", run.program)
        })?;
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
                let said = complaint(stderr);
                OperationError::Failed(format!("`{}` {failure}{said}", run.program))
            }
            ProcessFailure::NotStarted(_) => {
                OperationError::Failed(format!("`{}` {failure}", run.program))
            }
        })
    }
}

/// The end of what a program complains of, as it follows what is said of the program.
pub(super) fn complaint(stderr: &CapturedOutput) -> String {
    let said = masked(&stderr.last_lines(LINES));
    if said.is_empty() { said } else { format!(": {said}") }
}

/// Does something on a thread where waiting for a disk keeps nobody.
pub(super) async fn blocking<T: Send + 'static>(
    shared: &Arc<OperationContext>,
    work: impl FnOnce(&OperationContext) -> T + Send + 'static,
) -> Result<T, OperationError> {
    let shared = Arc::clone(shared);
    let done = spawn_blocking(move || work(&shared)).await;
    done.map_err(|error| OperationError::Failed(format!("it came to no end: {error}")))
}
