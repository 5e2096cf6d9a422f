//! Options that name files of the workflow, and the files themselves.
//!
//! Configurations are read when the state is entered and then travel as JSON, so Claude Code gets the same text that
//! was judged. Other files are named by their path below the workflow's folder.

use serde_json::{Map, Value, json};

use super::{OptionPlaces, one_or_more};
use crate::source::{SourcePlace, WorkflowSource, stays_below};
use crate::yaml::{Error, YamlContent, YamlValue};
use raymond_model::json_mistake::placed_mistake;
use raymond_model::turn_options::{ConfigSource, TurnOptions};

/// The longest configuration, in bytes: it is passed as an argument.
const MAX_CONFIG_BYTES: usize = 100_000;

/// Reads the path of a file or folder of the workflow, as far as the path itself tells.
pub(super) fn inside(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
        return Err(format!("`{}` is not the path of a file of the workflow", text.escape_debug()));
    }
    if !stays_below(text) {
        return Err(format!(
            "`{text}` leads out of the workflow's folder; put a copy of it there, and name it without `..`"
        ));
    }
    Ok(text.to_owned())
}

pub(super) fn path(key: &str, node: &YamlValue) -> Result<String, Error> {
    let wanted = || format!("`{key}` is the path of a file, not {}", node.sort());
    let path = node.as_written().ok_or_else(wanted).and_then(inside);
    path.map_err(|why| Error::new(node.at, why))
}

/// Reads one configuration or several.
pub(super) fn configs(key: &str, node: &YamlValue) -> Result<Vec<ConfigSource>, Error> {
    match &node.value {
        YamlContent::List(list) => list.iter().map(|item| config(key, item)).collect(),
        _ => Ok(vec![config(key, node)?]),
    }
}

/// Reads a configuration: the path of a JSON file, or a mapping.
pub(super) fn config(key: &str, node: &YamlValue) -> Result<ConfigSource, Error> {
    let read = match (node.json(), node.text()) {
        (Value::Object(map), _) => sound_config(key, map).map(ConfigSource::Inline),
        (_, Some(path)) => inside(&path.text).map(ConfigSource::File),
        (_, None) => {
            Err(format!("`{key}` is the path of a JSON file, or a mapping, not {}", node.sort()))
        }
    };
    read.map_err(|why| Error::new(node.at, why))
}

/// Returns the path of a JSON file, or a mapping, as JSON Schema.
pub(super) fn config_shape() -> Value {
    json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "object" }] })
}

/// Returns the configurations of MCP servers, as JSON Schema.
pub(super) fn server_shape() -> Value {
    let mut server = config_shape();
    server["anyOf"][1]["required"] = json!(["mcpServers"]);
    one_or_more(server)
}

/// Checks the size of a configuration, and its shape as far as Claude Code insists on it.
fn sound_config(key: &str, map: Map<String, Value>) -> Result<Map<String, Value>, String> {
    match key {
        "mcp_config" if !map.get("mcpServers").is_some_and(Value::is_object) => {
            Err("`mcp_config` has no `mcpServers`; write { mcpServers: { NAME: { command: … } } }"
                .into())
        }
        "agents" => match map.iter().find(|(_, agent)| !is_agent(agent)) {
            None => within_bounds(key, map),
            Some((name, _)) => {
                Err(format!("the agent `{name}` needs texts as its `description` and `prompt`"))
            }
        },
        _ => within_bounds(key, map),
    }
}

fn is_agent(agent: &Value) -> bool {
    ["description", "prompt"].into_iter().all(|key| agent.get(key).is_some_and(Value::is_string))
}

fn within_bounds(key: &str, map: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let size = Value::Object(map.clone()).to_string().len();
    if size > MAX_CONFIG_BYTES {
        return Err(format!("`{key}` is {size} bytes long, and may have {MAX_CONFIG_BYTES}"));
    }
    Ok(map)
}

/// Replaces the configurations that are files by their content, and checks that the other files of the options
/// exist. Returns the faults of the unusable files.
pub fn embed_files(
    options: &mut TurnOptions,
    places: &OptionPlaces,
    source: &dyn WorkflowSource,
) -> Vec<Error> {
    let mut faults = Vec::new();
    let at = |key: &str, path: &str| places.of(key, Some(path)).unwrap_or(SourcePlace::START);
    let mut configs: Vec<(&str, &mut ConfigSource)> = Vec::new();
    configs.extend(options.settings.as_mut().map(|config| ("settings", config)));
    configs.extend(options.agents.as_mut().map(|config| ("agents", config)));
    let servers = options.mcp_config.iter_mut().flatten();
    configs.extend(servers.map(|config| ("mcp_config", config)));
    for (key, config) in configs {
        let ConfigSource::File(path) = &*config else { continue };
        match read_config(key, path, source) {
            Ok(map) => *config = ConfigSource::Inline(map),
            Err(message) => faults.push(Error::new(at(key, path), message)),
        }
    }
    let folders = [("add_dirs", &options.add_dirs), ("plugin_dirs", &options.plugin_dirs)];
    let folders = folders.into_iter().flat_map(|(key, paths)| {
        paths.iter().flatten().map(move |path| (key, path.as_str(), true))
    });
    let prompt = options.system_prompt_file.as_deref();
    let prompt = prompt.map(|path| ("system_prompt_file", path, false));
    for (key, path, is_folder) in folders.chain(prompt) {
        if let Err(error) = source.check_path(path, is_folder) {
            let message = format!("{path}: {}", error.reason());
            faults.push(Error::new(at(key, path), message));
        }
    }
    faults
}

fn read_config(
    key: &str,
    path: &str,
    source: &dyn WorkflowSource,
) -> Result<Map<String, Value>, String> {
    let text = source.read_path(path).map_err(|error| format!("{path}: {}", error.reason()))?;
    let map: Map<String, Value> = serde_json::from_str(&text).map_err(|error| {
        format!("{path}: this is not a JSON object: {}", placed_mistake(&error))
    })?;
    sound_config(key, map).map_err(|why| format!("{path}: {why}"))
}
