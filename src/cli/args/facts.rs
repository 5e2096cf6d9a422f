//! The arguments of the commands about facts, and their help.

use clap::Args;

use super::DirArgs;
use crate::domain::id::RunId;

pub(super) const SIGNAL_HELP: &str = "Examples:
  raymond signal plan/ready --key feature-42     satisfies `(signal plan/ready :key @workflow-id)` in the run feature-42
  raymond signal plan/summary --key feature-42 --value - < summary.md
                                         with a payload, from stdin
  raymond signal job --value one --append        one of several values, taken in order
  raymond signal plan/ready --key feature-42 --retract
                                         retract the fact

A fact holds from its assertion until it is retracted or a program takes it (`:consume`), even if no run is live: a
program that begins to wait later sees it. It is stored when this command returns. A label and key have one value, the
last. Asserting the same value again changes nothing. With --append the value is queued behind the values that no
program has taken yet: `:consume` takes the oldest, and then the next one holds.

Programs usually use their run's id, which --id sets, as the key. `(signal LABEL)` without :key accepts any key,
even the empty one. raymond warns if the value replaces a value that no program has taken, and if no live or defined
program reads the label. Inside an agent's turn, the directory is that of its run, and the agent is the source. With
--engine, all runs of the engine on all machines share the fact, and agents cannot change it.

--json prints { label, key, changed, fact, replaced }: whether anything changed, the current fact, and the replaced
fact or null; with --append also `before`, the number of values before this one.";

pub(super) const FACTS_HELP: &str = "Examples:
  raymond facts                          all current facts with their sources, values shortened
  raymond facts RUN                      the facts that a run's program has seen
  raymond facts --label plan/ready       only the facts with this label
  raymond facts --prune --older-than 168h
                                         retract the facts asserted more than a week ago
  raymond facts RUN --prune              retract the facts that have this run as their key, or that it asserted
  raymond facts --json | jq -r '.[] | select(.label == \"plan/summary\") | .value'

--json prints an array of { label, key, value, seq, at, source }; a later assertion has a higher seq. With
--prune, the array has the retracted facts.";

/// Options of `signal`.
#[derive(Debug, Clone, Args)]
pub struct SignalArgs {
    /// The label of the fact, such as plan/ready
    pub label: String,

    /// The key of the fact, usually a run's id [default: the empty key]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub key: String,

    /// The value of the fact; `-` reads it from stdin [default: the empty text]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "retract")]
    pub value: Option<String>,

    /// Queue the value behind values that no program has taken yet, instead of replacing them
    #[arg(long, conflicts_with = "retract")]
    pub append: bool,

    /// Retract the fact
    #[arg(long)]
    pub retract: bool,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `facts`.
#[derive(Debug, Clone, Args)]
pub struct FactsArgs {
    /// The id of a run, or the beginning of it, to show the facts that the run has seen
    #[arg(value_name = "RUN", value_parser = RunId::parse)]
    pub run: Option<RunId>,

    /// Use the most recently started run
    #[arg(long, conflicts_with = "run")]
    pub last: bool,

    /// Only the facts with this label
    #[arg(long)]
    pub label: Option<String>,

    /// Retract the facts that match the given label, run and age
    #[arg(long)]
    pub prune: bool,

    /// With --prune: only the facts asserted longer ago than this, such as 168h
    #[arg(long, value_name = "DURATION", requires = "prune")]
    pub older_than: Option<String>,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
