//! Options are laid over each other, and read back as they were stored.

use strum::VariantArray;

use super::*;

#[test]
fn nearest_option_layer_wins_per_key() {
    let near = TurnOptions {
        effort: Some(EffortLevel::Low),
        tools: Some(Vec::new()),
        ..TurnOptions::default()
    };
    let far = TurnOptions {
        effort: Some(EffortLevel::Max),
        tools: Some(vec!["Read".into()]),
        max_turns: Some(3),
        ..TurnOptions::default()
    };
    let both = near.clone().or(&far);
    assert_eq!((both.effort, both.tools), (Some(EffortLevel::Low), Some(Vec::new())));
    assert_eq!(both.max_turns, Some(3));
    assert_eq!(near.clone().or(&TurnOptions::default()), near);
    assert_eq!(TurnOptions::default().or(&near), near);
}

#[test]
fn command_line_overrides_manifest_option() {
    let mut options = TurnOptions {
        effort: Some(EffortLevel::Low),
        max_turns: Some(3),
        strict_mcp: Some(true),
        ..TurnOptions::default()
    };
    options.forget_given(&["--effort=high", "--max-turns", "9", "--x"].map(str::to_owned));
    let left = TurnOptions { strict_mcp: Some(true), ..TurnOptions::default() };
    assert_eq!(options, left);
}

#[test]
fn unset_options_are_omitted_and_unknown_options_are_ignored() {
    let none = TurnOptions::default();
    assert!(none.is_empty());
    assert_eq!(serde_json::to_string(&none).expect("written"), "{}");
    let read = |json: &str| serde_json::from_str::<TurnOptions>(json).expect("read");
    assert_eq!(read(r#"{"later":1}"#), none);
    let some = read(
        r#"{"permission_mode":"acceptEdits","mcp_config":["a.json",{"mcpServers":{}}],
            "env":{"HOME":"pass","A":{"set":"b"}},"background":"keep","fallback_model":["x"]}"#,
    );
    let again: TurnOptions =
        serde_json::from_str(&serde_json::to_string(&some).expect("written")).expect("read");
    assert_eq!(again, some);
    assert_eq!(some.background, Some(BackgroundWork::Keep));
}

#[test]
fn option_value_names_match_their_json_form() {
    for &level in EffortLevel::VARIANTS {
        assert_eq!(serde_json::to_value(level).expect("written"), level.name());
    }
    for (name, mode) in PermissionMode::NAMES.into_iter().filter(|(name, _)| *name != "manual") {
        assert_eq!(mode.name(), name);
        assert_eq!(serde_json::to_value(mode).expect("written"), name);
    }
    for &source in SettingSource::VARIANTS {
        assert_eq!(serde_json::to_value(source).expect("written"), source.name());
    }
}
