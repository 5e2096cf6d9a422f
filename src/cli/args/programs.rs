//! The arguments of `raymond workflow`, and their help.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples::{DEFINE_HELP, WORKFLOW_LIST_HELP};
use super::{AllRunsArgs, DirArgs, OneRunArgs, RunArgs};

pub(super) const WORKFLOW_HELP: &str = "Examples:
  raymond workflow start workflows/planner-worker-review --id feature-42
  raymond signal plan/ready --key feature-42        the fact that its first state waits for
  raymond workflow watch feature-42                 its states, its requests and their answers
  raymond workflow define workflows/standing-reviewer
  raymond workflow start standing-reviewer --id nightly
  raymond workflow list

A program is a conversation of several agents as S-expressions (.lisp). `raymond check FILE` reports its errors,
`raymond graph FILE` draws it, `raymond run FILE` runs it in the foreground, and `raymond signal` asserts the
facts that it waits for.";

pub(super) const START_HELP: &str = "Examples:
  raymond workflow start workflows/planner-worker-review --id feature-42
  raymond workflow start standing-reviewer --id nightly

TARGET is a program (.lisp, .duet), a folder with workflow.lisp, or the name of a defined program.
`raymond start` starts prompts and graphs in the background.";

pub(super) const WATCH_HELP: &str =
    "Examples:
  raymond workflow watch feature-42
  raymond workflow watch --last

Shows past and new events until the run ends or stops, in the language's notation of facts: workflow/state,
workflow/log, agent-request and agent-response with their texts. `raymond log` shows the same events in words.
The exit code is that of the run. --json prints each record as a line of JSON, under the names of `raymond log`.";

/// Commands about programs.
#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Check a program and store it under its name
    #[command(after_help = DEFINE_HELP)]
    Define(DefineArgs),
    /// Start a program in the background, from a file or by its defined name; prints the run's id
    #[command(after_help = START_HELP)]
    Start(Box<RunArgs>),
    /// Show a program's states, requests and answers as they come
    #[command(after_help = WATCH_HELP)]
    Watch(OneRunArgs),
    /// Show the runs of programs
    #[command(after_help = WORKFLOW_LIST_HELP)]
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
