//! The command line's grammar, and the texts of its help.

pub mod branch;
pub mod hosts;
pub mod readers;
pub mod runs;
pub mod workflows;

use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use self::branch::{BranchArgs, RetryArgs, RewindArgs};
use self::hosts::{HostsArgs, ServeArgs, TrustArgs, WorkerArgs};
use self::readers::{
    CleanArgs, CostsArgs, DiffArgs, FactsArgs, LogArgs, ManArgs, ShowArgs, SignalArgs, TopArgs,
    TreeArgs, WorktreesArgs,
};
use self::runs::{
    ATTACH_HELP, AnswerArgs, EDIT_HELP, HoldArgs, RULES_HELP, TellArgs, VisitArgs, variable,
};
pub use self::runs::{
    AllRunsArgs, DirArgs, ListArgs, NamedRunArgs, NewRunArgs, RecoverArgs, SingleRunArgs, StopArgs,
};
use self::workflows::{
    COMPLETIONS_HELP, CheckArgs, GraphArgs, ImportArgs, NewArgs, PENDING_HELP, RecordArgs,
    STATUS_HELP, TestArgs, WORKFLOW_HELP, WorkflowCommand,
};
use super::candidates::{complete_runs, complete_targets};
use super::color::ColorArgs;
use super::logging::LoggingArgs;
use super::on_event::OnEventCommand;
use super::options::RunOptions;
use super::schema::SchemaArgs;

/// Run workflows of Claude Code agents, durably and supervised.
#[derive(Debug, Parser)]
#[command(
    name = "raymond",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "A path alone means `run`: raymond workflows/tour\n\n\
        Exit codes: 0 all agents finished, 1 an agent failed (with --strict also: a tool was refused, or a join kept a\n\
        failure), 2 the run waits for an answer, a signal or a person, 64 wrong usage, 65 invalid workflow or journal,\n\
        69 Claude Code (or a required plug-in) cannot be started or is not logged in, or an engine cannot be used,\n\
        73 locked by another raymond, 74 input/output error, 75 paused (budget, usage limit, --max-agents, a plug-in),\n\
        77 not trusted, 130 interrupted. After 2, 69, 74, 75 and 130, `raymond resume RUN` resumes the run."
)]
pub struct Cli {
    /// The subcommand that was given.
    #[command(subcommand)]
    pub command: CliCommand,

    /// The option for colours.
    #[command(flatten)]
    pub color: ColorArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Create a folder with a workflow to start from
    New(NewArgs),
    /// Run a workflow, or resume a run
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Resume a run that was paused, interrupted or killed
    Resume(ResumeArgs),
    /// Retry failed agents of a run where they failed
    Retry(RetryArgs),
    /// Start a new run from a step or record of another run
    Branch(BranchArgs),
    /// Start a new run from an earlier point of another run, and take over its label
    Rewind(RewindArgs),
    /// Run in the background; prints the run's id
    #[command(after_help = RUN_HELP)]
    Start(RunArgs),
    /// Answer the questions of a run, or show the open ones
    Answer(AnswerArgs),
    /// Show the tool rules that a run got from answers to tool calls
    #[command(after_help = RULES_HELP)]
    Rules(SingleRunArgs),
    /// Assert a fact that programs wait for, or retract it
    Signal(SignalArgs),
    /// Show the current facts, or the facts that a run has seen
    Facts(FactsArgs),
    /// Show the status of a run and its agents
    #[command(after_help = STATUS_HELP)]
    Status(SingleRunArgs),
    /// Show all runs, the newest first
    List(ListArgs),
    /// Show everything that waits for a person, in all runs
    #[command(after_help = PENDING_HELP, alias = "waits")]
    Pending(AllRunsArgs),
    /// Show what happened in a run
    Log(LogArgs),
    /// Show the agents of a run as a tree: parents and forks, states, what each waits for
    Tree(TreeArgs),
    /// Show the prompts, answers and costs of an agent, step by step
    Show(ShowArgs),
    /// Show the costs of a run by state, model and agent
    Costs(CostsArgs),
    /// Show where two runs first differ, and compare their transitions, results, costs and files
    Diff(DiffArgs),
    /// Record the turns of a run as a cassette, to replay them without Claude Code
    Record(RecordArgs),
    /// Watch all agents of a run, full screen
    Top(TopArgs),
    /// Serve a web page with all runs, live, and the questions that wait for a person
    Serve(ServeArgs),
    /// Show the git worktrees of a run's agents, or remove unneeded ones
    Worktrees(WorktreesArgs),
    /// Send an agent a message, in its running turn or with its next prompt
    Tell(TellArgs),
    /// Pause an agent until it is released
    Hold(HoldArgs),
    /// Release an agent that is held
    Release(HoldArgs),
    /// Edit the next prompt of an agent
    #[command(after_help = EDIT_HELP)]
    Edit(VisitArgs),
    /// Talk to an agent in Claude Code; it continues with what was said
    #[command(after_help = ATTACH_HELP)]
    Attach(VisitArgs),
    /// Stop a run; it can be resumed later
    Stop(StopArgs),
    /// Remove runs that have ended
    Clean(CleanArgs),
    /// Show the runs that can be resumed, or resume all of them
    Recover(RecoverArgs),
    /// Serve runs of an engine on this machine
    Worker(WorkerArgs),
    /// Show the hosts of an engine; drain one, or declare it lost
    Hosts(HostsArgs),
    /// Trust a workflow's folder to do more than prompt, or show the trusted folders
    Trust(TrustArgs),
    /// Report all errors of a workflow without running it
    Check(CheckArgs),
    /// Run the test cases of workflows with scripted replies
    Test(TestArgs),
    /// Draw a workflow as Mermaid, DOT or SVG
    Graph(GraphArgs),
    /// Create a folder of prompts from a workflow in one file, YAML or zip
    Import(ImportArgs),
    /// Define, start, watch and list programs: conversations of several agents
    #[command(subcommand, after_help = WORKFLOW_HELP)]
    Workflow(WorkflowCommand),
    /// Print the plug-in protocol, or the format of a workflow file, as JSON Schema
    Schema(SchemaArgs),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell that reads the script.
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    Man(ManArgs),
}

impl CliCommand {
    /// Returns the logging options and the `--on-event` command of the commands that have them.
    pub fn reports(&self) -> Option<(&LoggingArgs, Option<&OnEventCommand>)> {
        let (logging, on_event) = match self {
            Self::Run(RunArgs { options, .. })
            | Self::Start(RunArgs { options, .. })
            | Self::Resume(ResumeArgs { options, .. })
            | Self::Retry(RetryArgs { options, .. })
            | Self::Branch(BranchArgs { options, .. })
            | Self::Rewind(RewindArgs { options, .. }) => (&options.logging, &options.on_event),
            Self::Workflow(WorkflowCommand::Start(args)) => {
                (&args.options.logging, &args.options.on_event)
            }
            Self::Recover(args) => (&args.logging, &args.on_event),
            _ => return None,
        };
        Some((logging, on_event.as_ref()))
    }
}

const RUN_HELP: &str = "Examples:
  raymond run workflows/tour --agent scripted      try a workflow without calling a model
  raymond run workflows/classify --input \"I like it\" --model haiku
  raymond run workflows/review-folder --budget 2 --max-procs 4
  raymond run dispatch-20260115-143022-1a2b         resume a run
  raymond run workflows/tour -- --effort low        pass arguments to Claude Code
  raymond run flow --on-event \"sh -c 'notify-send \\\"\\$RAYMOND_MESSAGE\\\"'\"

A run that only waits for answers exits with 2, unless it can ask on a terminal, or has --on-wait stay.
Its last line on stdout is then { run, questions }, as printed by `raymond answer RUN --json`, but not with -q.

Events of --on-event: paused, question (a question waits for an answer), approval (a tool call needs approval),
signal (a program waits for a signal), agent_parked (an agent waits for a person), agent_failed, limit_reached,
ended, and broken (the run could not be recorded any longer). The command
gets RAYMOND_EVENT, RAYMOND_RUN, RAYMOND_DIR and RAYMOND_MESSAGE in its environment, and the whole event with
its record as a line of JSON on stdin. After 10s raymond ends it and everything it has started. Its environment
contains what programs need (PATH, HOME, LANG and the like) and the variables that `env` in raymond.yaml names.";

/// Options of `run`, `start` and `resume`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// A folder with START.md, START.sh, workflow.yaml or workflow.lisp, such a file, or the id of a run to resume
    #[arg(add = ArgValueCompleter::new(complete_targets))]
    pub target: String,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// Show what a start would do, and start nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The options of a new run.
    #[command(flatten)]
    pub new_run: NewRunArgs,

    /// The options that each resume may change.
    #[command(flatten)]
    pub options: RunOptions,
}

const RESUME_HELP: &str = "Examples:
  raymond resume tour-20260115-143022-1a2b
  raymond resume tour                    the only run whose id begins with tour
  raymond resume --last --budget 5       the most recently started run, with a larger budget
  raymond resume RUN --migrate           with the workflow's files as they are now";

/// Options of `resume`.
#[derive(Debug, Clone, Args)]
#[command(after_help = RESUME_HELP)]
pub struct ResumeArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete_runs))]
    pub run: Option<String>,

    /// Use the most recently started run
    #[arg(long, conflicts_with = "run")]
    pub last: bool,

    /// Leave the terminal's session before anything else
    #[arg(long, hide = true)]
    pub detached: bool,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// The options that each resume may change.
    #[command(flatten)]
    pub options: RunOptions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_definition_passes_debug_assert() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
