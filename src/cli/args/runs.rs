//! The arguments that name runs, and the directory of all runs.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::cli::completions::{complete_agents, complete_runs};
use crate::cli::on_event::OnEventCommand;
use crate::cli::output::LoggingArgs;
pub use crate::cli::runs_dir::DirArgs;
use crate::domain::id::{AgentId, RunId};
use crate::language::prompt::step::RESERVED;

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

// The options that are fixed when a run starts.
//
// The source of the agents' answers, as it is given on the command line.

/// Options that are fixed when a run starts.
#[derive(Debug, Clone, Default, Args)]
pub struct NewRunArgs {
    /// Name the run instead of letting raymond choose an id; programs read it as @label
    #[arg(long, alias = "label", value_parser = RunId::parse)]
    pub id: Option<RunId>,

    /// Text for {{input}} in the first state; - reads it from stdin
    #[arg(long, value_name = "TEXT", value_parser = input)]
    pub input: Option<String>,

    /// Text for {{KEY}} in every state; repeatable
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// The git branch that (artifact …) compares against; programs read it as @branch
    #[arg(long = "base-branch", alias = "branch", value_name = "BRANCH")]
    pub branch: Option<String>,

    /// Text for @context/KEY in programs; repeatable
    #[arg(long = "context", value_name = "KEY=VALUE", value_parser = context)]
    pub context: Vec<(String, String)>,

    /// The source of the answers: claude, scripted for the workflow's replies.yaml, or replay:DIR for the
    /// cassette that `raymond record` made; only claude calls a model [default: claude]
    #[arg(long, value_name = "WHO", value_parser = answerer, add = ArgValueCompleter::new(complete_answerers))]
    pub agent: Option<AnswererArg>,

    /// With --agent replay:DIR, fail an agent whose prompt differs from the recorded prompt
    #[arg(long)]
    pub strict_replay: bool,

    /// With --agent replay:DIR, answer only the turns up to this record of the recorded run from the cassette; `raymond
    /// log RUN --json` shows the numbers of records
    #[arg(long, value_name = "SEQ", requires = "then", value_parser = clap::value_parser!(u64).range(1..))]
    pub replay_until: Option<u64>,

    /// The source of the answers after --replay-until: claude, or scripted for the workflow's replies.yaml
    #[arg(long, value_name = "WHO", requires = "replay_until")]
    pub then: Option<LiveAnswererArg>,

    /// The directory the agents work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// With an engine: a directory that all hosts see under the same path, so that forks without a worktree can run on
    /// any host
    #[arg(long, value_name = "DIR")]
    pub shared_dir: Option<PathBuf>,

    /// With an engine: the git repository through which hosts without a shared disk exchange the work of agents, as an
    /// address or the name of a remote. Branches raymond/RUN/… are pushed there
    #[arg(long, value_name = "REMOTE", conflicts_with = "shared_dir")]
    pub git_exchange: Option<String>,

    /// Start the workflow even if `raymond check` finds errors in it
    #[arg(long)]
    pub no_check: bool,
}

fn input(text: &str) -> Result<String, String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    std::io::read_to_string(std::io::stdin()).map_err(|error| format!("cannot read stdin: {error}"))
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, _)) if RESERVED.contains(&key) => {
            Err(format!("{{{{{key}}}}} is set by raymond; choose another name"))
        }
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn context(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// The word before the directory of a cassette.
const REPLAY: &str = "replay:";

/// The source of the agents' answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswererArg {
    /// Claude Code.
    Claude,
    /// The workflow's `replies.yaml`; no model is called.
    Scripted,
    /// The cassette in this directory; no model is called.
    Replay(PathBuf),
}

/// The source of the answers after the part that a cassette has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LiveAnswererArg {
    /// Claude Code
    #[value(alias = "live")]
    Claude,
    /// The workflow's `replies.yaml`; no model is called
    Scripted,
}

/// Reads the source of the answers.
pub(super) fn answerer(text: &str) -> Result<AnswererArg, String> {
    match text {
        "claude" => Ok(AnswererArg::Claude),
        "scripted" => Ok(AnswererArg::Scripted),
        _ => match text.strip_prefix(REPLAY) {
            Some("") => Err("name the directory of a cassette: replay:DIR".to_owned()),
            Some(dir) => Ok(AnswererArg::Replay(dir.into())),
            None => Err("write claude, scripted or replay:DIR".to_owned()),
        },
    }
}

/// Returns what a beginning can be completed to.
pub(super) fn complete_answerers(begun: &OsStr) -> Vec<CompletionCandidate> {
    let known = [
        ("claude", "Claude Code"),
        ("scripted", "The workflow's replies.yaml; no model is called"),
        (REPLAY, "The cassette in a directory; no model is called"),
    ];
    let begun = begun.to_string_lossy();
    let fitting = known.into_iter().filter(|(name, _)| name.starts_with(&*begun));
    fitting.map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into()))).collect()
}

#[cfg(test)]
mod new_run_tests {
    use super::*;

    #[test]
    fn variable_without_valid_name_is_refused() {
        assert_eq!(variable("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(variable("state=x").is_err() && variable("=x").is_err() && variable("x").is_err());
    }
}

#[cfg(test)]
mod answerer_tests {
    use super::*;

    #[test]
    fn directory_follows_the_word_replay() {
        assert_eq!(answerer("scripted"), Ok(AnswererArg::Scripted));
        assert_eq!(answerer("replay:a:b"), Ok(AnswererArg::Replay("a:b".into())));
        assert!(answerer("replay:").is_err() && answerer("replay").is_err());
        assert_eq!(complete_answerers(OsStr::new("re")).len(), 1);
    }
}
