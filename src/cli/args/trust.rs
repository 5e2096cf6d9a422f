//! The arguments of `raymond trust`, and its help.

use std::path::PathBuf;

use clap::Args;

use super::DirArgs;

pub(super) const TRUST_HELP: &str = "Examples:
  raymond trust workflows/release        show what it asks for, and trust it
  raymond trust workflows/release --show show what it asks for, without trusting it
  raymond trust --list                   trusted folders, since when, and how trust was given
  raymond trust --remove workflows/release

A workflow's folder needs trust for everything beyond prompts: commands, other hosts, plug-ins, and wider permissions
of Claude Code. Trust is stored outside the folder and holds for the content of its files: raymond asks again when a
file changes that can do more than prompt. Without trust, a run asks on a terminal. Without a terminal, it exits 77 and
starts nothing. `raymond run --trust` gives the same trust.";

/// Options of `trust`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct TrustArgs {
    /// A folder with a workflow, or a file of a workflow
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub path: Option<PathBuf>,
    /// Show all trusted folders
    #[arg(long, conflicts_with = "path")]
    pub list: bool,
    /// Show what the workflow asks for, and change nothing
    #[arg(long, requires = "path")]
    pub show: bool,
    /// Stop trusting the folder
    #[arg(long, requires = "path", conflicts_with = "show")]
    pub remove: bool,
    /// The directory of the runs, which is no part of a workflow.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
