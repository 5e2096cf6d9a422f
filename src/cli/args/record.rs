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

A cassette contains the prompts, answers, costs, failures, refused tools and file changes of each turn, in two files:
cassette.json and turns.jsonl. raymond replaces common forms of credentials with [scrubbed:RULE], and the summary
shows how often each rule matched. No rule finds every secret: read a cassette before you share it.
A cassette does not contain changes by commands (Bash), or changes outside the working directory.";

/// Options of `record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// The run.
    #[command(flatten)]
    pub named: NamedRunArgs,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// The directory to write the cassette to
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace an existing cassette
    #[arg(long)]
    pub force: bool,
    /// Scrub text that matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub scrub: Vec<String>,
    /// Scrub the value of this environment variable; repeatable
    #[arg(long, value_name = "NAME")]
    pub scrub_env: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn pattern(text: &str) -> Result<String, String> {
    compiled(text).map(|_| text.to_owned())
}
