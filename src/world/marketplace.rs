//! Edits the list of a marketplace's plug-ins, a JSON file.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::files;
use super::outcome::OperationError;
use crate::domain::json_mistake::placed_mistake;

/// Enters a plug-in into a list, or corrects its path there. The order of the list stays.
pub(super) fn enter(
    root: &Path,
    list: &str,
    name: &str,
    path: &str,
    stem: &str,
) -> Result<(), OperationError> {
    let failed = |why: &str| format!("cannot enter `{name}` into `{list}`: {why}");
    let text = files::read(root, list).map_err(|why| failed(&why))?;
    let mut all: Value = serde_json::from_str(&text)
        .map_err(|error| failed(&format!("it is not valid JSON: {}", placed_mistake(&error))))?;
    let map = all.as_object_mut().ok_or_else(|| failed("it is not a map"))?;
    let plugins = map.entry("plugins").or_insert_with(|| json!([]));
    let plugins = plugins.as_array_mut().ok_or_else(|| failed("its `plugins` is not a list"))?;
    let source = if path.starts_with(['.', '/']) { path.to_owned() } else { format!("./{path}") };
    let there = plugins.iter_mut().find(|plugin| plugin["name"] == name);
    match there.and_then(Value::as_object_mut) {
        Some(plugin) if plugin.get("source").and_then(Value::as_str) == Some(&source) => {
            return Ok(());
        }
        Some(plugin) => drop(plugin.insert("source".to_owned(), source.into())),
        None => plugins.push(Value::Object(Map::from_iter([
            ("name".to_owned(), name.into()),
            ("source".to_owned(), source.into()),
        ]))),
    }
    let text =
        serde_json::to_string_pretty(&all).map_err(|error| failed(&placed_mistake(&error)))?;
    files::write(root, list, &(text + "\n"), stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_is_entered_once_and_others_stay() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("there");
        let list = ".claude-plugin/marketplace.json";
        let why = enter(&root, list, "b", "b", "s").expect_err("there is none").to_string();
        assert!(
            why.starts_with("cannot enter `b` into `.claude-plugin/marketplace.json`"),
            "{why}"
        );
        std::fs::create_dir(root.join(".claude-plugin")).expect("made");
        let path = root.join(list);
        std::fs::write(&path, r#"{"plugins":[{"source":"./a","name":"a"}],"name":"m"}"#)
            .expect("written");
        for source in ["b", "./b", "c"] {
            enter(&root, list, "b", source, "s").expect("entered");
        }
        let text = std::fs::read_to_string(&path).expect("there");
        let read: Value = serde_json::from_str(&text).expect("JSON");
        let expected = json!([{"name": "a", "source": "./a"}, {"name": "b", "source": "./c"}]);
        assert_eq!(read["plugins"], expected);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("\"source\": \"./a\"") < at("\"name\": \"a\""), "{text}");
        assert!(at("\"plugins\"") < at("\"name\": \"m\""), "{text}");
        std::fs::write(&path, "[]").expect("written");
        let why = enter(&root, list, "b", "b", "s").expect_err("refused").to_string();
        assert!(why.ends_with("it is not a map"), "{why}");
    }
}
