//! Arguments for Claude Code that a run was started with, as far as they bear on permissions.

use strum::VariantArray;

use crate::permission::RunPermission;
use crate::turn_options::TurnOptions;

/// A flag for Claude Code whose last value counts: a state's option replaces the value that the run was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub(super) enum ReplaceableFlag {
    Agents,
    SettingSources,
    Settings,
    Tools,
}

impl ReplaceableFlag {
    /// Returns the flags that arguments for Claude Code set.
    pub(super) fn given(arguments: &[String]) -> Vec<Self> {
        let is_given = |flag: &Self| {
            let given = |argument: &String| argument.split('=').next() == Some(flag.name());
            arguments.iter().any(given)
        };
        Self::VARIANTS.iter().copied().filter(is_given).collect()
    }

    /// Returns the flag as it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agents => "--agents",
            Self::SettingSources => "--setting-sources",
            Self::Settings => "--settings",
            Self::Tools => "--tools",
        }
    }

    /// Returns the key of a state that sets it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::SettingSources => "setting_sources",
            Self::Settings => "settings",
            Self::Tools => "tools",
        }
    }

    /// Returns whether options of a state set it.
    pub(super) fn is_set_by(self, options: &TurnOptions) -> bool {
        match self {
            Self::Agents => options.agents.is_some(),
            Self::SettingSources => options.setting_sources.is_some(),
            Self::Settings => options.settings.is_some(),
            Self::Tools => options.tools.is_some(),
        }
    }
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
