//! What is the same for each agent program: the marks of a process, its environment, where it is, and the folders of a run. Pure.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use raymond_model::id::{AgentId, RunId};
use raymond_model::turn_options::{EnvValue, TurnOptions};

/// The marks of every process of a run, and of a turn, in its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentMarker {
    pub run: RunId,
    /// The directory of all runs, as an absolute path.
    pub dir: PathBuf,
}

/// The variable that names the run of a process.
const RUN: &str = "RAYMOND_RUN";

/// The variable that marks a run in the background, so that the turn it was started from leaves it alone.
pub const DETACHED: &str = "RAYMOND_DETACHED";

impl EnvironmentMarker {
    /// Returns the variables that a process gets on top of the caller's environment. `process` is the name
    /// of its files; a process that is started ahead of its first turn has no agent yet.
    pub fn variables(&self, process: &str, agent: Option<&AgentId>) -> [(&'static str, String); 4] {
        [
            (RUN, self.run.to_string()),
            ("RAYMOND_DIR", self.dir.display().to_string()),
            ("RAYMOND_AGENT", agent.map(AgentId::to_string).unwrap_or_default()),
            ("RAYMOND_TURN", process.to_owned()),
        ]
    }

    /// Returns the name of the files of the agent's process that a process belongs to, if its
    /// environment bears this run's mark.
    pub fn process_of<'env>(&self, environment: &'env [u8]) -> Option<&'env str> {
        if self.is_on(environment) { value(environment, "RAYMOND_TURN") } else { None }
    }

    /// Returns the name of the plug-in that a process belongs to, if its environment bears this run's mark.
    pub fn plugin_of<'env>(&self, environment: &'env [u8]) -> Option<&'env str> {
        let of_turn = value(environment, "RAYMOND_TURN").is_some();
        if self.is_on(environment) && !of_turn {
            value(environment, "RAYMOND_PLUGIN")
        } else {
            None
        }
    }

    /// Returns whether a process is certainly not of this run's turns: it bears the mark of another run or of a
    /// plug-in, or was started as a run in the background.
    pub fn is_of_others(&self, environment: &[u8]) -> bool {
        if self.is_on(environment) {
            return self.plugin_of(environment).is_some();
        }
        [RUN, DETACHED].iter().any(|name| value(environment, name).is_some())
    }

    fn is_on(&self, environment: &[u8]) -> bool {
        value(environment, RUN) == Some(self.run.as_str())
            && value(environment, "RAYMOND_DIR").is_some_and(|dir| Path::new(dir) == self.dir)
    }
}

/// Returns the value of a variable in an environment in the system's format.
pub(super) fn value<'env>(environment: &'env [u8], name: &str) -> Option<&'env str> {
    environment.split(|&byte| byte == 0).find_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        pair.strip_prefix(name)?.strip_prefix('=')
    })
}

/// Returns the path of the program: `program` itself if it is a path, else found on the search path.
pub fn locate(program: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        return is_executable(Path::new(program)).then(|| PathBuf::from(program));
    }
    std::env::split_paths(search_path?)
        .map(|dir| dir.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The folders of a workflow: its pinned copy, the one its agents may work in, and those they may not touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFolders {
    /// The files as they were when the run began.
    pub pinned: PathBuf,
    /// The folder that they were taken from.
    pub live: PathBuf,
    /// The folders that the tools of agents leave alone.
    pub protected: Option<ProtectedFolders>,
}

impl WorkflowFolders {
    /// Returns folders in which the pinned and the live one are the same.
    pub fn at(folder: &Path) -> Self {
        Self { pinned: folder.to_owned(), live: folder.to_owned(), protected: None }
    }
}

/// Returns the variables that are set for a process on top of those it inherits.
///
/// # Errors
/// The name of a variable that is to be passed, but is not set where raymond was started.
pub fn environment(
    options: &TurnOptions,
    is_set: impl Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, String> {
    let mut set = Vec::new();
    for (name, value) in options.env.iter().flatten() {
        match value {
            EnvValue::Set(text) => set.push((name.clone(), text.clone())),
            EnvValue::Pass if is_set(name) => {}
            EnvValue::Pass => return Err(name.clone()),
        }
    }
    Ok(set)
}

/// The folders of a user's runs, and of raymond's own state for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedFolders {
    /// The directory of the runs, the facts and the worktrees.
    pub all_runs: PathBuf,
    /// The directory of the user's key.
    pub user_state: PathBuf,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(options: serde_json::Value) -> TurnOptions {
        serde_json::from_value(options).expect("options")
    }

    #[test]
    fn process_is_identified_by_marker_variables() {
        let marker =
            EnvironmentMarker { run: RunId::parse("r").expect("an id"), dir: "/x/.raymond".into() };
        let bytes: Vec<u8> = marker
            .variables("main-2-0", Some(&AgentId::main()))
            .iter()
            .flat_map(|(name, value)| format!("{name}={value}\0").into_bytes())
            .collect();
        assert_eq!(marker.process_of(&bytes), Some("main-2-0"));
        let other = EnvironmentMarker { dir: "/y/.raymond".into(), ..marker };
        assert_eq!(other.process_of(&bytes), None);
        assert_eq!(other.process_of(b""), None);
        let marker = EnvironmentMarker { dir: "/x/.raymond".into(), ..other.clone() };
        assert!(other.is_of_others(&bytes) && !marker.is_of_others(&bytes));
        assert!(!marker.is_of_others(b"") && !marker.is_of_others(b"PATH=/bin\0"));
        assert!(marker.is_of_others(b"RAYMOND_DETACHED=1\0"));
        let plugin = b"RAYMOND_RUN=r\0RAYMOND_DIR=/x/.raymond\0RAYMOND_PLUGIN=p\0";
        assert!(marker.is_of_others(plugin));
    }

    #[test]
    fn program_is_found_on_search_path() {
        assert_eq!(locate("sh", Some(OsStr::new("/nowhere:/bin"))), Some(PathBuf::from("/bin/sh")));
        assert_eq!(locate("sh", None), None);
        assert_eq!(locate("/bin/sh", None), Some(PathBuf::from("/bin/sh")));
        assert_eq!(locate("/etc/passwd", None), None);
    }

    #[test]
    fn missing_passed_variable_is_error() {
        let env = options(json!({ "env": { "A": { "set": "b" }, "HOME": "pass" } }));
        let set = environment(&env, |name| name == "HOME");
        assert_eq!(set, Ok(vec![("A".to_owned(), "b".to_owned())]));
        assert_eq!(environment(&env, |_| false), Err("HOME".to_owned()));
    }
}
