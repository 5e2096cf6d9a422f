//! The arguments of the commands about facts, and their help.

use clap::Args;

use super::DirArgs;
use crate::domain::id::RunId;

pub(super) const SIGNAL_HELP: &str = "Examples:
  raymond signal plan/ready --key feature-42     for `(signal plan/ready :key @workflow-id)` of the run feature-42
  raymond signal plan/summary --key feature-42 --value - < summary.md
                                         with a payload, from stdin
  raymond signal plan/ready --key feature-42 --retract
                                         it holds no longer

A fact holds from when it is asserted until it is retracted or a program takes it (`:consume`), whether a
run is up or not: who begins to wait later sees it. It is kept when this command returns. One label and key
have one value, the last; what is asserted already with the same value stays as it is.

Programs mostly use their run's id as the key, and the id is what --label names. `(signal LABEL)` without
:key is satisfied by any key, also by none. Inside an agent's turn the directory is that of its run, and the
agent is named as the source.

--json prints { label, key, changed, fact }: whether anything is different now, and the fact, or null.";

pub(super) const FACTS_HELP: &str = "Examples:
  raymond facts                          all that holds, with who asserted it, the values shortened
  raymond facts RUN                      what a run has seen of the facts its program looks at
  raymond facts --label plan/ready       only those of a label
  raymond facts --json | jq -r '.[] | select(.label == \"plan/summary\") | .value'

--json prints an array of { label, key, value, seq, source }; a later assertion has a higher seq.";

/// Options of `signal`.
#[derive(Debug, Clone, Args)]
pub struct SignalArgs {
    /// What it is about, a word such as plan/ready
    pub label: String,

    /// Whom it concerns, mostly a run's id [default: the empty key]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub key: String,

    /// Its payload; `-` reads it from stdin [default: the empty text]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "retract")]
    pub value: Option<String>,

    /// Let it hold no longer
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
    /// The id of a run: what it has seen, instead of what holds now
    #[arg(value_name = "RUN", value_parser = RunId::parse)]
    pub run: Option<RunId>,

    /// Only the facts of this label
    #[arg(long)]
    pub label: Option<String>,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
