//! Takes up a run in another process that outlives this one and its terminal.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::exit::Error;
use crate::domain::id::RunId;
use crate::store::layout::Root;

/// Starts `raymond run ID` with further arguments in the background; what it prints goes to the
/// run's `output.log`.
///
/// # Errors
/// [`Error::Io`].
pub fn take_up(root: &Root, id: &RunId, further: &[OsString]) -> Result<Child, Error> {
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
        OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed)?;
    let stdout = output.try_clone().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("run").arg(id.as_str()).arg("--dir").arg(root.path()).args(further);
    // A run started from inside a turn is a run of its own: it does not end with that turn.
    for name in ["RAYMOND_RUN", "RAYMOND_AGENT", "RAYMOND_TURN"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(stdout).stderr(output).process_group(0);
    command.spawn().map_err(failed)
}
