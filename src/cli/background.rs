//! Resumes a run in another process that outlives this one and its terminal.
//!
//! That process runs in its own session, without a terminal: closing the terminal sends it no SIGHUP, and none of its
//! children can ask for a password there. The process leaves the starter's session itself, as its first step. The
//! starter waits for that by reading from a pipe, which is the child's standard input, until the child has detached or
//! ended. The session does not show whether the child has detached: in a container, the session's leader may have no
//! process id there.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::setsid;
use rustix::stdio::dup2_stdin;

use super::engine::NONE;
use super::exit::Error;
use super::{output, person};
use crate::domain::id::RunId;
use crate::engine::Engine;
use crate::plain_file;
use crate::process::ancestry::ActingAgent;
use crate::process::child::cgroup::leave_turn;
use crate::process::child::orphans;
use crate::process::command::DETACHED;
use crate::process::plugin_process::{ENGINE, FACTS_ENGINE};
use crate::runtime::RunLauncher;
use crate::store::layout::RunsRoot;
use crate::store::{lock, snapshot};

/// The poll interval while waiting for the process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Starts `raymond resume ID` with further arguments in the background; its output goes to the run's `output.log`.
///
/// # Errors
/// [`Error::Io`].
pub fn resume_detached(
    root: &RunsRoot,
    id: &RunId,
    further: &[OsString],
) -> Result<DetachedRun, Error> {
    start_detached(root, &root.run(id).output(), &resuming(id, further), &[])
}

/// Starts a command that supervises a run in the background, and waits until it holds the run. Its output goes to the run's
/// `output.log`.
///
/// # Errors
/// [`Error::Usage`] with what the command says if it ends before.
pub(super) fn in_background(root: &RunsRoot, id: &RunId, words: &[OsString]) -> Result<(), Error> {
    let path = root.run(id).output();
    let before = std::fs::metadata(&path).map_or(0, |file| file.len());
    let mut process = start_detached(root, &path, words, &[])?;
    let ended = process.held_or_ended(root, id)?;
    if ended.is_some_and(|status| !status.success()) {
        return Err(Error::Usage(text_from(&path, before)));
    }
    // It is a child of this process until one of them ends.
    std::thread::spawn(move || process.0.wait());
    Ok(())
}

/// Starts a command that makes a run and supervises it in the background, and waits until it holds the run. Its output goes
/// to a file beside the runs until there is the run, whose `output.log` it becomes.
///
/// # Errors
/// As [`in_background`].
pub(super) fn new_in_background(
    root: &RunsRoot,
    id: &RunId,
    words: &[OsString],
) -> Result<(), Error> {
    let path = root.path().join(format!("{id}.log"));
    let mut process = start_detached(root, &path, words, &[])?;
    let ended = process.held_or_ended(root, id)?;
    if ended.is_some_and(|status| !status.success()) {
        let told = text_from(&path, 0);
        let _ = std::fs::remove_file(&path);
        return Err(Error::Usage(told));
    }
    let failed = |error| Error::Io { doing: "move", path: path.clone(), error };
    std::fs::rename(&path, root.run(id).output()).map_err(failed)?;
    std::thread::spawn(move || process.0.wait());
    Ok(())
}

/// Returns what a command has told from a place in a file on.
fn text_from(path: &Path, start: u64) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let own = text.get(usize::try_from(start).unwrap_or_default()..).unwrap_or_default();
    let own = String::from_utf8_lossy(own);
    own.trim().trim_start_matches("error: ").to_owned()
}

/// Returns the command that resumes a run.
fn resuming(id: &RunId, further: &[OsString]) -> Vec<OsString> {
    [&["resume".into(), id.as_str().into()], further].concat()
}

/// Starts a raymond that takes a run of an engine over; `variables` name the engine. It is a child of this process until one
/// of them ends.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn take_over_detached(
    copies: &RunsRoot,
    id: &RunId,
    variables: &[(&str, &str)],
) -> Result<(), Error> {
    let output = copies.run(id).output();
    let mut process = start_detached(copies, &output, &resuming(id, &[]), variables)?;
    std::thread::spawn(move || process.0.wait());
    Ok(())
}

fn start_detached(
    root: &RunsRoot,
    path: &Path,
    words: &[OsString],
    variables: &[(&str, &str)],
) -> Result<DetachedRun, Error> {
    let program = own_program()?;
    let failed = |error| Error::Io {
        doing: "start in the background with the output",
        path: path.to_owned(),
        error,
    };
    let output =
        plain_file::open_with(path, OpenOptions::new().append(true).create(true).mode(0o600))
            .map_err(failed)?;
    let stdout = output.try_clone().map_err(failed)?;
    let mut command = Command::new(program);
    let (target, further) = words.split_at(words.len().min(2));
    command.args(target).arg("--detached").arg("--dir").arg(root.path()).args(further);
    // A run started from inside a turn is a separate run: it does not end with that turn.
    for name in ["RAYMOND_RUN", "RAYMOND_AGENT", "RAYMOND_TURN", "RAYMOND_PLUGIN"] {
        command.env_remove(name);
    }
    // The log of the run is here unless the engine is named. Neither what this process works on nor what the user has
    // set counts.
    command.env(ENGINE, NONE).env_remove(FACTS_ENGINE);
    let starter = person::acting_agent();
    let starter =
        starter.map_or("1".to_owned(), |ActingAgent { run, agent, .. }| format!("{run}/{agent}"));
    command.env(DETACHED, starter).envs(variables.iter().copied());
    person::keep_registry();
    let (mut detached, attached) = std::io::pipe().map_err(failed)?;
    command.stdin(attached).stdout(stdout).stderr(output);
    let child = orphans::start_detached(&mut command).map_err(failed)?;
    // The child has the only other end then.
    drop(command);
    detached.read_to_end(&mut Vec::new()).map_err(failed)?;
    Ok(DetachedRun(child))
}

/// Returns the program of this process. After an update its file may be gone, and a worker that runs for weeks still
/// has to start supervisors of the worker's version.
pub(super) fn own_program() -> Result<PathBuf, Error> {
    let failed =
        |error| Error::Io { doing: "find the program of", path: "this process".into(), error };
    let program = std::env::current_exe().map_err(failed)?;
    let running = Path::new("/proc/self/exe");
    Ok(if !program.exists() && running.exists() { running.to_owned() } else { program })
}

/// Leaves the session of the terminal that this process was started from, and the turn if it was started in one;
/// then lets go of its standard input, for which its starter waits.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn detach() -> Result<(), Error> {
    let failed = |error| Error::Io {
        doing: "leave the terminal's session in",
        path: "this process".into(),
        error,
    };
    leave_turn();
    // Only a group leader cannot leave, and the process that started it as a leader has taken it out of the terminal's
    // group.
    match setsid() {
        Ok(_) | Err(Errno::PERM) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let nothing = File::open("/dev/null").map_err(failed)?;
    dup2_stdin(nothing).map_err(|error| failed(error.into()))
}

/// Executes the runs that programs start, each in a process that outlives this one.
#[derive(Debug)]
pub(super) struct DetachedLauncher {
    /// The engine with the facts that these runs share.
    pub(super) facts: Option<Arc<dyn Engine>>,
}

impl RunLauncher for DetachedLauncher {
    fn launch(&self, root: &RunsRoot, id: &RunId) -> Result<(), String> {
        let facts = self.facts.as_ref().map(|engine| (FACTS_ENGINE, engine.address().url()));
        let output = root.run(id).output();
        let process = start_detached(root, &output, &resuming(id, &[]), facts.as_slice());
        let mut process = process.map_err(|error| error.to_string())?;
        let ended = process.held_or_ended(root, id).map_err(|error| error.to_string())?;
        // It is a child of this process until one of them ends.
        std::thread::spawn(move || process.0.wait());
        let is_refused = || snapshot::load_view(root, id).is_ok_and(|view| view.run.seq == 1);
        if ended.is_some() && is_refused() {
            let output = root.run(id).output();
            return Err(format!("the run {id} has ended at once; see {}", output.display()));
        }
        Ok(())
    }
}

/// A run that another process resumes.
#[derive(Debug)]
pub struct DetachedRun(Child);

impl DetachedRun {
    /// Waits until the process holds the run, so that it can be told to stop; also returns if the process has
    /// ended before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait_until_held(mut self, root: &RunsRoot, id: &RunId) -> Result<(), Error> {
        let ended = self.held_or_ended(root, id)?;
        if let Some(status) = ended
            && !status.success()
        {
            let output = root.run(id).output();
            output::tell(&format!("{id} has stopped already ({status}); see {}", output.display()));
        }
        Ok(())
    }

    /// Waits until the process holds the run, or has ended; returns how it has ended.
    pub(super) fn held_or_ended(
        &mut self,
        root: &RunsRoot,
        id: &RunId,
    ) -> Result<Option<ExitStatus>, Error> {
        let lock = root.run(id).lock();
        while lock::is_held(&lock)?.is_none() {
            let ended = self.0.try_wait().map_err(|error| waiting(root, id, error))?;
            if ended.is_some() {
                return Ok(ended);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }

    /// Waits until the process has ended, and returns its exit code.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait(mut self, root: &RunsRoot, id: &RunId) -> Result<Option<i32>, Error> {
        self.0.wait().map(|status| status.code()).map_err(|error| waiting(root, id, error))
    }
}

fn waiting(root: &RunsRoot, id: &RunId, error: std::io::Error) -> Error {
    Error::Io { doing: "wait for", path: root.run(id).path().to_owned(), error }
}
