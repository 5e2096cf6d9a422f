//! `raymond list`: all runs, a line each.

use serde_json::{Value, json};

use super::args::AllRunsArgs;
use super::exit::{CliExitCode, Error};
use super::{output, status};
use crate::actor::clock::now;
use crate::domain::failures::AgentFailures;
use crate::domain::id::RunId;
use crate::domain::printable::one_line;
use crate::domain::run::{Run, RunStatus};
use crate::plugin::sentence::date;
use crate::store;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, ids, load_view};

/// Runs `raymond list`.
///
/// # Errors
/// [`Error`] if the directory cannot be read; a run that cannot be read is listed as such.
pub fn list(args: &AllRunsArgs) -> Result<CliExitCode, Error> {
    show(args, &all(&RunsRoot::new(&args.dir.dir))?, "no runs yet; start one: raymond run PATH")
}

/// A run's id with its view, or with the error of reading it.
pub(super) type ListedRun = (RunId, Result<RunView, store::Error>);

/// Reads all runs.
pub(super) fn all(root: &RunsRoot) -> Result<Vec<ListedRun>, Error> {
    Ok(ids(root)?.into_iter().map(|id| (id.clone(), load_view(root, &id))).collect())
}

/// Shows runs as a table or as JSON.
pub(super) fn show(
    args: &AllRunsArgs,
    runs: &[ListedRun],
    none: &str,
) -> Result<CliExitCode, Error> {
    if args.json {
        return output::print_json(&runs.iter().map(as_json).collect::<Vec<_>>());
    }
    if runs.is_empty() {
        output::tell(none);
    }
    let shown = output::print(&output::table(&runs.iter().map(as_row).collect::<Vec<_>>()));
    for (id, view) in runs {
        if let Err(error) = view {
            output::tell(&format!("{id}: {error}"));
        }
    }
    shown
}

fn as_json((id, view): &ListedRun) -> Value {
    match view {
        Ok(view) => {
            let mut value = json!({
                "run": id,
                "status": status::word(view),
                "pause": view.run.pause,
                "live": view.run.agents.len(),
                "finished": view.run.finished.len(),
                "total_cost_usd": view.run.total_cost_usd,
                "scope_dir": view.run.scope_dir,
            });
            output::add_failures(&mut value, &view.run);
            value
        }
        Err(error) => {
            json!({ "run": id, "status": "unreadable", "error": error.to_string() })
        }
    }
}

fn as_row((id, view): &ListedRun) -> Vec<String> {
    match view {
        Ok(view) => vec![
            id.to_string(),
            status::word(view).to_owned(),
            format!("{} live", view.run.agents.len()),
            finished(&AgentFailures::of(&view.run)),
            view.run.total_cost_usd.to_string(),
            why(&view.run),
        ],
        Err(_) => vec![id.to_string(), "unreadable".to_owned()],
    }
}

/// Returns the number of agents that have ended, with that of the failed ones.
fn finished(failures: &AgentFailures) -> String {
    let AgentFailures { ended, failed, .. } = failures;
    if failures.is_empty() {
        format!("{ended} finished")
    } else {
        format!("{ended} finished, {failed} failed")
    }
}

/// Returns the reason why a run does not proceed, in short, or else what its agents failed of.
fn why(run: &Run) -> String {
    match (&run.pause, run.limited(now()).filter(|_| run.status == RunStatus::Running)) {
        (Some(pause), _) => one_line(&pause.to_string()),
        (None, Some(until)) => format!("usage limit until {}", date(until)),
        (None, None) => AgentFailures::of(run).to_string(),
    }
}
