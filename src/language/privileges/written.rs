//! Parameters of a graph's operations as they stand in its text, for people to read before they trust it.

use std::collections::BTreeSet;

use serde_json::Value;

/// What the parameters of operations are as they are written, with their `${…}`.
pub(super) struct WrittenWork {
    /// The node, the type and the parameter that tells most, in the order of the file.
    parameters: Vec<(Option<String>, String, String)>,
}

impl WrittenWork {
    pub(super) fn of(text: &str) -> Self {
        let mut parameters = Vec::new();
        let graph = serde_yaml::from_str::<Value>(text).unwrap_or_default();
        collect(None, &graph["entry_preconditions"], &mut parameters);
        for (name, node) in graph["nodes"].as_object().into_iter().flatten() {
            collect(Some(name), node, &mut parameters);
        }
        Self { parameters }
    }

    /// Takes the next parameter of a type in a node.
    pub(super) fn next(&mut self, node: Option<&str>, kind: &str) -> Option<String> {
        let is_it = |(at, written, _): &(Option<String>, String, String)| {
            at.as_deref() == node
                && (written == kind || (written == "run_command" && kind == "bash_exec"))
        };
        let found = self.parameters.iter().position(is_it)?;
        Some(self.parameters.remove(found).2)
    }
}

fn collect(node: Option<&String>, value: &Value, into: &mut Vec<(Option<String>, String, String)>) {
    const TELLING: [&str; 5] = ["command", "url", "repo_path", "id", "module"];
    match value {
        Value::Array(list) => list.iter().for_each(|one| collect(node, one, into)),
        Value::Object(map) => {
            let kind = map.get("type").and_then(Value::as_str);
            let telling = TELLING.into_iter().find_map(|key| map.get(key)?.as_str());
            if let (Some(kind), Some(telling)) = (kind, telling) {
                into.push((node.cloned(), kind.to_owned(), telling.to_owned()));
            }
            map.values().for_each(|one| collect(node, one, into));
        }
        _ => {}
    }
}

/// Returns the types that stand anywhere in the nodes of a graph, or before them.
pub(super) fn types(text: &str) -> BTreeSet<String> {
    let graph = serde_yaml::from_str::<Value>(text).unwrap_or_default();
    let mut types = BTreeSet::new();
    for part in ["entry_preconditions", "nodes"] {
        collect_types(&graph[part], &mut types);
    }
    types
}

fn collect_types(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| collect_types(one, into)),
        Value::Object(map) => {
            into.extend(map.get("type").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|one| collect_types(one, into));
        }
        _ => {}
    }
}
