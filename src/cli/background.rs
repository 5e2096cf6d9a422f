//! Takes up a run in another process that outlives this one and its terminal.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::exit::Error;
use super::output;
use crate::domain::id::RunId;
use crate::plain_file;
use crate::store::layout::Root;
use crate::store::lock;

/// How often it is looked whether a run is held.
const LOOK: Duration = Duration::from_millis(5);

/// Starts `raymond resume ID` with further arguments in the background; what it prints goes to the
/// run's `output.log`.
///
/// # Errors
/// [`Error::Io`].
pub fn take_up(root: &Root, id: &RunId, further: &[OsString]) -> Result<Taken, Error> {
    let program = std::env::current_exe().map_err(|error| Error::Io {
        doing: "find the program of",
        path: "this process".into(),
        error,
    })?;
    let path = root.run(id).output();
    let failed = |error| Error::Io {
        doing: "start in the background with the output",
        path: path.clone(),
        error,
    };
    let output =
        plain_file::open_with(&path, OpenOptions::new().append(true).create(true).mode(0o600))
            .map_err(failed)?;
    let stdout = output.try_clone().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("resume").arg(id.as_str()).arg("--dir").arg(root.path()).args(further);
    // A run started from inside a turn is a run of its own: it does not end with that turn.
    for name in ["RAYMOND_RUN", "RAYMOND_AGENT", "RAYMOND_TURN", "RAYMOND_PLUGIN"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(stdout).stderr(output).process_group(0);
    command.spawn().map(Taken).map_err(failed)
}

/// A run that another process takes up.
#[derive(Debug)]
pub struct Taken(Child);

impl Taken {
    /// Waits until the process holds the run, so that it can be told to stop; one that has ended
    /// before has held it as well.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait_until_held(mut self, root: &Root, id: &RunId) -> Result<(), Error> {
        let lock = root.run(id).lock();
        while lock::is_held(&lock)?.is_none() {
            let ended = self.0.try_wait().map_err(|error| waiting(root, id, error))?;
            if let Some(status) = ended {
                if !status.success() {
                    let output = root.run(id).output();
                    output::tell(&format!(
                        "{id} has stopped already ({status}); why, stands in {}",
                        output.display()
                    ));
                }
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits until the process has ended; gives its exit code.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait(mut self, root: &Root, id: &RunId) -> Result<Option<i32>, Error> {
        self.0.wait().map(|status| status.code()).map_err(|error| waiting(root, id, error))
    }
}

fn waiting(root: &Root, id: &RunId, error: std::io::Error) -> Error {
    Error::Io { doing: "wait for", path: root.run(id).path().to_owned(), error }
}
