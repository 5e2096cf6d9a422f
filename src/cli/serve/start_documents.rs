//! The workflows that the page can start: those in trusted folders, and those of earlier runs.
//!
//! `raymond start` checks the trust anew: a workflow that asks for more than prompts has to be trusted as it is now.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::run_documents::{self, RunCache};
use crate::cli::exit::Error;
use crate::runtime::{Workflow, directories};
use crate::store::layout::RunsRoot;
use crate::store::trust;

/// The most runs whose workflows are offered.
const MAX_RUNS: usize = 200;

/// Returns the workflows with the inputs that they declare.
pub(super) fn workflows(root: &RunsRoot, cache: &RunCache) -> Result<Value, Error> {
    let folders = folders(root, cache)?;
    let offered = folders.iter().filter_map(|folder| workflow(folder));
    Ok(json!({ "workflows": offered.collect::<Vec<_>>() }))
}

/// Returns the folders of these workflows.
pub(super) fn folders(root: &RunsRoot, cache: &RunCache) -> Result<BTreeSet<String>, Error> {
    let (trusted, _) = trust::list(&directories::user_state()?)?;
    let runs = run_documents::runs(root, cache, 0, MAX_RUNS)?;
    let of_runs = runs["runs"].as_array().into_iter().flatten();
    let of_runs = of_runs.filter_map(|run| run["scope_dir"].as_str().map(str::to_owned));
    Ok(trusted.into_iter().map(|one| one.folder).chain(of_runs).collect())
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
