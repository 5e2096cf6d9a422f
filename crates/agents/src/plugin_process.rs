//! A plug-in's process, which runs beside a run from its beginning to its end.
//!
//! It leads a process group of its own and uses pipes, so the end of its stdin tells it that raymond has ended, even
//! after a crash. It bears the run's mark under its own name, not under the name of a turn, so the sweep of the turns'
//! orphans leaves it alone, and the next raymond finds it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::child::subreaper::ProcessPurpose;
use super::child::{ChildEnvironment, ChildProcess, ChildProcessSpec};
use super::command::{EnvironmentMarker, locate};
use super::helper_environment::{NamedVariables, passed_on};
use crate::child::group::ProcessExit;

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

/// A running plug-in, which is killed when this is dropped.
#[derive(Debug)]
pub struct PluginProcess(ChildProcess);

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
            let why = format!("no executable program `{program}`");
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
        let mut child = ChildProcess::start(ChildProcessSpec {
            program: start.program()?,
            arguments: start.command.iter().skip(1).map(Into::into).collect(),
            cwd: Some(start.cwd.clone()),
            environment: ChildEnvironment::Only(start.environment.clone()),
            stdin: Stdio::piped(),
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
            purpose: ProcessPurpose::Beside,
            outlives_handle: false,
        })?;
        match (child.take_stdin(), child.take_stdout(), child.take_stderr()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                Ok((Self(child), PluginPipes { stdin, stdout, stderr }))
            }
            _ => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits for its end, then kills the rest of its group. May be dropped and called again.
    pub async fn exited(&mut self) -> ProcessExit {
        self.0.exited_with_group().await
    }

    /// Asks it to end, with all the processes it has started.
    pub fn terminate(&self) {
        self.0.terminate();
    }

    /// Ends it at once, with all the processes it has started.
    pub fn kill(&self) {
        self.0.kill();
    }
}

/// Returns the environment of a plug-in: the caller's variables that such programs need, those that the manifest
/// names, and the run's mark.
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

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::id::RunId;

    fn marker() -> EnvironmentMarker {
        EnvironmentMarker { run: RunId::parse("r").expect("an id"), dir: "/x/.raymond".into() }
    }

    #[test]
    fn plugin_environment_has_run_marker_but_no_api_keys() {
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
}
