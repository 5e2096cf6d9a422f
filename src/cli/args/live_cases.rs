//! The arguments of `test --real`.

use std::ffi::OsString;

use clap::Args;

use crate::cli::options::mode;
use crate::domain::allowed_address::AllowedAddress;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::domain::time::millis;
use crate::language::budget::budget;
use crate::language::cases::{CasePermission, CaseSetting};
use crate::language::manifest::model;
use crate::language::turn_options::tool_rule;

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
