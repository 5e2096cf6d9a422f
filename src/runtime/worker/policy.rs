//! The permissions that a host gives to runs: its owner decides them, regardless of what a run was started with.

use crate::domain::activity::Activity;
use crate::domain::host_work::{HostWork, SentActivity};
use crate::domain::privilege::{RunPermission, StarterConsent};
use crate::domain::sealed_terms::is_below;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn_options::{PermissionMode, TurnOptions};
use crate::domain::widening::PermissionCeiling;

/// The name of Claude Code's program.
pub(super) const CLAUDE: &str = "claude";

/// The permissions that a host gives to runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate permission")]
pub struct HostPolicy {
    /// Commands, scripts and requests of workflows may run, and what their starter trusts them with.
    pub commands: bool,
    /// Claude Code may skip all permission checks.
    pub skip_permissions: bool,
    /// The starter of a run may pass its own arguments to Claude Code.
    pub claude_args: bool,
    /// Runs may exchange work by a git repository that their starter names.
    pub git_exchange: bool,
    /// The plug-ins of runs that are supervised here may run.
    pub plugins: bool,
    /// The starter of a run may name another program instead of `claude`.
    pub program: bool,
}

/// A reason to refuse, if it applies, and the option that allows it.
type Need = (bool, &'static str, &'static str);

impl HostPolicy {
    /// Returns why a run with these settings may not be supervised here; `None` if it may.
    pub fn refusal_to_supervise(&self, settings: &Settings) -> Option<String> {
        let plugins = refused_by([(
            !settings.plugins.is_empty() && !self.plugins,
            "it has plug-ins that are programs",
            "plugins",
        )]);
        // What its programs start runs on the machine that supervises it, with the same settings.
        plugins.or_else(|| self.refusal(settings))
    }

    /// Returns why a run with these settings may not work here; `None` if it may.
    pub fn refusal(&self, settings: &Settings) -> Option<String> {
        let is_claude = settings.answerer == AnswererKind::Claude;
        let consent = &settings.consent;
        let of_terms = refused_by([
            (
                is_claude && settings.claude != CLAUDE && !self.program,
                "it names another program than `claude`",
                "program",
            ),
            (
                is_claude && skips_checks(settings) && !self.skip_permissions,
                "its permission mode lets more run unasked than acceptEdits",
                "skip-permissions",
            ),
            (
                consent.trusts_workflow && !self.commands,
                "its workflow may run commands, scripts and requests",
                "commands",
            ),
            (
                is_claude && consent.rules().next().is_some() && !self.commands,
                "it lets tools run unasked (--allow-tool)",
                "commands",
            ),
            (
                is_claude && !settings.claude_args.is_empty() && !self.claude_args,
                "it passes additional arguments to Claude Code",
                "claude-args",
            ),
            (
                settings.git_exchange.is_some() && !self.git_exchange,
                "it exchanges work by a git repository",
                "git-exchange",
            ),
        ]);
        // They hold for processes that are started ahead of turns, and their variables for git and commands, too.
        of_terms.or_else(|| self.refusal_of_turn(&settings.options))
    }

    /// Returns why a request of a run with these settings is not carried out here, or `None` if it is. Anyone who can
    /// write to the engine can make requests that the run's own terms do not allow.
    pub fn refusal_of(&self, work: &HostWork, settings: &Settings) -> Option<String> {
        match work {
            HostWork::Turn { input } => {
                let is_claude = settings.answerer == AnswererKind::Claude;
                is_claude.then(|| self.refusal_of_turn(&input.options)).flatten()
            }
            HostWork::Perform { activity, .. } => refused_by([(
                needs_commands(activity) && !self.commands,
                "it runs a command, or reaches beyond the workspace",
                "commands",
            )]),
            HostWork::Text { .. }
            | HostWork::Directory { .. }
            | HostWork::Commit { .. }
            | HostWork::Worktree { .. }
            | HostWork::Snapshot { .. }
            | HostWork::Exchange { .. }
            | HostWork::Stop { .. }
            | HostWork::KeepCommands { .. }
            | HostWork::StopAll { .. }
            | HostWork::End
            | HostWork::Transcript { .. }
            | HostWork::Stored { .. } => None,
        }
    }

    fn refusal_of_turn(self, options: &TurnOptions) -> Option<String> {
        let mode = options.permission_mode;
        let beyond = refused_by([(
            mode.is_some_and(|mode| mode.rank() > PermissionMode::AcceptEdits.rank())
                && !self.skip_permissions,
            "its permission mode lets more run unasked than acceptEdits",
            "skip-permissions",
        )]);
        let widening = || {
            let widenings = self.ceiling().widenings(options);
            widenings.into_iter().next().map(|widening| {
                let part = widening.part.map_or_else(String::new, |part| format!(" ({part})"));
                format!(
                    "its `{}`{part} goes beyond the working directory, which this host does not allow; start its worker with --allow commands",
                    widening.key
                )
            })
        };
        let outside = || {
            let file = options.system_prompt_file.as_deref()?;
            (!is_below(file)).then(|| {
                format!("its `system_prompt_file` ({file}) is not a file of the workflow; name one below it")
            })
        };
        beyond.or_else(widening).or_else(outside)
    }

    /// Returns the permissions that no turn may exceed here.
    fn ceiling(self) -> PermissionCeiling {
        let mode =
            if self.skip_permissions { RunPermission::SkipAll } else { RunPermission::default() };
        let consent =
            StarterConsent { trusts_workflow: self.commands, ..StarterConsent::default() };
        PermissionCeiling::of(&Settings { permission: mode, consent, ..Settings::default() })
    }
}

/// Returns the first reason that applies.
fn refused_by<const MANY: usize>(needs: [Need; MANY]) -> Option<String> {
    let (_, why, option) = needs.into_iter().find(|(applies, ..)| *applies)?;
    Some(format!("{why}, which this host does not allow; start its worker with --allow {option}"))
}

fn needs_commands(activity: &SentActivity) -> bool {
    match activity {
        SentActivity::Operation(operation) => operation.privilege().is_some(),
        SentActivity::Other(activity) => match activity {
            Activity::Operation(operation) => operation.privilege().is_some(),
            Activity::Command(_) | Activity::Commands(_) | Activity::StartWorkflow(_) => true,
            Activity::Bases { .. }
            | Activity::Changes { .. }
            | Activity::Assert { .. }
            | Activity::Retract { .. }
            | Activity::Claim { .. } => false,
        },
    }
}

/// Returns whether Claude Code may do more without a check than edit the files of its directory.
fn skips_checks(settings: &Settings) -> bool {
    let skips = |permission: &RunPermission| match permission {
        RunPermission::SkipAll => true,
        // A mode that is not known may allow anything.
        RunPermission::Mode(name) => PermissionMode::from_name(name)
            .is_none_or(|mode| mode.rank() > PermissionMode::AcceptEdits.rank()),
    };
    skips(&settings.permission) || settings.consent.widest_mode.as_ref().is_some_and(skips)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claude() -> Settings {
        Settings { claude: CLAUDE.to_owned(), ..Settings::default() }
    }

    #[test]
    fn host_refuses_what_its_person_did_not_allow() {
        let none = HostPolicy::default();
        assert_eq!(none.refusal(&claude()), None);
        let mut trusting = claude();
        trusting.consent.trusts_workflow = true;
        let why = none.refusal(&trusting).expect("refused");
        assert!(why.contains("may run commands") && why.ends_with("--allow commands"), "{why}");
        assert_eq!(HostPolicy { commands: true, ..none }.refusal(&trusting), None);
        let mut tools = claude();
        tools.consent.tools = vec!["Bash".to_owned()];
        assert!(none.refusal(&tools).expect("refused").ends_with("--allow commands"));
        for mode in [RunPermission::SkipAll, RunPermission::Mode("auto".to_owned())] {
            let why = none.refusal(&Settings { permission: mode, ..claude() }).expect("refused");
            assert!(why.ends_with("--allow skip-permissions"), "{why}");
        }
        let arguments = Settings { claude_args: vec!["--x".into()], ..claude() };
        assert!(none.refusal(&arguments).is_some());
        let program = Settings { claude: "/bin/sh".to_owned(), ..claude() };
        assert!(none.refusal(&program).expect("refused").ends_with("--allow program"));
        let scripted = Settings { answerer: AnswererKind::Scripted, ..arguments };
        assert_eq!(none.refusal(&scripted), None);
    }

    #[test]
    fn request_beyond_the_terms_of_its_run_is_refused_too() {
        let none = HostPolicy::default();
        let all = HostPolicy { commands: true, skip_permissions: true, ..none };
        let turn = |policy: HostPolicy, options: serde_json::Value| {
            policy.refusal_of_turn(&serde_json::from_value(options).expect("options"))
        };
        let bypass = json!({ "permission_mode": "bypassPermissions" });
        let why = turn(none, bypass.clone()).expect("refused");
        assert!(why.ends_with("--allow skip-permissions"), "{why}");
        assert_eq!(turn(all, bypass), None);
        let shell = json!({ "allowed_tools": ["Bash"] });
        let why = turn(none, shell.clone()).expect("refused");
        assert!(why.contains("`allowed_tools` (Bash)"), "{why}");
        assert!(why.ends_with("--allow commands"), "{why}");
        assert_eq!(turn(HostPolicy { commands: true, ..none }, shell), None);
        assert_eq!(turn(none, json!({ "permission_mode": "plan", "effort": "high" })), None);
        for file in ["/etc/hostname", "../key", "a/../../key"] {
            let why = turn(all, json!({ "system_prompt_file": file })).expect("refused");
            assert!(why.contains(file) && why.contains("below it"), "{why}");
        }
        assert_eq!(turn(none, json!({ "system_prompt_file": "roles/reviewer.md" })), None);
        let options =
            serde_json::from_value(json!({ "env": { "GIT_SSH_COMMAND": { "set": "x" } } }));
        let ahead = Settings { options: options.expect("options"), ..claude() };
        for settings in [ahead.clone(), Settings { answerer: AnswererKind::Scripted, ..ahead }] {
            let why = none.refusal(&settings).expect("refused");
            assert!(why.contains("GIT_SSH_COMMAND"), "{why}");
            assert_eq!(none.refusal_to_supervise(&settings), Some(why));
        }
        let perform = |activity: serde_json::Value| -> HostWork {
            let step = json!({ "agent": "main", "step": 1, "turn": 0 });
            let work = json!({ "work": "perform", "step": step, "working_dir": {}, "activity": activity, "again": false });
            serde_json::from_value(work).expect("a request")
        };
        let operation =
            |value: serde_json::Value| perform(json!({ "kind": "operation", "what": value }));
        let command = operation(json!({ "type": "bash_exec", "command": "true" }));
        let read = operation(json!({ "type": "read_file", "path": "a" }));
        let why = none.refusal_of(&command, &claude()).expect("refused");
        assert!(why.ends_with("--allow commands"), "{why}");
        assert_eq!(none.refusal_of(&read, &claude()), None);
        assert_eq!(all.refusal_of(&command, &claude()), None);
    }
}
