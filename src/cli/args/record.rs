//! The arguments of `record`, and its help.

use std::path::PathBuf;

use clap::Args;

use super::{DirArgs, NamedRunArgs};
use crate::language::scrub::compiled;

pub(super) const RECORD_HELP: &str = "Examples:
  raymond record RUN -o cassettes/tour
  raymond run workflows/tour --agent replay:cassettes/tour
  raymond record RUN -o DIR --scrub 'acme-[0-9]+' --scrub-env DEPLOY_TOKEN
  raymond record RUN -o DIR --json | jq .scrubbed

A cassette has the prompts, answers, costs, failures, refused tools and changes of files of each turn, and two
files: cassette.json and turns.jsonl. Usual forms of credentials are replaced by [scrubbed:RULE]; the summary
tells how often each rule hit. No rule finds every secret: read a cassette before you give it away.
Changes by commands (Bash) are not in it, nor those of files outside of the working directory.";

/// Options of `record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// The directory of the cassette
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace the cassette that is there
    #[arg(long)]
    pub force: bool,
    /// Replace what matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub scrub: Vec<String>,
    /// Replace the value of this environment variable; repeatable
    #[arg(long, value_name = "NAME")]
    pub scrub_env: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn pattern(text: &str) -> Result<String, String> {
    compiled(text).map(|_| text.to_owned())
}
