//! The configurations of a process that are passed as files.
//!
//! A command line can be read by every user of the machine, and MCP servers and settings may have tokens in them.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_model::turn_options::{ConfigSource, TurnOptions};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

/// The kind of a file of settings.
const SETTINGS: &str = "settings";

/// The kind of a file of MCP servers, before its number.
const SERVERS: &str = "mcp-";

/// A configuration, and the file that it is passed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The configuration.
    content: Map<String, Value>,
}

impl ConfigFile {
    /// Writes the file, readable by its owner alone.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn write(&self) -> Result<(), Error> {
        // A file that lies there is not raymond's: a link would be followed, and a FIFO would block.
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut new = File::options();
        let mut file = new.write(true).create_new(true).mode(0o600).open(&self.path)?;
        file.write_all(&serde_json::to_vec(&self.content)?)
    }
}

/// Replaces the MCP servers and settings in some options by files whose paths begin with `stem`; returns these.
/// Definitions of sub-agents stay: not every version takes a file of them.
pub(crate) fn take_out_configs(options: &mut TurnOptions, stem: &Path) -> Vec<ConfigFile> {
    let mut files = Vec::new();
    let mut take_out = |config: &mut ConfigSource, ending: String| {
        let ConfigSource::Inline(content) = config else { return };
        let path = PathBuf::from(format!("{}.{ending}", stem.display()));
        files.push(ConfigFile { content: std::mem::take(content), path: path.clone() });
        *config = ConfigSource::File(path.display().to_string());
    };
    for (index, config) in options.mcp_config.iter_mut().flatten().enumerate() {
        take_out(config, format!("{SERVERS}{index}.json"));
    }
    if let Some(settings) = &mut options.settings {
        take_out(settings, format!("{SETTINGS}.json"));
    }
    files
}

/// The files of a process that is about to start. They are removed when this is dropped, unless they are left to the
/// process.
#[derive(Debug)]
pub(crate) struct ConfigFiles(Vec<PathBuf>);

impl ConfigFiles {
    /// Writes what [`take_out_configs`] has taken out of some options.
    ///
    /// # Errors
    /// The file, and the system's error.
    pub(crate) fn write(configs: &[ConfigFile]) -> Result<Self, (PathBuf, Error)> {
        let files = Self(configs.iter().map(|config| config.path.clone()).collect());
        for config in configs {
            config.write().map_err(|error| (config.path.clone(), error))?;
        }
        Ok(files)
    }

    /// Leaves the files to the process, and returns their paths.
    pub(crate) fn leave(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for ConfigFiles {
    fn drop(&mut self) {
        remove_configs(&self.0);
    }
}

/// Removes files that nobody reads any longer. A warning names each file that cannot be removed.
pub(crate) fn remove_configs(paths: &[PathBuf]) {
    for path in paths {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!("{}: cannot be removed: {error}", path.display());
        }
    }
}

/// Removes the files of all processes but those to keep, given by name: a raymond that was killed left them. It reads
/// the whole directory, so it is not called for each process.
pub(crate) fn remove_all_configs_but(folder: &Path, keep: &[String]) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| {
        let process = path.file_name().and_then(OsStr::to_str).and_then(process_of);
        process.is_some_and(|process| !keep.iter().any(|kept| kept == process))
    });
    remove_configs(&paths.collect::<Vec<_>>());
}

/// Returns the name of the process that a configuration file is of.
fn process_of(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".json")?;
    let (process, kind) = name.rsplit_once('.')?;
    (kind == SETTINGS || kind.starts_with(SERVERS)).then_some(process)
}

/// The check that the copy of the workflow's files is unchanged, before its files are given to a process by their
/// paths. Without a copy it always passes.
#[derive(Clone, Default)]
pub struct CopyCheck(Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>);

impl CopyCheck {
    /// Creates the check from a function that returns the problem as an error.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Runs the check, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The problem with the copy.
    pub(crate) async fn ask(&self) -> Result<(), String> {
        let Some(check) = self.0.clone() else { return Ok(()) };
        spawn_blocking(move || check()).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl fmt::Debug for CopyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CopyCheck")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    #[test]
    fn inline_config_is_passed_in_private_file() {
        let folder = tempfile::TempDir::new().expect("a directory");
        let server = json!({ "mcpServers": { "x": { "env": { "TOKEN": "secret" } } } });
        let mut options: TurnOptions = serde_json::from_value(json!({
            "mcp_config": ["own.json", server], "settings": { "a": 1 }, "agents": { "b": {} },
        }))
        .expect("options");
        let files = take_out_configs(&mut options, &folder.path().join("main-1-0"));
        let path = |name: &str| folder.path().join(name).display().to_string();
        let expected = json!({
            "mcp_config": ["own.json", path("main-1-0.mcp-1.json")],
            "settings": path("main-1-0.settings.json"),
            "agents": { "b": {} },
        });
        assert_eq!(serde_json::to_value(&options).expect("JSON"), expected);
        for file in &files {
            file.write().expect("written");
            let mode = file.path.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let written = std::fs::read(&files[0].path).expect("there");
        let written: serde_json::Value = serde_json::from_slice(&written).expect("JSON");
        assert_eq!(written, server);
        let other = folder.path().join("other");
        std::fs::write(&other, "mine").expect("written");
        std::fs::remove_file(&files[1].path).expect("removed");
        std::os::unix::fs::symlink(&other, &files[1].path).expect("linked");
        files[1].write().expect("written");
        assert_eq!(std::fs::read_to_string(&other).expect("there"), "mine", "no link is followed");
        let left = || std::fs::read_dir(folder.path()).expect("read").count();
        remove_all_configs_but(folder.path(), &["main-1-0".to_owned()]);
        assert_eq!(left(), 3, "those of a process that lives are kept");
        drop(ConfigFiles::write(&files).expect("written"));
        assert_eq!(left(), 1, "only the file that is not a configuration is left");
    }
}
