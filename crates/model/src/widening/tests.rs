//! Tests: a table of what widens, and of what the starter can say to allow it.

use serde_json::json;

use super::*;
use crate::privilege::StarterConsent;

fn settings(mode: &str, tools: &[&str], trusts_workflow: bool) -> Settings {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    Settings {
        permission: RunPermission::Mode(mode.to_owned()),
        consent: StarterConsent {
            every_state: tools,
            trusts_workflow,
            ..StarterConsent::default()
        },
        ..Settings::default()
    }
}

fn ceiling(mode: &str, tools: &[&str]) -> PermissionCeiling {
    PermissionCeiling::of(&settings(mode, tools, false))
}

fn keys(ceiling: &PermissionCeiling, options: serde_json::Value) -> Vec<&'static str> {
    let options: TurnOptions = serde_json::from_value(options).expect("options");
    ceiling.widenings(&options).into_iter().map(|widening| widening.key).collect()
}

#[test]
fn permission_mode_above_run_mode_widens() {
    let modes = ["plan", "dontAsk", "default", "acceptEdits", "auto", "bypassPermissions"];
    for (rank, run) in modes.into_iter().enumerate() {
        for (wanted, mode) in modes.into_iter().enumerate() {
            let found = keys(&ceiling(run, &[]), json!({ "permission_mode": mode }));
            assert_eq!(found.is_empty(), wanted <= rank, "{mode} under {run}");
        }
    }
    assert!(keys(&ceiling("manual", &[]), json!({ "permission_mode": "default" })).is_empty());
    let unknown = keys(&ceiling("later", &[]), json!({ "permission_mode": "dontAsk" }));
    assert_eq!(unknown, ["permission_mode"], "a mode that nobody knows allows only plan");
    let skips = Settings { permission: RunPermission::SkipAll, ..Settings::default() };
    let all = json!({ "permission_mode": "bypassPermissions", "allowed_tools": ["Bash"] });
    assert!(keys(&PermissionCeiling::of(&skips), all).is_empty());
}

#[test]
fn ceiling_uses_permission_mode_of_claude_args_and_manifest() {
    let wanted = json!({ "permission_mode": "acceptEdits" });
    let mut narrowed = settings("acceptEdits", &[], false);
    narrowed.claude_args = vec!["--permission-mode=plan".to_owned()];
    assert_eq!(keys(&PermissionCeiling::of(&narrowed), wanted.clone()), ["permission_mode"]);
    let mut with_mode = settings("plan", &[], false);
    with_mode.consent.widest_mode = Some(RunPermission::default());
    assert!(keys(&PermissionCeiling::of(&with_mode), wanted).is_empty());
}

#[test]
fn rule_widens_unless_already_allowed_or_harmless() {
    let table: [(&str, &[&str], bool); 24] = [
        ("Bash", &[], false),
        ("Bash(cargo test:*)", &[], false),
        ("Bash(cargo test:*)", &["Bash(cargo test:*)"], true),
        ("Bash(cargo test:*)", &["Bash(cargo:*)"], true),
        ("Bash(cargo test --lib)", &["Bash(cargo *)"], true),
        ("Bash(cargo test:*)", &["Bash"], true),
        ("Bash(cargo:*)", &["Bash(cargo test:*)"], false),
        ("Bash(cargonaut:*)", &["Bash(cargo:*)"], false),
        ("Bash(cargo test; rm x)", &["Bash(cargo:*)"], false),
        ("Bash(cargo test $(x))", &["Bash(cargo:*)"], false),
        ("Bash", &["Bash(cargo:*)"], false),
        ("Bash(x)", &["Bash(:*)"], false),
        ("WebFetch", &[], false),
        ("WebFetch(domain:a.b)", &["WebFetch"], true),
        ("WebFetch(domain:a.b)", &["WebFetch(domain:*)"], false),
        ("mcp__db__read", &["mcp__db"], true),
        ("mcp__dbx__read", &["mcp__db"], false),
        ("Read", &[], false),
        ("Read(./src/**)", &[], true),
        ("Read(../x)", &[], false),
        ("Read(//etc/**)", &[], false),
        ("Read(~/.ssh/**)", &[], false),
        ("Edit(src/**)", &[], true),
        ("TodoWrite", &[], true),
    ];
    for (rule, given, allowed) in table {
        let found = keys(&ceiling("acceptEdits", given), json!({ "allowed_tools": [rule] }));
        assert_eq!(found.is_empty(), allowed, "{rule} with {given:?}");
    }
    assert_eq!(
        keys(&ceiling("default", &[]), json!({ "allowed_tools": ["Edit(src/**)"] })),
        ["allowed_tools"],
        "edits are asked for in this mode"
    );
}

#[test]
fn allowed_tools_in_claude_args_apply_to_every_state() {
    let mut given = settings("acceptEdits", &[], false);
    given.claude_args =
        ["--effort", "low", "--allowedTools", "Bash(git log:*),Read", "WebFetch", "--x", "Bash"]
            .map(str::to_owned)
            .into();
    let ceiling = PermissionCeiling::of(&given);
    let rules = json!({ "allowed_tools": ["Bash(git log -1)", "Read", "WebFetch"] });
    assert!(keys(&ceiling, rules).is_empty());
    assert_eq!(keys(&ceiling, json!({ "allowed_tools": ["Bash"] })), ["allowed_tools"]);
}

#[test]
fn configuration_widens_unless_it_can_only_narrow() {
    let harmless = [
        json!({ "settings": { "model": "opus", "permissions": { "deny": ["Bash"] } } }),
        json!({ "mcp_config": [{ "mcpServers": {} }], "strict_mcp": true }),
        json!({ "agents": { "a": { "description": "x", "prompt": "y", "tools": ["Read"] } } }),
        json!({ "setting_sources": ["user", "project", "local"], "tools": [] }),
        json!({ "disallowed_tools": ["Bash"] }),
        json!({ "env": { "RUST_LOG": { "set": "debug" }, "PATH": "pass" } }),
        json!({ "effort": "max", "max_turns": 2, "system_prompt_file": "s.md", "background": "end" }),
    ];
    let widening = [
        ("settings", json!({ "settings": { "permissions": { "allow": ["Bash"] } } })),
        ("settings", json!({ "settings": { "hooks": {} } })),
        ("settings", json!({ "settings": { "env": {} } })),
        ("settings", json!({ "settings": "s.json" })),
        ("mcp_config", json!({ "mcp_config": [{ "mcpServers": { "a": {} } }] })),
        ("agents", json!({ "agents": { "a": { "permissionMode": "acceptEdits" } } })),
        ("agents", json!({ "agents": { "a": { "hooks": {} } } })),
        ("plugin_dirs", json!({ "plugin_dirs": ["p"] })),
        ("setting_sources", json!({ "setting_sources": [] })),
        ("setting_sources", json!({ "setting_sources": ["user"] })),
        ("add_dirs", json!({ "add_dirs": ["docs"] })),
        ("env", json!({ "env": { "RIPGREP_CONFIG_PATH": { "set": "rc" } } })),
        ("env", json!({ "env": { "PATH": { "set": "/x" } } })),
        ("env", json!({ "env": { "ANTHROPIC_BASE_URL": { "set": "x" } } })),
        ("env", json!({ "env": { "ld_preload": { "set": "x" } } })),
    ];
    let plain = ceiling("acceptEdits", &[]);
    let trusting = PermissionCeiling::of(&settings("acceptEdits", &[], true));
    for options in harmless {
        assert!(keys(&plain, options.clone()).is_empty(), "{options}");
    }
    for (key, options) in widening {
        assert_eq!(keys(&plain, options.clone()), [key], "{options}");
        assert!(keys(&trusting, options.clone()).is_empty(), "{options}");
    }
    let mode = json!({ "permission_mode": "bypassPermissions", "allowed_tools": ["Bash"] });
    assert_eq!(keys(&trusting, mode), ["permission_mode"], "a mode is asked for by its own flag");
}

#[test]
fn widening_message_names_flag_that_allows_it() {
    let options: TurnOptions = serde_json::from_value(
        json!({ "permission_mode": "auto", "allowed_tools": ["Bash(cargo test:*)"] }),
    )
    .expect("options");
    let found = ceiling("default", &[]).widenings(&options);
    let messages: Vec<&str> = found.iter().map(|widening| widening.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "`auto` lets more run unasked than the run's permission mode, default; allow it with --permission-mode auto",
            "`Bash(cargo test:*)` would run unasked, which the run was not started with; allow it with --allow-tool 'Bash(cargo test:*)'",
        ]
    );
}

#[test]
fn rule_text_with_several_rules_widens() {
    let plain = ceiling("acceptEdits", &[]);
    for rule in ["Agent(x),Bash(*)", "Read(./a) Bash(*)", "Read(./a,Bash)", "Agent,Bash"] {
        assert_eq!(keys(&plain, json!({ "allowed_tools": [rule] })), ["allowed_tools"], "{rule}");
    }
}

#[test]
fn state_option_replacing_flag_of_claude_args_widens() {
    let given = Settings {
        claude_args: vec!["--settings={}".to_owned(), "--tools".to_owned(), "Read".to_owned()],
        ..settings("acceptEdits", &[], false)
    };
    let ceiling = PermissionCeiling::of(&given);
    assert_eq!(keys(&ceiling, json!({ "settings": { "model": "opus" } })), ["settings"]);
    assert_eq!(keys(&ceiling, json!({ "tools": ["Write"] })), ["tools"]);
    assert!(keys(&ceiling, json!({ "effort": "low" })).is_empty());
}

#[test]
fn permission_mode_in_claude_args_overrides_run_mode() {
    let given = Settings {
        claude_args: vec!["--permission-mode".to_owned(), "plan".to_owned()],
        ..settings("acceptEdits", &[], false)
    };
    assert_eq!(effective_permission(&given), RunPermission::Mode("plan".to_owned()));
}

#[test]
fn passed_variable_must_be_set_even_if_all_is_allowed() {
    let skips = Settings { permission: RunPermission::SkipAll, ..Settings::default() };
    let names = ["HOME".to_owned()].into();
    let ceiling = PermissionCeiling::of(&skips).with_inherited(names);
    let options = json!({ "env": { "HOME": "pass", "GONE": "pass", "PATH": { "set": "x" } } });
    let found = ceiling.widenings(&serde_json::from_value(options).expect("options"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].key, found[0].part.as_deref()), ("env", Some("GONE")));
}

#[test]
fn bypass_mode_allows_every_state_option() {
    let mode = RunPermission::Mode("bypassPermissions".to_owned());
    let open = PermissionCeiling::of(&Settings { permission: mode, ..Settings::default() });
    assert!(keys(&open, json!({ "allowed_tools": ["Bash"], "agents": { "a": {} } })).is_empty());
}

#[test]
fn unrestricted_read_rule_message_suggests_working_directory() {
    let plain = PermissionCeiling::of(&Settings::default());
    let options = json!({ "allowed_tools": ["Read"] });
    let found = plain.widenings(&serde_json::from_value(options).expect("options"));
    assert!(found[0].message.contains("write `Read(./**)` for the working directory, or"));
}
