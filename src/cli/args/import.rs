//! The arguments of `raymond import`, and its help.

use std::path::PathBuf;

use clap::Args;

pub(super) const IMPORT_HELP: &str = "Examples:
  raymond import review.yaml              makes the folder review
  raymond import review.zip -o flows/review

YAML has `states`, which maps each name to the text of a prompt, or to a mapping with `prompt` and keys of its head
(allowed_transitions, model, effort, …); its other keys are those of raymond.yaml. Keys without a meaning here are
left out, with a warning. A zip holds a folder of prompts as it is. The folder is new: nothing is ever overwritten.
A zip with links, with paths that lead out, or with more than 64 MiB is refused (exit 65), and so is bad YAML.";

/// Options of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// A workflow in one file: YAML with `states`, or a zip
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder to make [default: the name of the file without its ending]
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}
