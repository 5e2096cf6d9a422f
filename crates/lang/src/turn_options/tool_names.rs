//! Names of tools that are probably misspelt, and rules without effect. Claude Code accepts all of them silently.

use super::{OptionFault, OptionPlaces};
use crate::hint::is_slip;
use crate::position::SourcePlace;
use raymond_model::turn_options::{PermissionMode, TurnOptions};

/// The built-in tools of the supported versions.
const TOOLS: [&str; 38] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "LSP",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Returns hints on misspelt names of Claude Code's tools, and on rules for tools that are not offered.
pub fn tool_name_hints(options: &TurnOptions, places: &OptionPlaces) -> Vec<OptionFault> {
    let lists = [
        ("tools", &options.tools),
        ("allowed_tools", &options.allowed_tools),
        ("disallowed_tools", &options.disallowed_tools),
    ];
    let all = lists
        .into_iter()
        .flat_map(|(key, list)| list.iter().flatten().map(move |rule| (key, rule.as_str())));
    let hints = all.filter_map(|(key, rule)| {
        let message = misspelt(tool_of(rule))?;
        let at = places.of(key, Some(rule)).unwrap_or(SourcePlace::START);
        Some(OptionFault { at, message })
    });
    hints.chain(idle_rules(options, places)).collect()
}

/// Returns hints on rules for tools that are not offered.
fn idle_rules(options: &TurnOptions, places: &OptionPlaces) -> Vec<OptionFault> {
    let Some(offered) = options.tools.as_ref() else { return Vec::new() };
    let is_offered =
        |name: &str| offered.iter().any(|tool| is_ruled_by(tool, name) || !is_known(tool));
    let hint = |rule: &String| {
        let name = tool_of(rule);
        if !is_known(name) || is_offered(name) {
            return None;
        }
        let at = places.of("allowed_tools", Some(rule)).unwrap_or(SourcePlace::START);
        let message =
            format!("`tools` does not offer `{name}`, so `{rule}` allows nothing; add it there");
        Some(OptionFault { at, message })
    };
    options.allowed_tools.iter().flatten().filter_map(hint).collect()
}

/// Returns whether rules that name a tool hold for another: rules for `Edit` are for all that change files, rules for
/// `Read` for all that read them.
fn is_ruled_by(tool: &str, name: &str) -> bool {
    let group: &[&str] = match name {
        "Edit" => &["MultiEdit", "NotebookEdit", "Write"],
        "Read" => &["Glob", "Grep", "LS", "NotebookRead"],
        _ => &[],
    };
    tool == name || group.contains(&tool)
}

/// Returns why a rule that the starter of a run gave all states allows nothing; `states` are the options of their turns,
/// if all are known.
pub fn idle_rule(rule: &str, states: &[TurnOptions]) -> Option<String> {
    let name = tool_of(rule);
    if let Some(hint) = misspelt(name) {
        return Some(hint);
    }
    let forbids = |options: &TurnOptions| {
        let is_denied = |denied: &String| denied == rule || denied == name;
        let offers = |tool: &String| is_ruled_by(tool, name) || !is_known(tool);
        options.disallowed_tools.iter().flatten().any(is_denied)
            || options
                .tools
                .as_ref()
                .is_some_and(|tools| is_known(name) && !tools.iter().any(offers))
            || options.permission_mode == Some(PermissionMode::Plan)
    };
    let is_idle = !states.is_empty() && states.iter().all(forbids);
    is_idle.then(|| {
        format!(
            "no state may use `{name}`: see their `tools`, `disallowed_tools` and `permission_mode`"
        )
    })
}

fn misspelt(name: &str) -> Option<String> {
    if is_known(name) || name.starts_with("mcp__") {
        return None;
    }
    let is_meant = |known: &&str| name.eq_ignore_ascii_case(known) || is_slip(name, known);
    let similar = TOOLS.into_iter().find(is_meant)?;
    Some(format!("`{name}` is not a known tool of Claude Code; did you mean `{similar}`?"))
}

fn tool_of(rule: &str) -> &str {
    rule.split('(').next().unwrap_or_default().trim()
}

fn is_known(name: &str) -> bool {
    TOOLS.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hints(options: serde_json::Value) -> Vec<String> {
        let options = serde_json::from_value(options).expect("options");
        let found = tool_name_hints(&options, &OptionPlaces::default());
        found.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn misspelled_tool_gets_suggestion_and_other_names_do_not() {
        let told = hints(json!({ "tools": ["Raed", "Mine"], "disallowed_tools": ["bash(ls)"] }));
        assert_eq!(
            told,
            [
                "`Raed` is not a known tool of Claude Code; did you mean `Read`?",
                "`bash` is not a known tool of Claude Code; did you mean `Bash`?",
            ]
        );
        assert!(hints(json!({ "allowed_tools": ["mcp__x__y", "WebFetch"] })).is_empty());
    }

    #[test]
    fn rule_of_starter_is_idle_if_it_is_misspelt_or_no_state_may_use_its_tool() {
        let of = |options: serde_json::Value| serde_json::from_value(options).expect("options");
        let states = |all: &[serde_json::Value]| all.iter().cloned().map(of).collect::<Vec<_>>();
        let idle = |rule: &str, all: &[serde_json::Value]| idle_rule(rule, &states(all)).is_some();
        assert!(idle("Bsh(ls)", &[json!({})]) && idle("webfetch", &[]));
        assert!(!idle("Bash(ls)", &[]) && !idle("mcp__a", &[json!({ "tools": ["mcp__a"] })]));
        let forbidding = [
            json!({ "tools": ["Read"] }),
            json!({ "disallowed_tools": ["Bash"] }),
            json!({ "disallowed_tools": ["Bash(ls)"] }),
            json!({ "permission_mode": "plan" }),
        ];
        assert!(idle("Bash(ls)", &forbidding));
        assert!(!idle("Bash(ls)", &[forbidding[0].clone(), json!({})]));
        assert!(!idle("Bash(ls)", &[json!({ "disallowed_tools": ["Bash(rm)"] })]));
    }

    #[test]
    fn rule_for_tool_not_offered_gets_hint() {
        let told =
            hints(json!({ "tools": ["Read"], "allowed_tools": ["Bash(ls:*)", "Read(./**)"] }));
        assert_eq!(
            told,
            ["`tools` does not offer `Bash`, so `Bash(ls:*)` allows nothing; add it there"]
        );
    }
}
