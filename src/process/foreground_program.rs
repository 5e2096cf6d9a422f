//! A program that a person uses on the terminal of this process: an editor, or the interactive Claude Code.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use tokio::process::Command;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// A program that is to be run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ForegroundProgram {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The directory it works in, if not that of this process.
    pub directory: Option<PathBuf>,
    /// The variables that it gets on top of those of this process.
    pub added: Vec<(String, String)>,
    /// The variables of this process that it does not get.
    pub removed: Vec<&'static str>,
}

impl ForegroundProgram {
    /// Runs it to its end. Signals of the terminal are meant for the program, so this process does not end by them.
    ///
    /// # Errors
    /// The system's error if it cannot be started.
    pub fn run(self) -> io::Result<ExitStatus> {
        let Self { program, arguments, directory, added, removed } = self;
        let mut command = Command::new(program);
        command.args(arguments).envs(added);
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        for name in removed {
            command.env_remove(name);
        }
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            // A signal that has a listener is not passed on to the program as ignored.
            let kinds = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()];
            let listeners: io::Result<Vec<_>> = kinds.into_iter().map(signal).collect();
            let _listeners = listeners?;
            command.spawn()?.wait().await
        })
    }
}
