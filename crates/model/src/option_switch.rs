//! Switches the options of a warm process for the next turn, or decides that a new process is needed.
//!
//! A process is started with flags. The model, the permission mode and the effort can be switched by a control request
//! while it runs. Background work and refused tools are handled outside of the process. All other options are fixed
//! when it starts, so a turn with other ones gets a new process, which resumes the session.

use super::model::ModelName;
use super::permission::RunPermission;
use super::turn_options::{EffortLevel, PermissionMode, TurnOptions};

/// The options that a process was started with or last switched to, or that a turn needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessOptions {
    /// The model; `None` leaves the choice to Claude Code.
    pub model: Option<ModelName>,
    /// The options of its turns.
    pub turn: TurnOptions,
}

/// A change of a running process, by a control request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessSwitch {
    /// Another model.
    Model(ModelName),
    /// Another permission mode.
    Permission(String),
    /// Another effort.
    Effort(EffortLevel),
}

/// The switch of a warm process to the options of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionSwitch {
    /// The process serves the turn after these changes.
    Switch(Vec<ProcessSwitch>),
    /// It cannot serve the turn: a new process has to resume the session.
    Restart,
}

/// Returns how a process that `has` some options can serve a turn that `needs` others, under the permissions of the
/// run. If it `is_untouched`, its conversation has not begun, and no switch may leave traces in it.
pub fn switch_options(
    has: &ProcessOptions,
    needs: &ProcessOptions,
    run: &RunPermission,
    is_untouched: bool,
) -> OptionSwitch {
    if fixed(&has.turn) != fixed(&needs.turn) {
        return OptionSwitch::Restart;
    }
    let mut switches = Vec::new();
    match (&has.model, &needs.model) {
        (had, Some(model)) if had.as_ref() != Some(model) => {
            switches.push(ProcessSwitch::Model(model.clone()));
        }
        _ => {}
    }
    if has.turn.permission_mode != needs.turn.permission_mode {
        let wanted = mode_name(needs.turn.permission_mode, run);
        let Some(wanted) = wanted.filter(|mode| may_be_switched_to(mode)) else {
            return OptionSwitch::Restart;
        };
        if mode_name(has.turn.permission_mode, run) != Some(wanted) {
            switches.push(ProcessSwitch::Permission(wanted.to_owned()));
        }
    }
    match (has.turn.effort, needs.turn.effort) {
        (had, wanted) if had == wanted => {}
        (_, Some(effort)) => switches.push(ProcessSwitch::Effort(effort)),
        (_, None) => return OptionSwitch::Restart,
    }
    if is_untouched && !switches.is_empty() {
        return OptionSwitch::Restart;
    }
    OptionSwitch::Switch(switches)
}

/// Returns the name of the mode that a process is in; `None` is everything without asking.
fn mode_name(mode: Option<PermissionMode>, run: &RunPermission) -> Option<&str> {
    match (mode, run) {
        (Some(mode), _) => Some(mode.name()),
        (None, RunPermission::Mode(name)) => Some(name),
        (None, RunPermission::SkipAll) => None,
    }
}

/// Returns whether a process can be switched to a mode, whatever it was started with.
fn may_be_switched_to(mode: &str) -> bool {
    PermissionMode::from_name(mode).is_some_and(|mode| mode != PermissionMode::BypassPermissions)
}

/// Returns the options that are fixed when a process starts.
fn fixed(options: &TurnOptions) -> TurnOptions {
    TurnOptions {
        permission_mode: None,
        effort: None,
        background: None,
        on_denied: None,
        on_lost_session: None,
        run_command: None,
        ..options.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(model: Option<&str>, turn: serde_json::Value) -> ProcessOptions {
        let model = model.map(|name| ModelName::parse(name).expect("a name"));
        ProcessOptions { model, turn: serde_json::from_value(turn).expect("options") }
    }

    fn between(
        has: (Option<&str>, serde_json::Value),
        needs: (Option<&str>, serde_json::Value),
    ) -> OptionSwitch {
        let run = RunPermission::default();
        switch_options(&options(has.0, has.1), &options(needs.0, needs.1), &run, false)
    }

    fn model(name: &str) -> ProcessSwitch {
        ProcessSwitch::Model(ModelName::parse(name).expect("a name"))
    }

    #[test]
    fn same_options_need_no_switch() {
        let same = || (Some("opus"), json!({ "effort": "low", "tools": ["Read"] }));
        assert_eq!(between(same(), same()), OptionSwitch::Switch(Vec::new()));
        let none = between((Some("opus"), json!({})), (None, json!({ "background": "end" })));
        assert_eq!(none, OptionSwitch::Switch(Vec::new()), "no model is any model");
    }

    #[test]
    fn model_permission_mode_and_effort_switch_without_restart() {
        let found = between(
            (None, json!({})),
            (Some("haiku"), json!({ "effort": "max", "permission_mode": "plan" })),
        );
        let permission = ProcessSwitch::Permission("plan".to_owned());
        let effort = ProcessSwitch::Effort(EffortLevel::Max);
        assert_eq!(found, OptionSwitch::Switch(vec![model("haiku"), permission, effort]));
        let back = between((None, json!({ "permission_mode": "plan" })), (None, json!({})));
        let permission = ProcessSwitch::Permission("acceptEdits".to_owned());
        assert_eq!(back, OptionSwitch::Switch(vec![permission]));
        let same = between((None, json!({ "permission_mode": "acceptEdits" })), (None, json!({})));
        assert_eq!(same, OptionSwitch::Switch(Vec::new()), "the run's own mode by name");
    }

    #[test]
    fn changed_startup_option_requires_restart() {
        let fixed = [
            json!({ "tools": [] }),
            json!({ "allowed_tools": ["Bash"] }),
            json!({ "disallowed_tools": ["Bash"] }),
            json!({ "append_system_prompt": "x" }),
            json!({ "system_prompt_file": "x" }),
            json!({ "mcp_config": [{}] }),
            json!({ "strict_mcp": true }),
            json!({ "settings": {} }),
            json!({ "setting_sources": [] }),
            json!({ "agents": {} }),
            json!({ "add_dirs": ["x"] }),
            json!({ "plugin_dirs": ["x"] }),
            json!({ "max_turns": 1 }),
            json!({ "max_thinking_tokens": 1 }),
            json!({ "env": { "A": "pass" } }),
            json!({ "fallback_model": ["x"] }),
            json!({ "startup": "lean" }),
        ];
        for one in fixed {
            let forth = between((None, json!({})), (None, one.clone()));
            let back = between((None, one.clone()), (None, json!({})));
            assert_eq!((forth, back), (OptionSwitch::Restart, OptionSwitch::Restart), "{one}");
        }
        let effort = between((None, json!({ "effort": "low" })), (None, json!({})));
        assert_eq!(effort, OptionSwitch::Restart, "the model's own effort has no name");
        let bypass = (None, json!({ "permission_mode": "bypassPermissions" }));
        assert_eq!(between((None, json!({})), bypass), OptionSwitch::Restart);
    }

    #[test]
    fn prestarted_process_with_other_options_is_restarted() {
        let (has, needs) = (options(Some("opus"), json!({})), options(Some("haiku"), json!({})));
        let run = RunPermission::default();
        assert_eq!(switch_options(&has, &needs, &run, true), OptionSwitch::Restart);
        assert_eq!(switch_options(&has, &has, &run, true), OptionSwitch::Switch(Vec::new()));
        let skips = switch_options(
            &options(None, json!({ "permission_mode": "plan" })),
            &options(None, json!({})),
            &RunPermission::SkipAll,
            false,
        );
        assert_eq!(skips, OptionSwitch::Restart, "everything without asking is set at the start");
    }
}
