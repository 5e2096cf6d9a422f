//! Attacks by an agent, by the author of a workflow, or by others who can write into a directory, and their
//! outcome. The names of the tests are the list.

mod inbox;
mod persons;
mod repositories;
mod terms;
mod trust;
mod turns;
mod workflow;

use serde_json::{Value, json};

/// Returns a graph whose only node has one action.
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
