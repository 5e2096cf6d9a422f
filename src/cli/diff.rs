//! `raymond diff`: where two runs differ.

mod first;
mod json;
mod shown;

use self::first::FirstDifference;
use self::json::DiffDocument;
use self::shown::ShownDiff;
use super::agent_selector::check_agent_exists;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice, table};
use crate::cli::args::readers::DiffArgs;
use crate::domain::id::RunId;
use crate::domain::run_diff::RunPair;
use crate::runtime::comparison::{RunComparison, compare_runs};
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// Runs `raymond diff`.
///
/// # Errors
/// [`Error`] if one of the runs cannot be read, or neither has the agent.
pub(super) fn diff(args: &DiffArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let ids = chosen(args, &root)?;
    let found = compare_runs(&root, ids.as_ref(), args.agent.get())?;
    if let Some(agent) = args.agent.get() {
        let RunPair { a, b } = found.runs.as_ref().map(|run| &run.view.run);
        check_agent_exists(a, agent)
            .or_else(|missing| check_agent_exists(b, agent).map_err(|_| missing))?;
    }
    let first = FirstDifference::of(&found, &root)?;
    if args.json {
        output::print_json(&DiffDocument::of(&found, args.agent.get(), first.as_ref()))?;
    } else {
        let shown = ShownDiff { found: &found, agent: args.agent.get(), first: first.as_ref() };
        table::print(shown.lines())?;
    }
    Ok(exit(&found))
}

/// Returns 1 for runs that differ, as other programs that compare do.
fn exit(found: &RunComparison) -> CliExitCode {
    if found.diff.is_equal() { CliExitCode::Success } else { CliExitCode::AgentFailed }
}

/// Returns the runs that are named; of a branch alone, the run that it branched off comes first.
fn chosen(args: &DiffArgs, root: &RunsRoot) -> Result<RunPair<RunId>, Error> {
    let run = run_choice::find(root, &args.run)?;
    if let Some(other) = &args.other {
        return Ok(RunPair { a: run, b: run_choice::find(root, other)? });
    }
    match load_view(root, &run)?.run.branch {
        Some(origin) if !root.run(&origin.run).path().is_dir() => Err(Error::Usage(format!(
            "{run} branched off {}, which has been removed, so name another run to compare it with: raymond diff {run} RUN2",
            origin.run
        ))),
        Some(origin) => Ok(RunPair { a: origin.run, b: run }),
        None => Err(Error::Usage(format!(
            "{run} did not branch off another run, so name the run to compare it with: raymond diff {run} RUN2"
        ))),
    }
}
