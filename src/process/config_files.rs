//! Configurations of a process that are passed as files: a command line can be read by every user of the
//! machine, and MCP servers and settings may have tokens in them.

use std::fs::File;
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::domain::turn_options::{ConfigSource, TurnOptions};

/// A configuration, and the file that it is passed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The configuration.
    content: Map<String, Value>,
}

impl ConfigFile {
    /// Writes the file, readable by its owner alone.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self) -> Result<(), Error> {
        // Whatever lies there is not ours: a link would be followed, and a FIFO be waited for.
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut new = File::options();
        let mut file = new.write(true).create_new(true).mode(0o600).open(&self.path)?;
        file.write_all(&serde_json::to_vec(&self.content)?)
    }
}

/// Replaces the MCP servers and settings in some options by files whose paths begin with `stem`, and returns these.
/// Definitions of sub-agents stay: not every version takes a file of them.
pub fn take_out_configs(options: &mut TurnOptions, stem: &Path) -> Vec<ConfigFile> {
    let mut files = Vec::new();
    let mut take_out = |config: &mut ConfigSource, ending: String| {
        let ConfigSource::Inline(content) = config else { return };
        let path = PathBuf::from(format!("{}.{ending}", stem.display()));
        files.push(ConfigFile { content: std::mem::take(content), path: path.clone() });
        *config = ConfigSource::File(path.display().to_string());
    };
    for (index, config) in options.mcp_config.iter_mut().flatten().enumerate() {
        take_out(config, format!("mcp-{index}.json"));
    }
    if let Some(settings) = &mut options.settings {
        take_out(settings, "settings.json".to_owned());
    }
    files
}

/// Removes the files whose paths begin with `stem`, once nobody reads them any more.
pub fn remove_configs(stem: &Path) {
    let path = |ending: &str| PathBuf::from(format!("{}.{ending}", stem.display()));
    let _ = std::fs::remove_file(path("settings.json"));
    let mut servers = (0..).map(|index| path(&format!("mcp-{index}.json")));
    while servers.next().is_some_and(|path| std::fs::remove_file(path).is_ok()) {}
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_in_place_is_passed_in_a_file_that_others_cannot_read() {
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
    }
}
