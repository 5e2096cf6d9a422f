//! A plug-in's process, which runs beside a run from its beginning to its end.
//!
//! It leads a process group of its own and talks on pipes, so it learns of raymond's end, however that comes,
//! by the end of its stdin. It bears the run's mark under its own name, not under a turn's: the sweep of the
//! turns' orphans leaves it alone, and the next raymond finds it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::spawn_blocking;

use super::classify::ProcessExit;
use super::command::{EnvironmentMarker, locate};
use super::environment::{NamedVariables, passed_on};
use super::subreaper::{ProcessPurpose, start_noted};
use super::{group, orphans};

/// The time that an orphaned plug-in has to end after it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Poll interval while waiting for it to end.
const LOOK: Duration = Duration::from_millis(10);

/// The program of a plug-in, and its environment.
#[derive(Debug, Clone)]
pub struct PluginProcessSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// A running plug-in.
#[derive(Debug)]
pub struct PluginProcess {
    child: Child,
    leader: u32,
    ended: bool,
}

/// The pipes to a plug-in.
#[derive(Debug)]
pub struct PluginPipes {
    /// Its stdin.
    pub stdin: ChildStdin,
    /// Its stdout.
    pub stdout: ChildStdout,
    /// Its stderr.
    pub stderr: ChildStderr,
}

impl PluginProcessSpec {
    /// Returns the path of its program.
    ///
    /// # Errors
    /// There is no such program that can be executed.
    pub fn program(&self) -> std::io::Result<PathBuf> {
        let program = self.command.first().map_or("", String::as_str);
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        let found = locate(program, path.map(|(_, path)| path.as_os_str())).ok_or_else(|| {
            let why = format!("there is no executable program `{program}`");
            std::io::Error::new(ErrorKind::NotFound, why)
        })?;
        std::path::absolute(found)
    }
}

impl PluginProcess {
    /// Starts it.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(start: &PluginProcessSpec) -> std::io::Result<(Self, PluginPipes)> {
        let mut command = Command::new(start.program()?);
        command
            .args(start.command.iter().skip(1))
            .current_dir(&start.cwd)
            .env_clear()
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = start_noted(ProcessPurpose::Beside, || command.spawn(), Child::id)?;
        let leader = child.id().unwrap_or(0);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let companion = Self { child, leader, ended: false };
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                Ok((companion, PluginPipes { stdin, stdout, stderr }))
            }
            _ => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits for its end, then kills the rest of its group. May be dropped and called again.
    pub async fn exited(&mut self) -> ProcessExit {
        let exit = self.child.wait().await.map_or(ProcessExit::Unseen, ProcessExit::from);
        if !std::mem::replace(&mut self.ended, true) {
            group::kill(self.leader);
        }
        exit
    }

    /// Asks it to end, with all the processes it has started.
    pub fn terminate(&self) {
        if !self.ended {
            group::terminate(self.leader);
        }
    }

    /// Ends it at once, with all the processes it has started.
    pub fn kill(&self) {
        if !self.ended {
            group::kill(self.leader);
        }
    }
}

impl Drop for PluginProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the environment of a plug-in: the caller's variables that such programs need, those that the manifest
/// names, and the run's mark.
#[must_use]
pub fn environment(
    callers: impl IntoIterator<Item = (OsString, OsString)>,
    named: &NamedVariables,
    marker: &EnvironmentMarker,
    name: &str,
) -> Vec<(OsString, OsString)> {
    let own = [
        ("RAYMOND_RUN", OsString::from(marker.run.as_str())),
        ("RAYMOND_DIR", marker.dir.clone().into_os_string()),
        ("RAYMOND_PLUGIN", OsString::from(name)),
    ];
    let own = own.map(|(name, value)| (OsString::from(name), value));
    passed_on(callers, named).into_iter().chain(own).collect()
}

/// Ends the plug-ins of a run that an earlier raymond left behind, or that have outlived their end: asks first,
/// then kills.
pub async fn sweep(marker: &EnvironmentMarker) {
    let start = Instant::now();
    let mut asked = Vec::new();
    loop {
        let marker = marker.clone();
        let look = spawn_blocking(move || orphans::find_plugins(&marker));
        let mut found = look.await.unwrap_or_default();
        found.retain(orphans::is_alive);
        if found.is_empty() || start.elapsed() > 2 * GRACE {
            return;
        }
        for leftover in found {
            if start.elapsed() > GRACE {
                group::kill_one(leftover.pid);
            } else if !asked.contains(&leftover.pid) {
                asked.push(leftover.pid);
                group::terminate_one(leftover.pid);
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::RunId;

    fn marker() -> EnvironmentMarker {
        EnvironmentMarker { run: RunId::parse("r").expect("an id"), dir: "/x/.raymond".into() }
    }

    #[test]
    fn it_learns_no_key_and_bears_the_runs_mark() {
        let callers = [
            ("PATH", "/bin"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "secret"),
            ("RAYMOND_TURN", "main-1-0"),
            ("RAYMOND_RUN", "another"),
            ("RAYMOND_LOG", "debug"),
        ];
        let callers = callers.map(|(name, value)| (name.into(), value.into()));
        let environment = environment(callers, &NamedVariables::default(), &marker(), "budget");
        let shown: Vec<_> = environment
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let expected = [
            "PATH=/bin",
            "RAYMOND_LOG=debug",
            "RAYMOND_RUN=r",
            "RAYMOND_DIR=/x/.raymond",
            "RAYMOND_PLUGIN=budget",
        ];
        assert_eq!(shown, expected);
        let bytes = shown.join("\0").into_bytes();
        assert_eq!(marker().plugin_of(&bytes), Some("budget"));
        assert_eq!(marker().process_of(&bytes), None);
        let nested = [&bytes[..], b"\0RAYMOND_TURN=main-1-0"].concat();
        assert_eq!(marker().plugin_of(&nested), None, "a turn's processes are the turn's");
    }

    #[tokio::test]
    async fn it_ends_with_all_it_has_started() {
        let command = ["/bin/sh", "-c", "/bin/sleep 60 & echo $!; exit 3"].map(str::to_owned);
        let start =
            PluginProcessSpec { command: command.into(), cwd: "/".into(), environment: Vec::new() };
        let (mut companion, mut pipes) = PluginProcess::start(&start).expect("it starts");
        assert_eq!(companion.exited().await, ProcessExit::Code(3));
        let mut said = String::new();
        // The end of the pipe comes when the last process that holds it is gone.
        let read = tokio::io::AsyncReadExt::read_to_string(&mut pipes.stdout, &mut said);
        tokio::time::timeout(Duration::from_mins(1), read).await.expect("it ends").expect("read");
        assert!(said.trim().parse::<u32>().is_ok(), "{said}");
    }
}
