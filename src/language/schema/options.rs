//! The options of turns as JSON Schema, with the descriptions from the type.

use serde_json::{Value, json};
use strum::VariantArray;

use super::shape;
use crate::domain::turn_options::{
    ApprovalPolicy, BackgroundWork, EffortLevel, OnDenied, OnLostSession, PermissionMode,
    SettingSource, StartupMode, TurnOptions,
};
use crate::language::turn_options::KEYS;

/// Returns the options by their keys.
pub(super) fn properties() -> Vec<(&'static str, Value)> {
    let documented = schemars::schema_for!(TurnOptions).to_value();
    let doc = |key: &str| documented["properties"][key]["description"].as_str().unwrap_or_default();
    KEYS.into_iter().map(|key| (key, shape::described(doc(key), option(key)))).collect()
}

fn option(key: &str) -> Value {
    match key {
        "effort" => variants::<EffortLevel>(),
        "permission_mode" => shape::one_of(PermissionMode::NAMES.iter().map(|(name, _)| *name)),
        "background" => variants::<BackgroundWork>(),
        "on_denied" => variants::<OnDenied>(),
        "on_lost_session" => variants::<OnLostSession>(),
        "permissions" => variants::<ApprovalPolicy>(),
        "startup" => variants::<StartupMode>(),
        "setting_sources" => one_or_more(variants::<SettingSource>()),
        "strict_mcp" | "run_command" => shape::boolean(),
        "max_turns" => shape::count(),
        "max_thinking_tokens" => {
            json!({ "type": ["integer", "string"], "minimum": 0, "pattern": r"^\+?[0-9]+$" })
        }
        "settings" | "agents" => config(),
        "mcp_config" => {
            let mut server = config();
            server["anyOf"][1]["required"] = json!(["mcpServers"]);
            one_or_more(server)
        }
        "env" => environment(),
        "tools" | "allowed_tools" | "disallowed_tools" | "add_dirs" | "plugin_dirs"
        | "fallback_model" => one_or_more(shape::text()),
        _ => shape::text(),
    }
}

/// Returns the names of all values of a kind.
fn variants<T: VariantArray + Copy + Into<&'static str>>() -> Value {
    shape::one_of(T::VARIANTS.iter().map(|&value| value.into()))
}

fn one_or_more(one: Value) -> Value {
    json!({ "anyOf": [one.clone(), shape::list(one)] })
}

/// Returns the path of a JSON file, or a mapping.
fn config() -> Value {
    json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "object" }] })
}

/// Returns names to pass, or a mapping of names to values.
fn environment() -> Value {
    let name = json!({ "type": "string", "pattern": r"^(?!RAYMOND_)[A-Za-z_][A-Za-z0-9_]*$" });
    let value = json!({ "type": ["string", "number", "boolean", "null"] });
    let values = json!({ "type": "object", "propertyNames": name, "additionalProperties": value });
    one_or_more(json!({ "anyOf": [name, values] }))
}
