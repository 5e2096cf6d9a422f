//! The options of a turn as arguments and environment of a process. Pure.

use std::path::{Path, PathBuf};

use serde_json::Value;

use raymond_model::model::ModelName;
use raymond_model::turn_options::{ConfigSource, EnvValue, SettingSource, TurnOptions};

/// Tools that are never offered: in a run nobody answers questions, and raymond itself keeps the timers, because the
/// timers of Claude Code are not visible from outside.
const NEVER_OFFERED: &str = "AskUserQuestion,ScheduleWakeup,CronCreate";

/// The folders of a workflow: its pinned copy, the one its agents may work in, and those they may not touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFolders {
    /// The files as they were when the run began.
    pub pinned: PathBuf,
    /// The folder that they were taken from.
    pub live: PathBuf,
    /// The folders that Claude Code's tools leave alone.
    pub protected: Option<ProtectedFolders>,
}

impl WorkflowFolders {
    /// Returns folders in which the pinned and the live one are the same.
    pub fn at(folder: &Path) -> Self {
        Self { pinned: folder.to_owned(), live: folder.to_owned(), protected: None }
    }
}

/// Returns the arguments that deny tools.
pub fn denied_tools(options: &TurnOptions, folders: &WorkflowFolders) -> Vec<String> {
    let mut arguments = vec!["--disallowedTools".to_owned(), NEVER_OFFERED.to_owned()];
    arguments.extend(folders.protected.iter().flat_map(ProtectedFolders::deny_rules));
    // A rule that begins with a dash would be read as an option.
    let is_rule = |rule: &&String| !rule.starts_with('-');
    arguments.extend(options.disallowed_tools.iter().flatten().filter(is_rule).cloned());
    arguments
}

/// Returns the arguments of all options but the model, the permission mode and denied tools. Paths are
/// those of the workflow's files; a directory that agents work in is the live one.
pub fn option_flags(options: &TurnOptions, folders: &WorkflowFolders) -> Vec<String> {
    let scope = folders.pinned.as_path();
    let mut flags = Vec::new();
    let mut add = |flag: &str, values: Vec<String>| {
        flags.push(flag.to_owned());
        flags.extend(values);
    };
    let inside = |path: &String| scope.join(path).display().to_string();
    if let Some(effort) = options.effort {
        add("--effort", vec![effort.name().to_owned()]);
    }
    if let Some(tools) = &options.tools {
        add("--tools", vec![tools.join(",")]);
    }
    if let Some(rules) = options.allowed_tools.as_ref().filter(|rules| !rules.is_empty()) {
        add(
            "--allowedTools",
            rules.iter().filter(|rule| !rule.starts_with('-')).cloned().collect(),
        );
    }
    if let Some(text) = &options.append_system_prompt {
        add("--append-system-prompt", vec![text.clone()]);
    }
    if let Some(path) = &options.system_prompt_file {
        add("--system-prompt-file", vec![inside(path)]);
    }
    if let Some(configs) = options.mcp_config.as_ref().filter(|configs| !configs.is_empty()) {
        add("--mcp-config", configs.iter().map(|one| config(one, scope)).collect());
    }
    if options.strict_mcp == Some(true) {
        add("--strict-mcp-config", Vec::new());
    }
    if let Some(settings) = &options.settings {
        add("--settings", vec![config(settings, scope)]);
    }
    if let Some(sources) = &options.setting_sources {
        let names: Vec<&str> = sources.iter().copied().map(SettingSource::name).collect();
        add("--setting-sources", vec![names.join(",")]);
    }
    if let Some(agents) = &options.agents {
        add("--agents", vec![config(agents, scope)]);
    }
    if let Some(paths) = options.add_dirs.as_ref().filter(|paths| !paths.is_empty()) {
        let live = |path: &String| folders.live.join(path).display().to_string();
        add("--add-dir", paths.iter().map(live).collect());
    }
    for path in options.plugin_dirs.iter().flatten() {
        add("--plugin-dir", vec![inside(path)]);
    }
    if let Some(limit) = options.max_turns {
        add("--max-turns", vec![limit.to_string()]);
    }
    if let Some(limit) = options.max_thinking_tokens {
        add("--max-thinking-tokens", vec![limit.to_string()]);
    }
    if let Some(models) = options.fallback_model.as_ref().filter(|models| !models.is_empty()) {
        let names: Vec<&str> = models.iter().map(ModelName::as_str).collect();
        add("--fallback-model", vec![names.join(",")]);
    }
    flags
}

fn config(config: &ConfigSource, scope: &Path) -> String {
    match config {
        ConfigSource::File(path) => scope.join(path).display().to_string(),
        ConfigSource::Inline(map) => Value::Object(map.clone()).to_string(),
    }
}

/// Returns the variables that are set for a process on top of those it inherits.
///
/// # Errors
/// The name of a variable that is to be passed, but is not set where raymond was started.
pub fn environment(
    options: &TurnOptions,
    is_set: impl Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, String> {
    let mut set = Vec::new();
    for (name, value) in options.env.iter().flatten() {
        match value {
            EnvValue::Set(text) => set.push((name.clone(), text.clone())),
            EnvValue::Pass if is_set(name) => {}
            EnvValue::Pass => return Err(name.clone()),
        }
    }
    Ok(set)
}

/// The folders of a user's runs, and of raymond's own state for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedFolders {
    /// The directory of the runs, the facts and the worktrees.
    pub all_runs: PathBuf,
    /// The directory of the user's key.
    pub user_state: PathBuf,
}

impl ProtectedFolders {
    /// Returns the rules. They leave out the worktrees, in which agents work.
    pub fn deny_rules(&self) -> Vec<String> {
        let runs = rule_path(&self.all_runs);
        let state = rule_path(&self.user_state);
        vec![
            format!("Edit({runs}/runs/**)"),
            format!("Edit({runs}/dataspace/**)"),
            format!("Edit({runs}/debug/**)"),
            format!("Read({runs}/runs/*/steps/**)"),
            format!("Edit({state}/**)"),
            format!("Read({state}/**)"),
        ]
    }
}

/// Returns a path in the form of a rule: absolute after two slashes, with special characters escaped.
fn rule_path(path: &Path) -> String {
    let mut text = "/".to_owned();
    for c in path.display().to_string().chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(options: serde_json::Value) -> TurnOptions {
        serde_json::from_value(options).expect("options")
    }

    #[test]
    fn each_turn_option_maps_to_command_line_flags() {
        let table = [
            (json!({ "effort": "max" }), vec!["--effort", "max"]),
            (json!({ "tools": [] }), vec!["--tools", ""]),
            (json!({ "tools": ["Read", "Grep"] }), vec!["--tools", "Read,Grep"]),
            (json!({ "allowed_tools": [] }), vec![]),
            (
                json!({ "allowed_tools": ["Bash(a b:*)", "Read"] }),
                vec!["--allowedTools", "Bash(a b:*)", "Read"],
            ),
            (json!({ "append_system_prompt": "-x" }), vec!["--append-system-prompt", "-x"]),
            (json!({ "system_prompt_file": "p/s.md" }), vec!["--system-prompt-file", "/w/p/s.md"]),
            (
                json!({ "mcp_config": [{ "mcpServers": {} }], "strict_mcp": true }),
                vec!["--mcp-config", "{\"mcpServers\":{}}", "--strict-mcp-config"],
            ),
            (json!({ "settings": { "a": 1 } }), vec!["--settings", "{\"a\":1}"]),
            (json!({ "setting_sources": [] }), vec!["--setting-sources", ""]),
            (
                json!({ "setting_sources": ["user", "local"] }),
                vec!["--setting-sources", "user,local"],
            ),
            (json!({ "agents": { "a": {} } }), vec!["--agents", "{\"a\":{}}"]),
            (json!({ "add_dirs": ["a", "b"] }), vec!["--add-dir", "/w/a", "/w/b"]),
            (
                json!({ "plugin_dirs": ["a", "b"] }),
                vec!["--plugin-dir", "/w/a", "--plugin-dir", "/w/b"],
            ),
            (json!({ "max_turns": 2 }), vec!["--max-turns", "2"]),
            (json!({ "max_thinking_tokens": 0 }), vec!["--max-thinking-tokens", "0"]),
            (json!({ "fallback_model": ["a", "b"] }), vec!["--fallback-model", "a,b"]),
        ];
        for (given, expected) in table {
            assert_eq!(
                option_flags(&options(given.clone()), &WorkflowFolders::at(Path::new("/w"))),
                expected,
                "{given}"
            );
        }
    }

    #[test]
    fn disallowed_tools_extend_always_denied_tools() {
        let never = ["--disallowedTools", "AskUserQuestion,ScheduleWakeup,CronCreate"];
        assert_eq!(
            denied_tools(&TurnOptions::default(), &WorkflowFolders::at(Path::new("/w"))),
            never
        );
        let more = denied_tools(
            &options(json!({ "disallowed_tools": ["WebFetch"] })),
            &WorkflowFolders::at(Path::new("/w")),
        );
        assert_eq!(more[2..], ["WebFetch"]);
    }

    #[test]
    fn missing_passed_variable_is_error() {
        let env = options(json!({ "env": { "A": { "set": "b" }, "HOME": "pass" } }));
        let set = environment(&env, |name| name == "HOME");
        assert_eq!(set, Ok(vec![("A".to_owned(), "b".to_owned())]));
        assert_eq!(environment(&env, |_| false), Err("HOME".to_owned()));
    }
}

#[cfg(test)]
mod protected_tests {
    use super::*;

    #[test]
    fn deny_rules_name_folders_by_absolute_path() {
        let folders = ProtectedFolders {
            all_runs: "/w/a[1]/.raymond".into(),
            user_state: "/home/u/.local/state/raymond".into(),
        };
        let rules = folders.deny_rules();
        assert_eq!(rules[0], "Edit(//w/a\\[1\\]/.raymond/runs/**)");
        assert_eq!(rules[5], "Read(//home/u/.local/state/raymond/**)");
        assert!(rules.iter().all(|rule| !rule.contains("worktrees")));
    }
}
