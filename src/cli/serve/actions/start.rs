//! The action `start`: a workflow that is trusted, or was run before, begins in the background.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cli::background::own_program;
use crate::cli::exit::Error;
use crate::cli::options::budget;
use crate::cli::serve::actions::{LocalCommands, text_in};
use crate::cli::serve::command_backend;
use crate::runtime::Workflow;

/// The most bytes of a value: the system takes no longer argument.
const MAX_VALUE_BYTES: usize = 120 * 1024;

/// Starts the workflow in `folder`, one that the page offers, with the values in `inputs`, and perhaps `budget` and `model`.
pub(super) fn start(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let folder = text_in(body, "folder")?;
    if !command_backend::folders(commands.root(), commands.cache())?.contains(folder) {
        return Err(Error::Usage(format!(
            "{folder} is neither trusted nor the workflow of an earlier run; trust it at a terminal: raymond trust {folder}"
        )));
    }
    check_inputs(folder, &body["inputs"])?;
    for option in ["budget", "model"] {
        check_text(option, &body[option])?;
    }
    if let Some(amount) = body["budget"].as_str().filter(|amount| !amount.is_empty()) {
        budget(amount).map_err(|why| refused("budget", why))?;
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

/// Checks the values for the inputs of a workflow, each by itself.
fn check_inputs(folder: &str, inputs: &Value) -> Result<(), Error> {
    if !inputs.is_null() && !inputs.is_object() {
        return Err(refused("inputs", "the inputs are an object of texts"));
    }
    for (name, value) in inputs.as_object().into_iter().flatten() {
        check_text(&format!("inputs.{name}"), value)?;
    }
    // A workflow that cannot be read is told by the command.
    let declared = Workflow::open(Path::new(folder)).map(|workflow| workflow.manifest.inputs);
    let missing = declared.into_iter().flatten().find(|input| {
        input.is_required && input.default.is_none() && inputs[&input.name].as_str().is_none()
    });
    match missing {
        Some(input) => Err(refused(&format!("inputs.{}", input.name), "this input is needed")),
        None => Ok(()),
    }
}

/// Checks that a value is a text that can be given to a command.
fn check_text(field: &str, value: &Value) -> Result<(), Error> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(refused(field, "a text has no character of the number 0"))
        }
        Value::String(text) if text.len() > MAX_VALUE_BYTES => Err(refused(
            field,
            format!(
                "{} bytes are too long; put the text into a file that the workflow reads: the limit here is {MAX_VALUE_BYTES} bytes",
                text.len()
            ),
        )),
        Value::Null | Value::String(_) => Ok(()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(refused(field, "write a text"))
        }
    }
}

fn refused(field: &str, message: impl Into<String>) -> Error {
    Error::Value { field: field.to_owned(), message: message.into() }
}
