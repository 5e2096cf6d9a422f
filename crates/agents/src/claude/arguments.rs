//! The arguments of a process of Claude Code: those of its session, its options, and the tools that are denied. Pure.

use std::path::Path;

use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::privilege::RunPermission;
use raymond_model::session::{Session, SessionOrigin};
use raymond_model::settings::{ProcessOptions, Settings};
use raymond_model::turn_options::{ConfigSource, PermissionMode, SettingSource, TurnOptions};
use serde_json::Value;

use crate::command::{ProtectedFolders, WorkflowFolders};

/// The flag with the spending limit of a process over all its turns, at which they end with an error.
const BUDGET_FLAG: &str = "--max-budget-usd";

/// Lets Claude Code do everything without asking.
const SKIP_ALL: &str = "--dangerously-skip-permissions";

/// The flags that make a process take its turns as messages, until stdin ends.
const STREAMED: [&str; 2] = ["--input-format", "stream-json"];

/// The flag that makes it ask on its output what it would ask a person.
const ASK: [&str; 2] = ["--permission-prompt-tool", "stdio"];

/// The flag that makes it repeat its messages, so that it shows which of them it answers.
const REPEAT_FLAG: &str = "--replay-user-messages";

/// The flag that makes the program print a message while it is written, so that a long answer is a sign of life.
const PARTIAL_FLAG: &str = "--include-partial-messages";

/// The variables of every process. The first makes the program report whether its session runs or is idle: only an idle
/// session ends a turn. The second makes it write a session to disk before it reports a turn's end, so that a resumed
/// session has the whole turn.
pub const VARIABLES: [(&str, &str); 2] =
    [("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"), ("CLAUDE_CODE_EAGER_FLUSH", "1")];

/// Returns the arguments of a process. It reads its turns as messages if `reads_messages`, else its only turn from a
/// file. A prompt is never among them: it comes on stdin, where it has no limit.
pub fn arguments(
    session: &Session,
    options: &ProcessOptions,
    settings: &Settings,
    folders: &WorkflowFolders,
    reads_messages: bool,
    spending_limit: Option<Usd>,
) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).into();
    arguments.extend(STREAMED.map(str::to_owned));
    arguments.push(PARTIAL_FLAG.to_owned());
    if reads_messages {
        arguments.push(REPEAT_FLAG.to_owned());
    }
    arguments.extend(origin(session));
    if let Some(model) = &options.model {
        arguments.extend(["--model".to_owned(), model.to_string()]);
    }
    let declared_mode = options.turn.permission_mode;
    match &settings.permission {
        _ if declared_mode.is_some() => {}
        RunPermission::Mode(mode) => {
            arguments.extend(["--permission-mode".to_owned(), mode.clone()]);
        }
        RunPermission::SkipAll => arguments.push(SKIP_ALL.to_owned()),
    }
    arguments.extend(denied_tools(&options.turn, folders));
    arguments.extend(settings.claude_args.iter().cloned());
    let given = given_spending_limit(&settings.claude_args);
    if let Some(spending_limit) =
        spending_limit.filter(|spending_limit| *spending_limit > Usd::ZERO)
        && given.is_none_or(|given| given > spending_limit)
    {
        // The last value counts, so this one is added only if it is lower than the given one.
        arguments.extend([BUDGET_FLAG.to_owned(), spending_limit.dollars().to_string()]);
    }
    // The options of a state come last, so they override the options of the run.
    match declared_mode {
        Some(PermissionMode::BypassPermissions) => arguments.push(SKIP_ALL.to_owned()),
        Some(mode) => arguments.extend(["--permission-mode".to_owned(), mode.name().to_owned()]),
        None => {}
    }
    arguments.extend(option_flags(&options.turn, folders));
    if options.turn.asks_for_approval() {
        arguments.extend(ASK.map(str::to_owned));
    }
    arguments
}

/// Returns the arguments of an interactive process in a session, for a person. It asks them before it uses a tool.
pub fn interactive_arguments(
    session: &Session,
    model: Option<&ModelName>,
    protected: &ProtectedFolders,
) -> Vec<String> {
    let mut arguments = origin(session);
    arguments.extend(["--permission-mode", "default", "--disallowedTools"].map(str::to_owned));
    arguments.extend(protected.deny_rules());
    arguments
        .extend(model.map(|model| ["--model".to_owned(), model.to_string()]).into_iter().flatten());
    arguments
}

/// Returns the spending limit that arguments for Claude Code set.
fn given_spending_limit(arguments: &[String]) -> Option<Usd> {
    let mut rest = arguments.iter();
    let mut given = None;
    while let Some(argument) = rest.next() {
        let value = match argument.strip_prefix(BUDGET_FLAG) {
            Some("") => rest.next().map(String::as_str),
            Some(value) => value.strip_prefix('='),
            None => continue,
        };
        given = value.and_then(|value| value.parse().ok()).map(Usd::from_dollars);
    }
    given
}

fn origin(session: &Session) -> Vec<String> {
    let id = session.id.to_string();
    match &session.origin {
        SessionOrigin::Fresh | SessionOrigin::Rebuilt => vec!["--session-id".to_owned(), id],
        SessionOrigin::Resumed => vec!["--resume".to_owned(), id],
        SessionOrigin::Branch { from, at } => {
            let mut arguments: Vec<String> =
                ["--resume", from.as_str(), "--fork-session", "--session-id", &id]
                    .map(str::to_owned)
                    .into();
            if let Some(message) = at {
                arguments.extend(["--resume-session-at".to_owned(), message.to_string()]);
            }
            arguments
        }
    }
}

/// Tools that are never offered: in a run nobody answers questions, and raymond itself keeps the timers, because the
/// timers of Claude Code are not visible from outside.
const NEVER_OFFERED: &str = "AskUserQuestion,ScheduleWakeup,CronCreate";

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
        add("--mcp-config", configs.iter().map(|source| config(source, scope)).collect());
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

// The folders that Claude Code's own tools must leave alone, as rules that deny. Pure.
//
// They hold in every permission mode. They do not bind a command that an agent is allowed to run, so raymond also
// proves the files that it has to believe.

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
    use super::*;
    use raymond_model::id::{MessageId, SessionId};
    use raymond_model::model::ModelName;
    use raymond_model::turn_options::{EffortLevel, TurnOptions};

    fn shown(session: &Session, options: &ProcessOptions, settings: &Settings) -> String {
        arguments(session, options, settings, &WorkflowFolders::at(Path::new("/w")), false, None)
            .join(" ")
    }

    const DENIED: &str = "--disallowedTools AskUserQuestion,ScheduleWakeup,CronCreate";

    #[test]
    fn each_session_origin_has_its_flags() {
        let id = SessionId::new;
        let settings = Settings::default();
        let rest = format!("--permission-mode acceptEdits {DENIED}");
        let head = "-p --output-format stream-json --verbose --input-format stream-json --include-partial-messages";
        let none = ProcessOptions::default();
        let line = |session| shown(&session, &none, &settings);
        assert_eq!(line(Session::fresh(id("a"))), format!("{head} --session-id a {rest}"));
        assert_eq!(line(Session::resumed(id("a"), None)), format!("{head} --resume a {rest}"));
        let branch = Session::resumed(id("a"), None).branch(id("b"));
        assert_eq!(line(branch), format!("{head} --resume a --fork-session --session-id b {rest}"));
        let cut = Session::resumed(id("a"), Some(MessageId::new("m"))).branch(id("b"));
        assert!(line(cut).contains("--fork-session --session-id b --resume-session-at m"));
    }

    #[test]
    fn reusable_process_gets_replay_user_messages_flag() {
        let session = Session::fresh(SessionId::new("a"));
        let line = arguments(
            &session,
            &ProcessOptions::default(),
            &Settings::default(),
            &WorkflowFolders::at(Path::new("/w")),
            true,
            None,
        )
        .join(" ");
        assert!(line.starts_with(
            "-p --output-format stream-json --verbose --input-format stream-json --include-partial-messages --replay-user-messages --session-id a"
        ));
    }

    #[test]
    fn run_permission_and_claude_args_are_passed_to_process() {
        let settings = Settings {
            permission: RunPermission::SkipAll,
            claude_args: vec!["--effort".into(), "low".into()],
            ..Settings::default()
        };
        let haiku = ProcessOptions { model: Some(ModelName::HAIKU), ..ProcessOptions::default() };
        let line = shown(&Session::fresh(SessionId::new("a")), &haiku, &settings);
        assert!(line.ends_with(&format!(
            "--model haiku --dangerously-skip-permissions {DENIED} --effort low"
        )));
    }

    #[test]
    fn state_options_come_after_claude_args() {
        let settings =
            Settings { claude_args: vec!["--effort".into(), "low".into()], ..Settings::default() };
        let turn = TurnOptions {
            effort: Some(EffortLevel::High),
            permission_mode: Some(PermissionMode::Plan),
            disallowed_tools: Some(vec!["WebFetch".into()]),
            ..TurnOptions::default()
        };
        let options = ProcessOptions { model: None, turn };
        let line = shown(&Session::fresh(SessionId::new("a")), &options, &settings);
        let expected = format!(
            "--session-id a {DENIED} WebFetch --effort low --permission-mode plan --effort high"
        );
        assert!(line.ends_with(&expected), "{line}");
        let skips = Settings { permission: RunPermission::SkipAll, ..Settings::default() };
        let line = shown(&Session::fresh(SessionId::new("a")), &options, &skips);
        assert!(!line.contains("--dangerously-skip-permissions"), "{line}");
    }
}

#[cfg(test)]
mod turn_arguments_tests {
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
