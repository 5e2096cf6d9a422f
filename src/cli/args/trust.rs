//! The arguments of `raymond trust`, and its help.

use std::path::PathBuf;

use clap::Args;

use super::DirArgs;

pub(super) const TRUST_HELP: &str = "Examples:
  raymond trust workflows/release        show what it asks for, and trust it as it is
  raymond trust workflows/release --show only show what it asks for
  raymond trust --list                   what is trusted, since when and how that was said
  raymond trust --remove workflows/release

A workflow's folder needs trust for what is more than a prompt: commands, other machines, plug-ins, and
whatever widens what Claude Code may do. Trust is kept outside of the folder and holds for its files as they
are: when one of them changes that can do more than prompt, it is asked for again. Without trust a run of it
exits 77 and starts nothing; on a terminal it asks. `--trust` of `raymond run` says the same.";

/// Options of `trust`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct TrustArgs {
    /// A folder with a workflow, or a file of one
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub path: Option<PathBuf>,
    /// Show all folders that are trusted
    #[arg(long, conflicts_with = "path")]
    pub list: bool,
    /// Show what it asks for, and change nothing
    #[arg(long, requires = "path")]
    pub show: bool,
    /// Trust the folder no longer
    #[arg(long, requires = "path", conflicts_with = "show")]
    pub remove: bool,
    /// The directory of the runs, which is no part of a workflow.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
