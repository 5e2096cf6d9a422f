//! `raymond branch`: a run that shares the records of another, and continues differently.

use super::args::NewRunArgs;
use super::args::branch::BranchArgs;
use super::exit::{CliExitCode, Error};
use super::foreground::supervise_here;
use super::run::graph_setup;
use super::{confirm, output, person, run_choice, settings};
use crate::runtime::branch::{BranchRequest, FoundBranch, branch as branch_off, find_branch};

/// Runs `raymond branch`.
///
/// # Errors
/// [`Error`] if there is no such place, or the new run cannot begin.
pub(super) fn branch(args: &BranchArgs) -> Result<CliExitCode, Error> {
    person::must_act("branch a run")?;
    let root = args.dir.real_root()?;
    let id = run_choice::chosen(&args.named, &root)?;
    let point = args.point().map_err(Error::Usage)?;
    let found = find_branch(&root, &id, &point)?;
    let before = found.cut.run.settings.clone();
    let mut settings = settings::for_resume(&NewRunArgs::default(), &args.options, before)?;
    settings.variables.extend(args.variables.iter().cloned());
    settings::check_budget(args.options.budget, &settings, &found.cut.run)?;
    let request = BranchRequest { id: args.id.clone(), edited: args.edit.clone() };
    let prepared = confirm::confirmed(&args.options, |starter| {
        branch_off(&root, &found, &request, settings.clone(), graph_setup(), starter)
    })?;
    if !args.options.json {
        output::tell_fitted(&shared(&found, prepared.id().as_str()));
    }
    supervise_here(&args.options, &root, prepared)
}

/// Returns what a branch shares with the run that it branches off.
fn shared(found: &FoundBranch, id: &str) -> String {
    let FoundBranch { source, cut, .. } = found;
    let live = cut.run.agents.len();
    let agents = if live == 1 { "1 agent lives".to_owned() } else { format!("{live} agents live") };
    format!(
        "{id} branches off {source} after record {}: {agents} there, {} spent so far",
        cut.run.seq, cut.run.total_cost_usd
    )
}
