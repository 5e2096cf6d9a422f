//! A plug-in's process, and the environment of all programs beside Claude Code.
//!
//! The process runs beside a run from its beginning to its end. It leads its own process group and uses pipes, so the
//! end of its stdin shows that raymond has ended, even after a crash. It carries the run's mark under its own name, not
//! under the name of a turn. So the cleanup of the turns' orphans leaves it alone, and the next raymond finds it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;

use raymond_model::turn_options::{EnvValue, TurnOptions};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::child::subreaper::ProcessPurpose;
use crate::child::{ChildEnvironment, ChildProcess, ChildProcessSpec, ProcessExit};
use crate::command::{EnvironmentMarker, locate};

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
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
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
    let marks = [
        ("RAYMOND_RUN", OsString::from(marker.run.as_str())),
        ("RAYMOND_DIR", marker.dir.clone().into_os_string()),
        ("RAYMOND_PLUGIN", OsString::from(name)),
    ];
    let marks = marks.map(|(name, value)| (OsString::from(name), value));
    passed_on(callers, named).into_iter().chain(marks).collect()
}

// The environment of the programs beside Claude Code: plug-ins, hooks, the commands and scripts of graphs, git.
// Pure.
//
// It is made from a list of what such programs need, because nobody can list all the names of secrets. The manifest
// names further variables under `env`. Keys of Claude Code are never passed on, even if they are named. Neither are
// the marks by which a process belongs to a run, because raymond itself may have been started by a turn or a plug-in
// of another run.

/// The prefixes of the names of the account's keys, and of the variables that Claude Code sets for its children.
const CLAUDE: [&str; 2] = ["ANTHROPIC_", "CLAUDE_"];

/// The variable with the address of an engine, which may hold a password.
pub const ENGINE: &str = "RAYMOND_ENGINE";

/// The variable with the address of the engine that has the facts of a run, whose log is on this machine: a run of that
/// engine has started it.
pub const FACTS_ENGINE: &str = "RAYMOND_FACTS";

/// The variables that mark a process as a run's, and those that are secrets.
const MARKS: [&str; 7] = [
    "RAYMOND_RUN",
    "RAYMOND_DIR",
    "RAYMOND_AGENT",
    "RAYMOND_TURN",
    "RAYMOND_PLUGIN",
    ENGINE,
    FACTS_ENGINE,
];

/// The prefixes of names that are passed on: languages, standard directories, and raymond's own.
const NEEDED_BEGINNINGS: [&str; 3] = ["LC_", "XDG_", "RAYMOND_"];

/// The names that are passed on.
const NEEDED: [&str; 92] = [
    // The user, and where programs and files are.
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TMP",
    "TEMP",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    // Language, time, and how output looks.
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "TERM",
    "TERMINFO",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    // The screen, for hooks that notify.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    // The way to the network, and the trusted certificates.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "FTP_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "ftp_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    // Cloning over ssh asks the agent. Any program of this user finds its socket anyway.
    "SSH_AUTH_SOCK",
    // The author of commits, and the configuration that git reads; nothing that names a program, a token or a
    // repository.
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_TERMINAL_PROMPT",
    // Where tool chains are: directories, no secrets.
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "SDKMAN_DIR",
    "NVM_DIR",
    "NVM_BIN",
    "NODE_PATH",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "PERL5LIB",
    "DOTNET_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "HOMEBREW_PREFIX",
    "NIX_PATH",
];

/// The variables that a run's manifest names under `env`: their programs get these as well.
///
/// The caller has checked that the person trusts the manifest with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedVariables(BTreeMap<String, EnvValue>);

impl NamedVariables {
    /// Returns the variables in the options of a run.
    pub fn of(options: &TurnOptions) -> Self {
        Self(options.env.clone().unwrap_or_default())
    }
}

/// Returns the part of the caller's environment that a program beside Claude Code is given.
pub fn passed_on(
    caller: impl IntoIterator<Item = (OsString, OsString)>,
    named: &NamedVariables,
) -> Vec<(OsString, OsString)> {
    let value = |name: &OsStr| name.to_str().and_then(|name| named.0.get(name));
    let is_passed_on = |name: &OsStr| match value(name) {
        Some(EnvValue::Pass) => true,
        Some(EnvValue::Set(_)) => false,
        None => is_needed(name),
    };
    let set = named.0.iter().filter_map(|(name, value)| match value {
        EnvValue::Set(text) => Some((name.into(), text.into())),
        EnvValue::Pass => None,
    });
    without_keys(caller.into_iter().filter(|(name, _)| is_passed_on(name)).chain(set)).collect()
}

/// Returns an environment without Claude Code's keys and a run's marks.
pub fn without_keys(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    environment
        .into_iter()
        .filter(|(name, _)| !begins_with(name, &CLAUDE) && !MARKS.iter().any(|mark| name == *mark))
}

fn is_needed(name: &OsStr) -> bool {
    NEEDED.iter().any(|needed| name == *needed) || begins_with(name, &NEEDED_BEGINNINGS)
}

fn begins_with(name: &OsStr, beginnings: &[&str]) -> bool {
    let name = name.as_encoded_bytes();
    beginnings.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
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

#[cfg(test)]
mod helper_environment_tests {
    use super::*;

    fn named(json: serde_json::Value) -> NamedVariables {
        NamedVariables(serde_json::from_value(json).expect("variables"))
    }

    fn kept(caller: &[&str], manifest: &NamedVariables) -> Vec<String> {
        let variables = caller.iter().map(|name| (OsString::from(name), OsString::from("x")));
        let text = |text: OsString| text.into_string().expect("text");
        passed_on(variables, manifest)
            .into_iter()
            .map(|(name, value)| text(name) + "=" + &text(value))
            .collect()
    }

    #[test]
    fn only_allowlisted_variables_are_inherited() {
        let caller = [
            "PATH",
            "HOME",
            "LC_ALL",
            "XDG_RUNTIME_DIR",
            "https_proxy",
            "SSH_AUTH_SOCK",
            "CARGO_HOME",
            "RAYMOND_LOG",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "RAYMOND_RUN",
            "RAYMOND_DIR",
            "RAYMOND_AGENT",
            "RAYMOND_TURN",
            "RAYMOND_PLUGIN",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "GIT_ASKPASS",
            "GIT_CONFIG_VALUE_0",
            "GIT_DIR",
            "NPM_TOKEN",
            "MINE",
            "LD_PRELOAD",
        ];
        let expected = [
            "PATH=x",
            "HOME=x",
            "LC_ALL=x",
            "XDG_RUNTIME_DIR=x",
            "https_proxy=x",
            "SSH_AUTH_SOCK=x",
            "CARGO_HOME=x",
            "RAYMOND_LOG=x",
        ];
        assert_eq!(kept(&caller, &NamedVariables::default()), expected);
    }

    #[test]
    fn manifest_adds_variables_but_not_claude_code_keys() {
        let manifest = named(serde_json::json!({
            "GITHUB_TOKEN": "pass", "LANG": { "set": "C" }, "MODE": { "set": "fast" }, "ABSENT": "pass",
            "ANTHROPIC_API_KEY": "pass", "RAYMOND_RUN": { "set": "other" },
        }));
        let caller = ["PATH", "LANG", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "NPM_TOKEN"];
        assert_eq!(kept(&caller, &manifest), ["PATH=x", "GITHUB_TOKEN=x", "LANG=C", "MODE=fast"]);
    }
}
