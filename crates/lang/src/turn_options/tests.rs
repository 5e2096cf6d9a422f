//! Tests: each key is read, and each mistake in one has its place.

use std::collections::BTreeMap;

use super::*;
use crate::yaml::tree::{self, YamlFileKind};
use raymond_model::model::ModelName;
use raymond_model::turn_options::{
    BackgroundWork, ConfigSource, EffortLevel, EnvValue, StartupMode,
};

fn read(yaml: &str) -> WrittenOptions {
    let (root, faults) = tree::parse(YamlFileKind::FRONTMATTER, yaml);
    assert!(faults.is_empty(), "{yaml}: {faults:?}");
    WrittenOptions::of(&root.expect("YAML"))
}

fn faults(yaml: &str) -> Vec<String> {
    let faults = read(yaml).faults;
    faults.into_iter().map(|f| format!("{}:{}: {}", f.at.line, f.at.column, f.message)).collect()
}

fn options(yaml: &str) -> TurnOptions {
    let written = read(yaml);
    assert_eq!(written.faults, [], "{yaml}");
    written.options
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn all_option_keys_are_parsed() {
    let all = options(
        "model: opus
effort: xhigh
tools: []
allowed_tools: ['Bash(cargo test:*)', Read]
disallowed_tools: WebFetch
permission_mode: manual
append_system_prompt: 7
system_prompt_file: prompts/s.md
mcp_config: [a.json, { mcpServers: {} }]
strict_mcp: true
run_command: true
settings: { model: x }
setting_sources: [user, local]
agents: agents.json
add_dirs: docs
plugin_dirs: [p/q]
max_turns: 3
max_thinking_tokens: 0
background: keep
env: { A: b, C: , D: 1 }
fallback_model: [sonnet, haiku]
startup: lean
",
    );
    assert_eq!(all.effort, Some(EffortLevel::Xhigh));
    assert_eq!(all.tools, Some(Vec::new()));
    assert_eq!(all.allowed_tools, Some(texts(&["Bash(cargo test:*)", "Read"])));
    assert_eq!(all.disallowed_tools, Some(texts(&["WebFetch"])));
    assert_eq!(all.permission_mode, Some(PermissionMode::Default));
    assert_eq!(all.append_system_prompt.as_deref(), Some("7"));
    assert_eq!(all.system_prompt_file.as_deref(), Some("prompts/s.md"));
    let configs = all.mcp_config.expect("configurations");
    assert_eq!(configs[0], ConfigSource::File("a.json".into()));
    assert!(matches!(&configs[1], ConfigSource::Inline(map) if map.contains_key("mcpServers")));
    assert_eq!(all.strict_mcp, Some(true));
    assert_eq!(all.run_command, Some(true));
    assert!(matches!(all.settings, Some(ConfigSource::Inline(_))));
    assert_eq!(all.setting_sources, Some(vec![SettingSource::User, SettingSource::Local]));
    assert_eq!(all.agents, Some(ConfigSource::File("agents.json".into())));
    assert_eq!((all.add_dirs, all.plugin_dirs), (Some(texts(&["docs"])), Some(texts(&["p/q"]))));
    assert_eq!((all.max_turns, all.max_thinking_tokens), (Some(3), Some(0)));
    assert_eq!(all.background, Some(BackgroundWork::Keep));
    let env = all.env.expect("an environment");
    assert_eq!(env["A"], EnvValue::Set("b".into()));
    assert_eq!((&env["C"], &env["D"]), (&EnvValue::Pass, &EnvValue::Set("1".into())));
    assert_eq!(all.fallback_model.map(|all| all[1].clone()), Some(ModelName::HAIKU));
    assert_eq!(all.startup, Some(StartupMode::Lean));
    let names = options("env: [HOME, PATH]").env.expect("names");
    assert!(names.values().all(|value| *value == EnvValue::Pass) && names.len() == 2);
}

#[test]
fn invalid_option_is_error_with_location_and_hint() {
    let table = [
        ("effort: hgh", "1:9: unknown value `hgh` of `effort`; did you mean `high`?"),
        ("effort: []", "1:9: `effort` is one of low, medium, high, xhigh, max, not a list"),
        (
            "x: 1\npermission_mode: zzz",
            "2:18: unknown value `zzz` of `permission_mode`; use plan, dontAsk, default, manual, acceptEdits, auto, bypassPermissions",
        ),
        ("tools: Read, Grep", "1:8: `tools` is a list; write [Read, Grep]"),
        (
            "tools: [Read, 'Bash(ls)']",
            "1:15: `Bash(ls)` is not the name of a tool; a rule such as `Bash(cargo test:*)` stands in `allowed_tools` or `disallowed_tools`",
        ),
        (
            "allowed_tools: ['Bash(ls', '-x']",
            "1:17: `Bash(ls` is not a rule; write a tool, such as WebFetch, or a tool and what it is used for without further brackets, such as Bash(cargo test:*)",
        ),
        ("strict_mcp: 1", "1:13: `strict_mcp` is true or false, not a number"),
        ("max_turns: 0", "1:12: `max_turns` is a whole number from 1 to 4294967295"),
        (
            "add_dirs: [../x]",
            "1:12: `../x` leads out of the workflow's folder; put a copy of it there, and name it without `..`",
        ),
        (
            "settings: /etc/x.json",
            "1:11: `/etc/x.json` leads out of the workflow's folder; put a copy of it there, and name it without `..`",
        ),
        ("env: [A=b]", "1:7: `A=b` is not the name of an environment variable; write { A: b }"),
        ("env: { RAYMOND_RUN: x }", "1:21: `RAYMOND_RUN` is set by raymond itself; leave it out"),
        ("env: { A: [1] }", "1:11: the value of `A` is a text; put quotes around it"),
        (
            "fallback_model: a b",
            "1:17: `a b` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name",
        ),
        (
            "append_system_prompt: ''",
            "1:23: `append_system_prompt` is empty; write a text, or leave the key out",
        ),
    ];
    for (yaml, expected) in table {
        assert_eq!(faults(yaml), [expected], "{yaml}");
    }
}

#[test]
fn tool_rule_with_comma_is_not_split() {
    let rule = "Bash(git log:*, git diff:*)";
    assert_eq!(options(&format!("allowed_tools: {rule}")).allowed_tools, Some(texts(&[rule])));
}

#[test]
fn config_files_are_embedded_and_missing_files_reported() {
    let source: BTreeMap<String, String> =
        [("s.json", "{\"model\":\"x\"}"), ("bad.json", "[1]"), ("docs/a.md", "x"), ("p.md", "x")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
    let mut written = read("settings: s.json\nadd_dirs: [docs]\nsystem_prompt_file: p.md");
    assert_eq!(embed_files(&mut written.options, &written.places, &source), []);
    assert!(
        matches!(written.options.settings, Some(ConfigSource::Inline(map)) if map["model"] == "x")
    );
    let yaml = "agents: bad.json\nmcp_config: [gone.json]\nadd_dirs: [docs, more]\n";
    let mut written = read(yaml);
    let faults = embed_files(&mut written.options, &written.places, &source);
    let messages: Vec<String> =
        faults.iter().map(|f| format!("{}:{}: {}", f.at.line, f.at.column, f.message)).collect();
    assert!(
        messages[0].starts_with("1:9: bad.json: this is not a JSON object: line 1, column"),
        "{messages:?}"
    );
    assert!(messages[1].starts_with("2:14: gone.json: there is no such file"), "{messages:?}");
    assert!(messages[2].starts_with("3:18: more: there is no such file"), "{messages:?}");
}

#[test]
fn joined_or_unbalanced_tool_rule_is_error() {
    for several in
        ["Agent(x),Bash(*)", "Read(./a) Bash(*)", "Bash(a(b)", "Bash(a))", "Read(a(b) Bash c)"]
    {
        assert!(tool_rule(several).is_err(), "{several}");
    }
    assert!(tool_rule("Bash(echo (a):*)").is_err());
}
