//! The command line's grammar, and the texts of its help.

pub mod branch;
pub mod hosts;
pub mod readers;
pub mod runs;
pub mod workflows;

use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use self::branch::{BRANCH_HELP, BranchArgs, REWIND_HELP, RewindArgs};
use self::hosts::{HOSTS_HELP, HostsArgs, WORKER_HELP, WorkerArgs};
use self::readers::{
    COSTS_HELP, CostsArgs, LOG_HELP, LogArgs, SHOW_HELP, ShowArgs, TOP_HELP, TREE_HELP, TopArgs,
    TreeArgs,
};
use self::readers::{DIFF_HELP, DiffArgs};
use self::runs::LIST_HELP;
pub use self::runs::{
    AllRunsArgs, DirArgs, ListArgs, NamedRunArgs, OneRunArgs, RecoverArgs, RunStatusArg, StopArgs,
};
use self::workflows::{CHECK_HELP, CheckArgs, GRAPH_HELP, GraphArgs};
use self::workflows::{
    COMPLETIONS_HELP, PENDING_HELP, RECOVER_HELP, RESUME_HELP, SCHEMA_HELP, STATUS_HELP, STOP_HELP,
};
use self::workflows::{IMPORT_HELP, ImportArgs};
use self::workflows::{NEW_HELP, NewArgs};
use self::workflows::{RECORD_HELP, RecordArgs};
use self::workflows::{WORKFLOW_HELP, WorkflowCommand};
use super::candidates::{complete_runs, complete_targets};
use super::color::ColorArgs;
use super::logging::LoggingArgs;
use super::on_event::OnEventCommand;
use super::options::RunOptions;
use super::schema::SchemaArgs;
use crate::cli::args::branch::{RETRY_HELP, RetryArgs};
use crate::cli::args::hosts::{SERVE_HELP, ServeArgs, TRUST_HELP, TrustArgs};
use crate::cli::args::readers::{
    CLEAN_HELP, CleanArgs, FACTS_HELP, FactsArgs, MAN_HELP, ManArgs, SIGNAL_HELP, SignalArgs,
    WORKTREES_HELP, WorktreesArgs,
};
pub use crate::cli::args::runs::NewRunArgs;
use crate::cli::args::runs::{
    ANSWER_HELP, ATTACH_HELP, AnswerArgs, EDIT_HELP, HOLD_HELP, HoldArgs, RULES_HELP, TELL_HELP,
    TellArgs, VisitArgs, variable,
};
use crate::cli::args::workflows::{TEST_HELP, TestArgs};

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
    /// The command.
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
    #[command(after_help = NEW_HELP)]
    New(NewArgs),
    /// Run a workflow, or resume a run
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Resume a run that was paused, interrupted or killed
    #[command(after_help = RESUME_HELP)]
    Resume(ResumeArgs),
    /// Retry failed agents of a run where they failed
    #[command(after_help = RETRY_HELP)]
    Retry(RetryArgs),
    /// Start a new run from a step or record of another run
    #[command(after_help = BRANCH_HELP)]
    Branch(BranchArgs),
    /// Start a new run from an earlier point of another run, and take over its label
    #[command(after_help = REWIND_HELP)]
    Rewind(RewindArgs),
    /// Run in the background; prints the run's id
    #[command(after_help = RUN_HELP)]
    Start(RunArgs),
    /// Answer the questions of a run, or show the open ones
    #[command(after_help = ANSWER_HELP)]
    Answer(AnswerArgs),
    /// Show the tool rules that a run got from answers to tool calls
    #[command(after_help = RULES_HELP)]
    Rules(OneRunArgs),
    /// Assert a fact that programs wait for, or retract it
    #[command(after_help = SIGNAL_HELP)]
    Signal(SignalArgs),
    /// Show the current facts, or the facts that a run has seen
    #[command(after_help = FACTS_HELP)]
    Facts(FactsArgs),
    /// Show the status of a run and its agents
    #[command(after_help = STATUS_HELP)]
    Status(OneRunArgs),
    /// Show all runs, the newest first
    #[command(after_help = LIST_HELP)]
    List(ListArgs),
    /// Show everything that waits for a person, in all runs
    #[command(after_help = PENDING_HELP, alias = "waits")]
    Pending(AllRunsArgs),
    /// Show what happened in a run
    #[command(after_help = LOG_HELP)]
    Log(LogArgs),
    /// Show the agents of a run as a tree: parents and forks, states, what each waits for
    #[command(after_help = TREE_HELP)]
    Tree(TreeArgs),
    /// Show the prompts, answers and costs of an agent, step by step
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
    /// Show the costs of a run by state, model and agent
    #[command(after_help = COSTS_HELP)]
    Costs(CostsArgs),
    /// Show where two runs first differ, and compare their transitions, results, costs and files
    #[command(after_help = DIFF_HELP)]
    Diff(DiffArgs),
    /// Record the turns of a run as a cassette, to replay them without Claude Code
    #[command(after_help = RECORD_HELP)]
    Record(RecordArgs),
    /// Watch all agents of a run, full screen
    #[command(after_help = TOP_HELP)]
    Top(TopArgs),
    /// Serve a web page with all runs, live, and the questions that wait for a person
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Show the git worktrees of a run's agents, or remove unneeded ones
    #[command(after_help = WORKTREES_HELP)]
    Worktrees(WorktreesArgs),
    /// Send an agent a message, in its running turn or with its next prompt
    #[command(after_help = TELL_HELP)]
    Tell(TellArgs),
    /// Pause an agent until it is released
    #[command(after_help = HOLD_HELP)]
    Hold(HoldArgs),
    /// Release an agent that is held
    #[command(after_help = HOLD_HELP)]
    Release(HoldArgs),
    /// Edit the next prompt of an agent
    #[command(after_help = EDIT_HELP)]
    Edit(VisitArgs),
    /// Talk to an agent in Claude Code; it continues with what was said
    #[command(after_help = ATTACH_HELP)]
    Attach(VisitArgs),
    /// Stop a run; it can be resumed later
    #[command(after_help = STOP_HELP)]
    Stop(StopArgs),
    /// Remove runs that have ended
    #[command(after_help = CLEAN_HELP)]
    Clean(CleanArgs),
    /// Show the runs that can be resumed, or resume all of them
    #[command(after_help = RECOVER_HELP)]
    Recover(RecoverArgs),
    /// Serve runs of an engine on this machine
    #[command(after_help = WORKER_HELP)]
    Worker(WorkerArgs),
    /// Show the hosts of an engine; drain one, or declare it lost
    #[command(after_help = HOSTS_HELP)]
    Hosts(HostsArgs),
    /// Trust a workflow's folder to do more than prompt, or show the trusted folders
    #[command(after_help = TRUST_HELP)]
    Trust(TrustArgs),
    /// Report all errors of a workflow without running it
    #[command(after_help = CHECK_HELP, after_long_help = workflows::check_help())]
    Check(CheckArgs),
    /// Run the test cases of workflows with scripted replies
    #[command(after_help = TEST_HELP)]
    Test(TestArgs),
    /// Draw a workflow as Mermaid, DOT or SVG
    #[command(after_help = GRAPH_HELP)]
    Graph(GraphArgs),
    /// Create a folder of prompts from a workflow in one file, YAML or zip
    #[command(after_help = IMPORT_HELP)]
    Import(ImportArgs),
    /// Define, start, watch and list programs: conversations of several agents
    #[command(subcommand, after_help = WORKFLOW_HELP)]
    Workflow(WorkflowCommand),
    /// Print the plug-in protocol, or the format of a workflow file, as JSON Schema
    #[command(after_help = SCHEMA_HELP)]
    Schema(SchemaArgs),
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(after_help = MAN_HELP)]
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

/// Options of `resume`.
#[derive(Debug, Clone, Args)]
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
