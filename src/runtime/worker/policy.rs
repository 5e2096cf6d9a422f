//! What a host allows: its own person decides it, whatever a run was started with.

use crate::domain::permission::RunPermission;
use crate::domain::settings::{AnswererKind, Settings};

/// The permissions that a host gives to runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own")]
pub struct HostPolicy {
    /// Commands, scripts and requests of workflows may run.
    pub commands: bool,
    /// Claude Code may skip all permission checks.
    pub skip_permissions: bool,
    /// The starter of a run may pass arguments of its own to Claude Code.
    pub claude_args: bool,
    /// The plug-ins of runs that are supervised here may run.
    pub plugins: bool,
}

impl HostPolicy {
    /// Returns why a run with these settings may not be supervised here; `None` if it may.
    #[must_use]
    pub fn refusal_to_supervise(&self, settings: &Settings) -> Option<String> {
        (!settings.plugins.is_empty() && !self.plugins).then(|| {
            "it has plug-ins that are programs, which this host does not allow; start its worker with --allow plugins"
                .to_owned()
        })
    }

    /// Returns why a run with these settings may not work here; `None` if it may.
    #[must_use]
    pub fn refusal(&self, settings: &Settings) -> Option<String> {
        let is_claude = settings.answerer == AnswererKind::Claude;
        let needed = [
            (
                is_claude && skips_checks(settings) && !self.skip_permissions,
                "it skips the permission checks of Claude Code",
                "skip-permissions",
            ),
            (
                settings.consent.trusts_workflow && !self.commands,
                "its workflow may run commands, scripts and requests",
                "commands",
            ),
            (
                is_claude && !settings.claude_args.is_empty() && !self.claude_args,
                "it passes arguments of its own to Claude Code",
                "claude-args",
            ),
        ];
        let (_, why, option) = needed.into_iter().find(|(is_missing, ..)| *is_missing)?;
        Some(format!(
            "{why}, which this host does not allow; start its worker with --allow {option}"
        ))
    }
}

/// Returns whether Claude Code may do everything without a check.
fn skips_checks(settings: &Settings) -> bool {
    let skips = |permission: &RunPermission| match permission {
        RunPermission::SkipAll => true,
        RunPermission::Mode(mode) => mode == "bypassPermissions",
    };
    skips(&settings.permission) || settings.consent.widest_mode.as_ref().is_some_and(skips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_refuses_what_its_own_person_did_not_allow() {
        let none = HostPolicy::default();
        assert_eq!(none.refusal(&Settings::default()), None);
        let mut trusting = Settings::default();
        trusting.consent.trusts_workflow = true;
        let why = none.refusal(&trusting).expect("refused");
        assert!(why.contains("may run commands") && why.ends_with("--allow commands"), "{why}");
        assert_eq!(HostPolicy { commands: true, ..none }.refusal(&trusting), None);
        let bypass = Settings { permission: RunPermission::SkipAll, ..Settings::default() };
        let why = none.refusal(&bypass).expect("refused");
        assert!(why.ends_with("--allow skip-permissions"), "{why}");
        let arguments = Settings { claude_args: vec!["--x".into()], ..Settings::default() };
        assert!(none.refusal(&arguments).is_some());
        let scripted = Settings { answerer: AnswererKind::Scripted, ..arguments };
        assert_eq!(none.refusal(&scripted), None);
    }
}
