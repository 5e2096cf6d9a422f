//! The inputs that a workflow declares in its own `raymond.yaml`, for a run of that workflow.

use super::error::Error;
use super::request::RunRequest;
use super::workflow::Workflow;
use crate::domain::id::StateName;
use crate::domain::settings::Settings;
use crate::language::manifest;
use crate::language::source::WorkflowSource;

/// Gives a new run the defaults of the inputs that it leaves out.
///
/// # Errors
/// [`Error::Inputs`] if it leaves out one that is required.
pub(super) fn fill(
    workflow: &Workflow,
    request: &RunRequest,
    settings: &mut Settings,
) -> Result<(), Error> {
    let mut missing = Vec::new();
    for input in &workflow.manifest.inputs {
        let is_given = (input.name == "input" && request.input.is_some())
            || settings.variables.contains_key(&input.name)
            || settings.context.contains_key(&input.name);
        match &input.default {
            _ if is_given => {}
            Some(text) => drop(settings.variables.insert(input.name.clone(), text.clone())),
            None if input.is_required => missing.push(input.clone()),
            None => {}
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let path = workflow.scope.path(&StateName::parse(manifest::FILE)?);
    Err(Error::Inputs { path, missing })
}
