//! The arguments of `raymond import`, and its help.

use std::path::PathBuf;

use clap::Args;

pub(super) const IMPORT_HELP: &str = "Examples:
  raymond import review.yaml              creates the folder review
  raymond import review.zip -o flows/review

YAML has `states`, which maps each name to the text of a prompt, or to a mapping with `prompt` and frontmatter
keys (allowed_transitions, model, effort, …). The other keys are those of raymond.yaml. raymond warns about unknown
keys and ignores them. A zip contains a folder of prompts. The target folder must not exist: nothing is overwritten.
A zip with links, with paths outside the folder, or with more than 64 MiB is refused (exit 65), and so is invalid YAML.";

/// Options of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// A workflow in one file: YAML with `states`, or a zip
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder to create [default: the file name without its extension]
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}
