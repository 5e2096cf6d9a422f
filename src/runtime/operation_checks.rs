//! The checks of operations that need trust: what was trusted are the files as they were when the run began.

use crate::domain::privilege::Privilege;
use crate::store::workflow::WorkflowDir;

/// Refuses commands that name a file of the workflow which was changed since the run began.
pub(super) fn check_named_files(scope: &WorkflowDir, commands: [&str; 2]) -> Result<(), String> {
    match commands.into_iter().find_map(|command| scope.changed_file_in(command)) {
        None => Ok(()),
        Some(file) => Err(format!(
            "the command names {file}, a file of the workflow that was changed since the run began; restore its old content, or use the new one with --migrate"
        )),
    }
}

/// Returns the path of a script of the workflow: that of the run's copy, which no agent has changed.
pub(super) fn script_of(scope: &WorkflowDir, file: &str) -> Result<String, String> {
    let live = scope.live_root().join(file);
    let copy = scope.executable_copy(&live).map_err(|error| error.to_string())?;
    let path = copy.unwrap_or(live);
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: the path is not UTF-8", path.display()))
}

/// Returns the reason why an operation is refused. Most privileges are found before a run, so this covers only
/// those that were not found then.
pub(super) fn not_trusted(privilege: Privilege) -> String {
    format!(
        "this {}, and the run was started without trust in the workflow's folder; start, resume or retry it with --trust",
        privilege.meaning()
    )
}
