//! Names of tools that are probably misspelt, and rules without effect. Claude Code accepts all of them silently.

use super::{OptionFault, OptionPlaces};
use crate::domain::turn_options::TurnOptions;
use crate::language::hint::is_slip;
use crate::language::position::SourcePlace;

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
        let name = tool_of(rule);
        if is_known(name) || name.starts_with("mcp__") {
            return None;
        }
        let is_meant = |known: &&str| name.eq_ignore_ascii_case(known) || is_slip(name, known);
        let similar = TOOLS.into_iter().find(is_meant)?;
        let at = places.of(key, Some(rule)).unwrap_or(SourcePlace::START);
        let message =
            format!("`{name}` is not a known tool of Claude Code; did you mean `{similar}`?");
        Some(OptionFault { at, message })
    });
    hints.chain(idle_rules(options, places)).collect()
}

/// Returns hints on rules for tools that are not offered.
fn idle_rules(options: &TurnOptions, places: &OptionPlaces) -> Vec<OptionFault> {
    let Some(offered) = options.tools.as_ref() else { return Vec::new() };
    let is_offered = |name: &str| offered.iter().any(|tool| tool == name || !is_known(tool));
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
    fn rule_for_tool_not_offered_gets_hint() {
        let told =
            hints(json!({ "tools": ["Read"], "allowed_tools": ["Bash(ls:*)", "Read(./**)"] }));
        assert_eq!(
            told,
            ["`tools` does not offer `Bash`, so `Bash(ls:*)` allows nothing; add it there"]
        );
    }
}
