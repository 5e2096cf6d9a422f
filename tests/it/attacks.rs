//! Attacks: what an agent, the author of a workflow, or whoever can write into a directory tries, and what
//! comes of it. The names of the tests are the list.

mod inbox;
mod terms;
mod trust;
mod turns;
mod workflow;

use serde_json::{Value, json};

/// A graph whose only node does one thing.
fn graph(action: &Value) -> String {
    json!({
        "name": "flow",
        "version": "1.0.0",
        "entry_preconditions": [],
        "initial_state": {},
        "start_node": "start",
        "nodes": {
            "start": {"type": "action", "actions": [action], "on_success": "done", "on_failure": "done"},
        },
        "endings": {"done": {"type": "success", "message": "done"}},
    })
    .to_string()
}
