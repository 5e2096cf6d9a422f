//! The arguments of `raymond workflow`, and their help.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{AllRunsArgs, DirArgs, OneRunArgs, RunArgs};

pub(super) const WORKFLOW_HELP: &str = "Examples:
  raymond workflow start workflows/planner-worker-review --label feature-42
  raymond signal plan/ready --key feature-42        what its first state waits for
  raymond workflow watch feature-42                 its states, its requests and their answers
  raymond workflow define workflows/standing-reviewer
  raymond workflow start standing-reviewer --label nightly
  raymond workflow list

A program is a conversation of several agents as S-expressions (.lisp); `raymond check FILE` says all that
is wrong with one, `raymond graph FILE` draws it, `raymond run FILE` runs it in the foreground. What its
waits wait for is asserted with `raymond signal`.";

pub(super) const WATCH_HELP: &str =
    "Shows what has happened and what happens, until the run ends or holds still: workflow/state,
workflow/log, agent-request and agent-response with their texts. Its exit code is that of the run.
--json prints the records as the journal has them, a line each.";

/// Commands about programs.
#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Check a program and keep it as it is now, to be started by its name
    Define(DefineArgs),
    /// Start a program in the background: a file, or the name of one that was defined; prints the run's id
    Start(Box<RunArgs>),
    /// Show a program's states, requests and answers as they come
    #[command(after_help = WATCH_HELP)]
    Watch(OneRunArgs),
    /// Show the programs that were defined, and the runs of programs
    List(AllRunsArgs),
}

/// Options of `workflow define`.
#[derive(Debug, Clone, Args)]
pub struct DefineArgs {
    /// The program's file
    pub file: PathBuf,
    /// The directory of the definitions.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
