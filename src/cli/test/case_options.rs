//! The options of `raymond run` for the settings of a case.

use std::ffi::OsString;

use clap::CommandFactory;

use crate::cli::args::Cli;
use crate::language::cases::CaseSetting;

/// Returns the options of `raymond run` for the settings of a case.
pub(super) fn options(settings: &[CaseSetting]) -> Vec<OsString> {
    settings.iter().map(option).collect()
}

fn option(CaseSetting { name, value, .. }: &CaseSetting) -> OsString {
    let name = name.replace('_', "-");
    match value {
        Some(value) => format!("--{name}={value}").into(),
        None => format!("--{name}").into(),
    }
}

/// Returns the reason why `raymond run` would refuse an option.
pub(super) fn refused_option(setting: &CaseSetting) -> Option<String> {
    let arguments = ["raymond".into(), "run".into(), "flow".into(), option(setting)];
    let error = Cli::command().try_get_matches_from(arguments).err()?;
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    Some(first.trim_start_matches("error: ").to_owned())
}
