//! Names of tools that are probably misspelt: Claude Code takes any name, and then offers no such tool.

use super::{OptionFault, OptionPlaces};
use crate::domain::turn_options::TurnOptions;
use crate::language::hint::is_slip;
use crate::language::place::Place;

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

/// Returns hints on names that are no tool of Claude Code, and are like one.
#[must_use]
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
        let name = rule.split('(').next().unwrap_or_default().trim();
        if TOOLS.contains(&name) || name.starts_with("mcp__") {
            return None;
        }
        let is_meant = |known: &&str| name.eq_ignore_ascii_case(known) || is_slip(name, known);
        let similar = TOOLS.into_iter().find(is_meant)?;
        let at = places.of(key, Some(rule)).unwrap_or(Place::START);
        let message =
            format!("`{name}` is no known tool of Claude Code; did you mean `{similar}`?");
        Some(OptionFault { at, message })
    });
    hints.collect()
}
