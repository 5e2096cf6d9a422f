//! The arguments of `raymond new`, and its help.

use std::path::PathBuf;

use clap::Args;

pub(super) const NEW_HELP: &str = "Examples:
  raymond new haiku                        a folder with two prompts, scripted replies and tests
  raymond new review --from review-folder  a copy of another sample

The folder must not exist: nothing is overwritten. Without NAME, raymond asks on a terminal.";

/// Options of `new`.
#[derive(Debug, Clone, Args)]
pub struct NewArgs {
    /// The folder to create
    #[arg(value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The sample to copy, such as tour, review-folder or improve [default: haiku]
    #[arg(long, value_name = "SAMPLE")]
    pub from: Option<String>,
}
