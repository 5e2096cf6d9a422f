//! `raymond recover`: the runs that can be resumed after a crash, a stop or a pause.
//!
//! With `--all` each is resumed in a process of its own, and this one waits for them; they continue if it is
//! interrupted.

use super::args::RecoverArgs;
use super::exit::{CliExitCode, Error};
use super::list::{self, ListedRun};
use super::{background, output};
use crate::store::layout::RunsRoot;

/// Runs `raymond recover`.
///
/// # Errors
/// [`Error`] if the directory cannot be read, or a run cannot be resumed.
pub fn recover(args: &RecoverArgs) -> Result<CliExitCode, Error> {
    let root = args.all_runs.dir.real_root()?;
    let mut runs = list::all(&root)?;
    runs.retain(|run| match &run.view {
        Ok(view) => !view.held && view.run.can_resume(),
        Err(_) => false,
    });
    if args.all && !runs.is_empty() {
        return resume_all(args, &root, &runs);
    }
    list::show(&root, &args.all_runs, &runs, "no run can be resumed")
}

/// Resumes runs, and shows how they ended; the exit code is the worst of theirs. A run whose budget is used up
/// needs a larger one first.
fn resume_all(
    args: &RecoverArgs,
    root: &RunsRoot,
    runs: &[ListedRun],
) -> Result<CliExitCode, Error> {
    let mut further = args.logging.arguments();
    if let Some(command) = &args.on_event {
        further.extend(["--on-event".into(), command.text().into()]);
    }
    let mut going = Vec::new();
    for ListedRun { id, view, .. } in runs {
        if view.as_ref().is_ok_and(|view| view.run.budget().is_empty()) {
            output::tell(&format!("{id} needs a larger budget: raymond resume {id} --budget USD"));
            continue;
        }
        going.push((id, background::resume_detached(root, id, &further)?));
        output::tell(&format!("{id} is resumed; `raymond log {id} --follow` shows it"));
    }
    if !going.is_empty() {
        output::tell("waiting for them; they continue if this command is interrupted");
    }
    let mut worst = CliExitCode::Success;
    for (id, process) in going {
        let code = process.wait(root, id)?;
        let exit = CliExitCode::ALL.iter().copied().find(|exit| code == Some(exit.code().into()));
        if exit == Some(CliExitCode::NotTrusted) {
            output::tell(&format!(
                "{id} is not resumed before you confirm what it would execute: raymond resume {id}"
            ));
        }
        worst = worst.max(exit.unwrap_or(CliExitCode::Io));
    }
    let ids: Vec<_> = runs.iter().map(|run| &run.id).collect();
    let mut after = list::all(root)?;
    after.retain(|run| ids.contains(&&run.id));
    list::show(root, &args.all_runs, &after, "")?;
    Ok(worst)
}
