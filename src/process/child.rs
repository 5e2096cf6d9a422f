//! A running process of a turn: one this runtime started, or one an earlier runtime left running.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, Command};

use super::classify::ProcessExit;
use super::orphans::{self, OrphanProcess};
use super::subreaper::{ProcessPurpose, start_noted};
use super::transcript::OpenProcessFiles;
use super::working_dirs::REPOSITORY;

/// Poll interval of an adopted process: the system reports an end only to the parent.
const LOOK: Duration = Duration::from_millis(50);

/// A process that runs, or has run, a turn.
#[derive(Debug)]
pub enum WorkerProcess {
    /// It was started by this runtime.
    Own {
        /// The handle.
        child: Box<Child>,
        /// Its id, which is also its group's.
        pid: u32,
    },
    /// It was found running.
    Adopted(OrphanProcess),
    /// It does not run; only its files are left.
    Gone,
}

/// The parameters of a process that is started.
#[derive(Debug)]
pub struct WorkerSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// True if that is in a worktree of an agent's own.
    pub in_tree: bool,
    /// The variables that are added to the caller's environment.
    pub environment: Vec<(String, String)>,
}

impl WorkerProcess {
    /// Starts a process at the head of a group of its own, on the system's fast path: no code runs
    /// between fork and exec, because that would make the cost grow with this process's memory.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(start: WorkerSpec, files: OpenProcessFiles) -> std::io::Result<Self> {
        let mut command = Command::new(start.program);
        if start.in_tree {
            for name in REPOSITORY {
                command.env_remove(name);
            }
            command.env("PWD", &start.cwd);
        }
        command
            .args(start.arguments)
            .current_dir(start.cwd)
            .envs(start.environment)
            .stdin(files.stdin.map_or_else(Stdio::piped, Stdio::from))
            .stdout(Stdio::from(files.stdout))
            .stderr(Stdio::from(files.stderr))
            .process_group(0);
        let child = start_noted(ProcessPurpose::Turn, || command.spawn(), Child::id)?;
        let pid = child.id().unwrap_or(0);
        Ok(Self::Own { child: Box::new(child), pid })
    }

    /// Returns its stdin, if that is a pipe; it can be taken once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        match self {
            Self::Own { child, .. } => child.stdin.take(),
            Self::Adopted(_) | Self::Gone => None,
        }
    }

    /// Returns whether it is known to have ended.
    pub fn has_ended(&mut self) -> bool {
        match self {
            Self::Own { child, .. } => !matches!(child.try_wait(), Ok(None)),
            Self::Adopted(leftover) => !orphans::is_alive(leftover),
            Self::Gone => true,
        }
    }

    /// Returns the id of its process group.
    #[must_use]
    pub fn group(&self) -> Option<u32> {
        match self {
            Self::Own { pid, .. } => Some(*pid),
            Self::Adopted(leftover) => Some(leftover.pid),
            Self::Gone => None,
        }
    }

    /// Waits for its end. May be dropped and called again.
    pub async fn exited(&mut self) -> ProcessExit {
        match self {
            Self::Own { child, .. } => {
                child.wait().await.map_or(ProcessExit::Unseen, ProcessExit::from)
            }
            Self::Adopted(leftover) => {
                while orphans::is_alive(leftover) {
                    tokio::time::sleep(LOOK).await;
                }
                ProcessExit::Unseen
            }
            Self::Gone => ProcessExit::Unseen,
        }
    }
}
