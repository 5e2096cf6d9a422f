//! The action `start`: a workflow that is trusted, or was run before, begins in the background.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::local_commands::{LocalCommands, text_in};
use super::super::start_documents;
use crate::cli::background::own_program;
use crate::cli::exit::Error;

/// Starts the workflow in `folder`, one that the page offers, with the values in `inputs`, and perhaps `budget` and `model`.
pub(super) fn start(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let folder = text_in(body, "folder")?;
    if !start_documents::folders(commands.root(), commands.cache())?.contains(folder) {
        return Err(Error::Usage(format!(
            "{folder} is neither trusted nor the workflow of an earlier run; trust it at a terminal: raymond trust {folder}"
        )));
    }
    let mut command = Command::new(own_program()?);
    command.arg("start").arg(folder).arg("--dir").arg(commands.root().path());
    for (name, value) in body["inputs"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        match name.as_str() {
            "input" => command.arg(format!("--input={value}")),
            name => command.arg(format!("--var={name}={value}")),
        };
    }
    for option in ["budget", "model"] {
        if let Some(value) = body[option].as_str().filter(|value| !value.is_empty()) {
            command.arg(format!("--{option}={value}"));
        }
    }
    let failed =
        |error| Error::Io { doing: "start a run with", path: "this program".into(), error };
    let output = command.stdin(Stdio::null()).output().map_err(failed)?;
    if !output.status.success() {
        return Err(Error::Usage(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(json!({ "run": String::from_utf8_lossy(&output.stdout).trim() }))
}
