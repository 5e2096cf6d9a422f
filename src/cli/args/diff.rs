//! The arguments of `diff`, and its help.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::DirArgs;
use super::runs::AgentArg;
use crate::cli::candidates::complete_runs;
use crate::domain::id::RunId;

pub(super) const DIFF_HELP: &str = "Examples:
  raymond diff RUN1 RUN2                 where two runs of a workflow first differ, and what followed
  raymond diff BRANCH                    a branch, and the run that it branched from
  raymond diff RUN1 RUN2 main.2  only this agent
  raymond diff RUN1 RUN2 --json | jq .first_difference

Agents are compared step by step: states, prompts, models, replies, failures, tags, answers, results, and the files
that Claude Code's own tools changed. Ids, times, sessions, and failures of the machine or the account do not
count as differences. Costs, inputs and workflow files are shown, but do not make two runs different.

Exit codes: 0 if the runs are equal, 1 if they differ.

--json prints { runs, agent, equal, shared_records, first_difference, steps, results, cost, states, files, commands,
inputs, workflow_files }; values of the first run are under a, those of the second under b.";

/// Options of `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// A run: its id, or the beginning of it
    #[arg(value_name = "RUN1", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The other run [default: the run that RUN1 branched from, which then comes first]
    #[arg(value_name = "RUN2", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub other: Option<RunId>,
    /// The agent to compare.
    #[command(flatten)]
    pub agent: AgentArg,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
