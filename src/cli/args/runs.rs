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
  raymond list --status running,paused   only runs that can still continue
  raymond list --limit 5
  raymond list --json | jq -r '.[] | select(.status == \"failed\") | .run'

--json prints an array of { run, status, started_at, pause, live, finished, total_cost_usd, scope_dir }, in the same
order. An unreadable run has only run, status, started_at and error.";

/// The run that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct NamedRunArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: Option<RunId>,
    /// Use the most recently started run
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

/// The agent that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub struct AgentArg {
    /// Only this agent, such as main.2
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    agent: Option<AgentId>,
    /// The same, as an option
    #[arg(long = "agent", value_name = "AGENT", hide = true, conflicts_with = "agent", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    agent_option: Option<AgentId>,
}

impl AgentArg {
    /// Returns the agent, if one is named.
    pub fn get(&self) -> Option<&AgentId> {
        self.agent.as_ref().or(self.agent_option.as_ref())
    }
}

/// Options of `stop`.
#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// The agent to stop; it ends as failed, and agents that wait for it see that.
    #[command(flatten)]
    pub agent: AgentArg,
    /// Wait until the run has stopped
    #[arg(long, conflicts_with_all = ["agent", "agent_option"])]
    pub wait: bool,
}

/// Options of `recover`.
#[derive(Debug, Clone, Args)]
pub struct RecoverArgs {
    /// The directory of the runs, and the output format.
    #[command(flatten)]
    pub all_runs: AllRunsArgs,
    /// Resume all of them, each in a separate process, and wait for them
    #[arg(long)]
    pub all: bool,

    /// Run this command when one of them needs a person or ends; see `raymond help run --all`
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
    /// Only runs with this status; repeatable
    #[arg(long, value_enum, value_delimiter = ',')]
    pub status: Vec<RunStatusArg>,
    /// Maximum number of runs to show [default: all; on a terminal 50]
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    pub limit: Option<usize>,
}

/// Reads a number that is not 0.
fn one_or_more(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "write a number of 1 or more".to_owned())
}

/// The status of a run, as `list` and `status` print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunStatusArg {
    /// Live: a raymond process has locked it
    Running,
    /// Not ended, and no raymond process has locked it
    Interrupted,
    /// Stopped for a reason
    Paused,
    /// All agents have finished
    Completed,
    /// All agents have ended, and at least one failed
    Failed,
    /// The run's directory cannot be read
    Unreadable,
}
