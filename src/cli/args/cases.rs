//! The arguments of `test`, and its help.

use std::path::PathBuf;

use clap::Args;

use super::live_cases::LiveArgs;
use crate::cli::options::{ConsentArgs, parse_switch};

pub(super) const TEST_HELP: &str = "Examples:
  raymond test                           all cases below the current directory
  raymond test workflows/tour            the cases of a workflow, in its tests/*.yaml
  raymond test flow/tests/ways.yaml --case 'budget used up'
  raymond test --junit report.xml        for CI
  raymond test flow --kill-sweep         repeat each case for each record: kill it after the record, and resume it
  raymond test flow --real --models haiku,sonnet --times 5 --budget 2

A case is a run with scripted replies: it calls no model, costs nothing, and does not need Claude Code. Each case runs
in separate directories, which are removed afterwards. Prints a line for each case. A failed case also shows the path
with the first difference and the line of the expectation. Exit code 0 if all cases pass, 1 if a case fails, 65 if a
file of cases is invalid. A workflow that asks for more than prompts must be trusted: see `raymond trust`.

--real runs the cases with Claude Code, which costs money: at most --budget. It ignores scripted replies and cassettes,
and checks the same expectations. Prints for each case and model how many runs passed, the 95 % interval of that rate,
cost and time. Exit code 1 if a run failed, 75 if runs are left out because the budget is used up.

--json prints { cases, passed, failed, coverage }; each case has workflow, file, line, name, status, duration_ms,
mismatches, error, result, cost_usd and turns.";

/// Options of `test`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct TestArgs {
    /// A workflow's folder, a folder of several, or a file of cases
    #[arg(default_value = ".", hide_default_value = true)]
    pub path: PathBuf,

    /// Run only the cases with this text in their name; repeatable
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Write a `JUnit` XML report to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Update the golden files of the cases
    #[arg(long)]
    pub update: bool,

    /// Kill each run after each of its records, resume it, and expect the same result
    #[arg(long)]
    pub kill_sweep: bool,

    /// Number of cases to run at a time [default: the number of cores; with --real 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub jobs: Option<u16>,

    /// List the states that no case enters, and the transitions that no case takes
    #[arg(long)]
    pub coverage: bool,

    /// Trust the workflows that are tested.
    #[command(flatten)]
    pub trust: TrustSwitches,

    /// The options of tests with the real agent program.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Trust in the workflows that are tested.
#[derive(Debug, Clone, Default, Args)]
pub struct TrustSwitches {
    /// Trust the workflows' folders for these runs, so that their commands are executed. Not remembered.
    /// `RAYMOND_TRUST=true` does the same
    #[arg(long, visible_alias = "trust-workflow")]
    pub trust: bool,

    /// Trust the workflows' folders, as `RAYMOND_TRUST` says
    #[arg(long, hide = true, env = "RAYMOND_TRUST", value_parser = parse_switch)]
    pub trust_by_environment: bool,
}

impl TrustSwitches {
    /// Returns them as the consent of a run.
    pub fn consent(&self) -> ConsentArgs {
        let Self { trust, trust_by_environment } = *self;
        ConsentArgs { trust, trust_by_environment, ..ConsentArgs::default() }
    }
}
