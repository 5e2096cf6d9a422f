//! Arguments for Claude Code that a run was started with, as far as they bear on permissions.

use crate::domain::settings::RunPermission;

/// Flags for Claude Code of which the last counts, with the keys that set them.
const REPLACEABLE_FLAGS: [(&str, &str); 4] = [
    ("--agents", "agents"),
    ("--setting-sources", "setting_sources"),
    ("--settings", "settings"),
    ("--tools", "tools"),
];

/// Returns those of the flags that arguments for Claude Code set.
pub(super) fn replaceable_flags(arguments: &[String]) -> Vec<(&'static str, &'static str)> {
    let is_given = |flag: &str| {
        let given = |argument: &String| argument.split('=').next() == Some(flag);
        arguments.iter().any(given)
    };
    REPLACEABLE_FLAGS.into_iter().filter(|(flag, _)| is_given(flag)).collect()
}

/// Returns the permission mode that arguments for Claude Code set, if they do.
pub(super) fn mode_among(arguments: &[String]) -> Option<RunPermission> {
    let mut mode = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--dangerously-skip-permissions" {
            return Some(RunPermission::SkipAll);
        }
        if argument == "--permission-mode" {
            mode = rest.next().cloned();
        } else if let Some(name) = argument.strip_prefix("--permission-mode=") {
            mode = Some(name.to_owned());
        }
    }
    mode.map(RunPermission::Mode)
}
