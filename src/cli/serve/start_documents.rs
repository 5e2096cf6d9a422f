//! The workflows that the page can start: those in trusted folders that are as they were when they were trusted.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::exit::Error;
use crate::runtime::{Workflow, directories};
use crate::store::trust;

/// Returns the workflows with the inputs that they declare.
pub(super) fn workflows() -> Result<Value, Error> {
    let (mut trusted, _) = trust::list(&directories::user_state()?)?;
    trusted.sort_by(|one, other| one.folder.cmp(&other.folder));
    let offered = trusted.iter().filter_map(|one| workflow(&one.folder));
    Ok(json!({ "workflows": offered.collect::<Vec<_>>() }))
}

/// Returns whether a folder is one of those.
pub(super) fn is_offered(folder: &str) -> Result<bool, Error> {
    let (trusted, _) = trust::list(&directories::user_state()?)?;
    Ok(trusted.iter().any(|one| one.folder == folder))
}

/// Returns a workflow with its inputs; `None` if there is none in the folder now.
fn workflow(folder: &str) -> Option<Value> {
    let workflow = Workflow::open(Path::new(folder)).ok()?;
    let manifest = &workflow.manifest;
    let inputs = manifest.inputs.iter().map(|input| {
        json!({
            "name": input.name,
            "description": input.description,
            "required": input.is_required,
            "default": input.default,
        })
    });
    Some(json!({
        "folder": folder,
        "name": manifest.name,
        "description": manifest.description,
        "inputs": inputs.collect::<Vec<_>>(),
    }))
}
