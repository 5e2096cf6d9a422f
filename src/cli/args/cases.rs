//! The arguments of `test`, and its help.
//!
//! The arguments of `test --real`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::cli::options::{ConsentArgs, mode, parse_switch};
use crate::domain::allowed_address::AllowedAddress;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::domain::time::millis;
use crate::language::cases::{CasePermission, CaseSetting};
use crate::language::manifest::{budget, model};
use crate::language::turn_options::tool_rule;

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
file of cases is invalid. A workflow that does more than prompt must be trusted: see `raymond trust`.

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

/// The options of tests with the real agent program.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Real runs")]
pub struct LiveArgs {
    /// Run the cases with Claude Code, within a budget, and print how often each case passes
    #[arg(long = "real", alias = "live", conflicts_with_all = ["update", "kill_sweep", "coverage"])]
    pub live: bool,

    /// The models to use, in turn, for states that name none [default: those of the workflows]
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = model, requires = "live")]
    pub models: Vec<ModelName>,

    /// The number of runs of each case with each model
    #[arg(long, value_name = "N", default_value_t = 1, requires = "live", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub times: u32,

    /// Maximum cost of all runs together, in US dollars
    #[arg(long, value_name = "USD", default_value = "1.00", requires = "live", value_parser = budget)]
    pub budget: Usd,

    /// Time limit of a run; the `time_limit` of a case applies to scripted runs only
    #[arg(long, value_name = "TIME", default_value = "15m", requires = "live", value_parser = millis)]
    pub time_limit: u64,

    /// The permissions of the runs.
    #[command(flatten)]
    pub permissions: LivePermissions,
}

/// The permissions that the person gives to real runs. A case only asks for them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Real runs")]
pub struct LivePermissions {
    /// Permission mode of Claude Code, as for `raymond run`
    #[arg(
        long,
        value_name = "MODE",
        value_parser = mode(),
        hide_possible_values = true,
        requires = "live",
        conflicts_with = "dangerously_skip_permissions"
    )]
    pub permission_mode: Option<String>,

    /// Allow a tool without asking in states that list it, as for `raymond run`; repeatable
    #[arg(long = "allow-tool", aliases = ["allow-tools", "allowed-tools", "allowedTools"], value_name = "RULE", requires = "live", value_parser = tool_rule)]
    pub allow_tools: Vec<String>,

    /// Allow graphs to fetch from this non-public address, as for `raymond run`; repeatable
    #[arg(long, value_name = "ADDR", requires = "live", value_parser = str::parse::<AllowedAddress>)]
    pub allow_address: Vec<AllowedAddress>,

    /// Let Claude Code do everything without asking; only for disposable machines
    #[arg(long, requires = "live")]
    pub dangerously_skip_permissions: bool,
}

impl LivePermissions {
    /// Returns the option that the person would have to give for a setting of a case; `None` if it is given, or is no
    /// permission.
    pub fn missing_for(&self, setting: &CaseSetting) -> Option<String> {
        let value = setting.value.as_deref().unwrap_or_default();
        let (option, is_given) = match setting.permission()? {
            CasePermission::PermissionMode => {
                let is_given = self.permission_mode.as_deref() == Some(value);
                ("--permission-mode", is_given || self.dangerously_skip_permissions)
            }
            CasePermission::AllowTools => {
                ("--allow-tool", self.allow_tools.iter().any(|rule| rule == value))
            }
            CasePermission::AllowAddress => {
                let own = value.parse::<AllowedAddress>();
                ("--allow-address", own.is_ok_and(|own| self.allow_address.contains(&own)))
            }
        };
        (!is_given).then(|| format!("{option} '{value}'"))
    }

    /// Returns them as options of `raymond run`.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mode = self.permission_mode.iter();
        arguments.extend(mode.map(|mode| format!("--permission-mode={mode}").into()));
        let rules = self.allow_tools.iter();
        arguments.extend(rules.map(|rule| format!("--allow-tool={rule}").into()));
        let addresses = self.allow_address.iter();
        arguments.extend(addresses.map(|address| format!("--allow-address={address}").into()));
        let all = self.dangerously_skip_permissions;
        arguments.extend(all.then(|| "--dangerously-skip-permissions".into()));
        arguments
    }
}
