//! The arguments that name runs, and the directory of all runs.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::candidates::{complete_agents, complete_runs};
use crate::cli::logging::LoggingArgs;
use crate::cli::on_event::OnEventCommand;
pub use crate::cli::runs_dir::DirArgs;
use crate::domain::id::{AgentId, RunId};

pub(super) const LIST_HELP: &str = "Examples:
  raymond list                           the newest runs, newest first
  raymond list --status running,paused   only those that can still do something
  raymond list --limit 5
  raymond list --json | jq -r '.[] | select(.status == \"failed\") | .run'

--json prints an array of { run, status, started_at, pause, live, finished, total_cost_usd, scope_dir }, in the same
order; of a run that cannot be read only run, status, started_at and error.";

/// The run that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct NamedRunArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: Option<RunId>,
    /// Take the run that was started last
    #[arg(long, conflicts_with = "run")]
    pub last: bool,
}

/// A command about one run.
#[derive(Debug, Clone, Args)]
pub struct OneRunArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A command about all runs.
#[derive(Debug, Clone, Args)]
pub struct AllRunsArgs {
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `stop`.
#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Wait until it has stopped
    #[arg(long)]
    pub wait: bool,
    /// Stop only this agent: it ends as failed, and whoever waits for it is told
    #[arg(long, value_name = "ID", value_parser = AgentId::parse, conflicts_with = "wait", add = ArgValueCompleter::new(complete_agents))]
    pub agent: Option<AgentId>,
}

/// Options of `recover`.
#[derive(Debug, Clone, Args)]
pub struct RecoverArgs {
    /// The directory of the runs, and the output format.
    #[command(flatten)]
    pub all_runs: AllRunsArgs,
    /// Resume all of them, each in a process of its own, and wait for them
    #[arg(long)]
    pub all: bool,

    /// Run this command when one of them needs a person or ends; see `raymond run --help`
    #[arg(long, value_name = "CMD", requires = "all")]
    pub on_event: Option<OnEventCommand>,

    /// The logging options.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

/// Options of `list`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// The directory of the runs, and the output format.
    #[command(flatten)]
    pub all_runs: AllRunsArgs,
    /// Only the runs of this status; repeatable
    #[arg(long, value_enum, value_delimiter = ',')]
    pub status: Vec<RunStatusArg>,
    /// The most runs that are shown [default: all; on a terminal 50]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub limit: Option<usize>,
}

/// Reads a number that is not 0.
fn one_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "write a number from 1".to_owned())
}

/// The status of a run, as `list` and `status` print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunStatusArg {
    /// Live: a raymond has locked it
    Running,
    /// Not ended, and no raymond has locked it
    Interrupted,
    /// Stopped for a reason
    Paused,
    /// All agents have ended well
    Completed,
    /// All agents have ended, at least one failed
    Failed,
    /// The run's directory cannot be read
    Unreadable,
}
