//! The action `signal`: asserts a fact that programs wait for, or retracts it.

use serde_json::{Value, json};

use super::super::local_commands::{LocalCommands, text_in};
use crate::actor::clock::now;
use crate::cli::engine;
use crate::cli::exit::Error;
use crate::store::dataspace::FactStatement;

/// Asserts `label` with `key` and `value`, or with `retract` retracts it.
pub(super) fn signal(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let space = engine::dataspace(commands.dir(), commands.root())?;
    let label = text_in(body, "label")?;
    let key = body["key"].as_str().unwrap_or_default();
    if body["retract"] == true {
        let changed = space.retract(label, key, None)?;
        return Ok(json!({ "label": label, "key": key, "changed": changed, "fact": null }));
    }
    let value = body["value"].as_str().unwrap_or_default();
    let statement = FactStatement { label, key, value, source: "signal", at: now() };
    let made = space.assert(statement, None)?;
    Ok(json!({
        "label": label, "key": key, "changed": made.is_new, "fact": made.fact, "replaced": made.replaced,
    }))
}
