//! The configuration of a corpus, `data/config.yaml`, and its index: reads and edits them.

use std::path::Path;

use serde_json::{Map, Value};

use super::edit::{self, EditStep, ValueEdit};
use crate::files::{self, read_at};
use crate::glob::{FileAccess, resolve};
use crate::outcome::OperationError;
use raymond_model::json_mistake::ValuePath;

/// The path of the configuration, below the root.
const CONFIG: &str = "data/config.yaml";

/// The path of the index, below the root.
const INDEX: &str = "data/index.md";

/// The path of the configuration of a corpus that has no directory `data`, and that of its index.
const FLAT: (&str, &str) = ("config.yaml", "index.md");

/// The directory of the clones of the sources, below the root.
const CLONES: &str = ".source";

/// The command that the index of a new corpus tells people to run.
const PLACEHOLDER: &str = "Run hiivmind-corpus-build";

/// Returns the path of the configuration, below the root: `data/config.yaml`, or `config.yaml` where only that is.
pub(super) fn path(root: &Path) -> &'static str {
    let is_file = |path: &str| root.join(path).is_file();
    if !is_file(CONFIG) && is_file(FLAT.0) { FLAT.0 } else { CONFIG }
}

/// Returns the path of the index, which is beside the configuration.
pub(super) fn index(root: &Path) -> &'static str {
    if path(root) == FLAT.0 { FLAT.1 } else { INDEX }
}

/// Returns whether the index is still the initial index of a new corpus.
pub(super) fn index_is_placeholder(root: &Path) -> Result<bool, String> {
    let path = index(root);
    let index = read_at(&resolve(root, path, FileAccess::Read)?)
        .map_err(|why| format!("cannot read `{path}` in {}: {why}", root.display()))?;
    Ok(index.is_some_and(|index| index.contains(PLACEHOLDER)))
}

/// Returns the configuration as data.
pub(super) fn read(root: &Path) -> Result<Value, String> {
    edit::parse(&text(root)?).map_err(|why| broken(root, &why))
}

/// Returns whether the configuration has a source; false without a configuration.
pub(super) fn source_exists(root: &Path, id: &str) -> Result<bool, String> {
    if !resolve(root, path(root), FileAccess::Read)?.is_file() {
        return Ok(false);
    }
    let config = read(root)?;
    Ok(place_of(&config, id).map_err(|why| broken(root, &why))?.is_some())
}

/// Returns the path of a source's clone, below the root.
pub(super) fn clone_of(id: &str) -> Result<String, String> {
    if id.trim().is_empty() || id.contains('/') || id == "." || id == ".." {
        return Err(format!(
            "`{id}` is not the id of a source: it names its directory in `{CLONES}`"
        ));
    }
    Ok(format!("{CLONES}/{id}"))
}

/// Replaces the configuration, with its keys in the given order. Without a new configuration, only checks that the
/// current one can be read.
pub(super) fn write(
    root: &Path,
    config: Option<Map<String, Value>>,
    stem: &str,
) -> Result<(), OperationError> {
    let Some(config) = config else { return Ok(read(root).map(drop)?) };
    let config = Value::Object(config);
    let before = text(root).ok();
    if before.as_deref().is_some_and(|text| edit::parse(text).as_ref() == Ok(&config)) {
        return Ok(());
    }
    let text = edit::written_like(before.as_deref().unwrap_or_default(), &config)
        .map_err(|why| broken(root, &why))?;
    let at = path(root);
    files::write(root, at, &text, stem)
}

/// Sets fields of the entry `index`.
pub(super) fn update_index(
    root: &Path,
    fields: Map<String, Value>,
    stem: &str,
) -> Result<(), OperationError> {
    let changes = set_fields(&[EditStep::Key("index".to_owned())], fields);
    change(root, &changes, stem, |why| format!("cannot change `index`: {why}"))
}

/// Sets an entry; `path` is that of its value.
pub(super) fn write_entry(
    root: &Path,
    path: &str,
    value: Value,
    stem: &str,
) -> Result<(), OperationError> {
    let entry = ValuePath::parse(path).map_err(|error| error.to_string())?;
    let config = read(root)?;
    let map = config.as_object().ok_or_else(|| broken(root, "it is not a map"))?;
    let keys = entry.keys_in(map).map_err(|why| format!("cannot set `{path}`: {why}"))?;
    let mut steps = Vec::new();
    let mut here = Some(&config);
    for key in keys {
        let next = match here {
            Some(Value::Array(_)) => key.parse().map_or(EditStep::Key(key), EditStep::Item),
            _ => EditStep::Key(key),
        };
        here = here.and_then(|value| match &next {
            EditStep::Key(key) => value.get(key),
            EditStep::Item(index) => value.get(index),
        });
        steps.push(next);
    }
    let set = [ValueEdit::Set(steps, value)];
    change(root, &set, stem, |why| format!("cannot set `{path}`: {why}"))
}

/// Adds a source, unless it is there already.
pub(super) fn add_source(
    root: &Path,
    spec: Map<String, Value>,
    stem: &str,
) -> Result<(), OperationError> {
    let id = spec.get("id").and_then(name).filter(|id| !id.is_empty());
    let id = id.ok_or("cannot add the source: its spec has no `id`")?;
    let config = read(root)?;
    let there = place_of(&config, &id).map_err(|why| broken(root, &why))?;
    let spec = Value::Object(spec);
    if let Some(place) = there {
        if config["sources"][place] == spec {
            return Ok(());
        }
        return Err(format!(
            "cannot add the source `{id}`: `{}` has another of that id; change that one with \
             update_source",
            path(root)
        )
        .into());
    }
    let push = [ValueEdit::Push("sources".to_owned(), spec)];
    change(root, &push, stem, |why| format!("cannot add the source `{id}`: {why}"))
}

/// Changes fields of a source.
pub(super) fn update_source(
    root: &Path,
    id: &str,
    fields: Map<String, Value>,
    stem: &str,
) -> Result<(), OperationError> {
    let failed = |why: &str| format!("cannot change the source `{id}`: {why}");
    if fields.get("id").is_some_and(|new| name(new).as_deref() != Some(id)) {
        return Err(failed("its id cannot be changed; add another source instead").into());
    }
    let config = read(root)?;
    let place = place_of(&config, id).map_err(|why| broken(root, &why))?;
    let place =
        place.ok_or_else(|| failed(&format!("`{}` has none of that id", self::path(root))))?;
    let source = [EditStep::Key("sources".to_owned()), EditStep::Item(place)];
    change(root, &set_fields(&source, fields), stem, failed)
}

fn set_fields(within: &[EditStep], fields: Map<String, Value>) -> Vec<ValueEdit> {
    let set = |(field, value)| ValueEdit::Set([within, &[EditStep::Key(field)]].concat(), value);
    fields.into_iter().map(set).collect()
}

fn change(
    root: &Path,
    changes: &[ValueEdit],
    stem: &str,
    failed: impl Fn(&str) -> String,
) -> Result<(), OperationError> {
    let edited = text(root).and_then(|text| edit::apply(&text, changes));
    let Some(text) = edited.map_err(|why| failed(&why))? else { return Ok(()) };
    files::write(root, path(root), &text, stem).map_err(|error| error.described(failed))
}

fn text(root: &Path) -> Result<String, String> {
    let given = path(root);
    let found = read_at(&resolve(root, given, FileAccess::Read)?);
    let found =
        found.map_err(|why| format!("cannot read `{given}` in {}: {why}", root.display()))?;
    found
        .ok_or_else(|| format!("no `{CONFIG}` in {}: run this where the corpus is", root.display()))
}

fn broken(root: &Path, why: &str) -> String {
    format!("`{}` in {} cannot be used: {why}", path(root), root.display())
}

/// Returns the index of the source with an id.
fn place_of(config: &Value, id: &str) -> Result<Option<usize>, String> {
    match config.get("sources") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(sources)) => {
            let is_it = |source: &Value| source.get("id").and_then(name).as_deref() == Some(id);
            Ok(sources.iter().position(is_it))
        }
        Some(_) => Err("its `sources` is not a list".to_owned()),
    }
}

/// Returns an id as text: YAML reads an id of digits as a number.
fn name(id: &Value) -> Option<String> {
    match id {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn ground(config: &str) -> (tempfile::TempDir, PathBuf) {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        std::fs::create_dir(root.join("data")).expect("made");
        std::fs::write(root.join(CONFIG), config).expect("written");
        (kept, root)
    }

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).expect("a map")
    }

    #[test]
    fn add_and_update_of_a_source_are_idempotent() {
        let (_kept, root) = &ground("# ours\nname: x\nsources: []\n");
        let spec = || map(json!({"id": "a", "type": "git", "url": "u"}));
        for _ in 0..2 {
            add_source(root, spec(), "s").expect("added, or there");
        }
        assert_eq!(source_exists(root, "a"), Ok(true));
        assert_eq!(source_exists(root, "b"), Ok(false));
        let why = add_source(root, map(json!({"id": "a"})), "s").expect_err("another").to_string();
        assert!(
            why.contains("has another of that id; change that one with update_source"),
            "{why}"
        );
        for _ in 0..2 {
            update_source(root, "a", map(json!({"url": "v", "depth": 2})), "s").expect("changed");
        }
        let expected = json!([{"id": "a", "type": "git", "url": "v", "depth": 2}]);
        assert_eq!(read(root).expect("read")["sources"], expected);
        let text = std::fs::read_to_string(root.join(CONFIG)).expect("there");
        assert!(text.starts_with("# ours\nname: x\n"), "{text}");
    }

    #[test]
    fn added_keys_have_the_order_in_which_they_are_given() {
        let (_kept, root) = &ground("name: x\nsources: []\n");
        let source = json!({"id": "b", "type": "git", "branch": "main", "at": {"z": 1, "a": 2}});
        add_source(root, map(source), "s").expect("added");
        let fields = json!({"url": "u", "depth": 1, "branch": "next"});
        update_source(root, "b", map(fields), "s").expect("changed");
        write_entry(root, "new", json!({"y": {"q": 1, "c": 2}, "b": 3}), "s").expect("set");
        update_index(root, map(json!({"last": 1, "first": 2})), "s").expect("set");
        let text = std::fs::read_to_string(root.join(CONFIG)).expect("there");
        let order = |text: &str| -> Vec<String> {
            let keys = text.lines().filter_map(|line| line.split_once(':'));
            keys.map(|(key, _)| key.trim_matches(['-', ' ', '"']).to_owned()).collect()
        };
        let expected = "name sources id type branch at z a url depth new y q c b index last first";
        assert_eq!(order(&text).join(" "), expected, "{text}");
        write(root, Some(map(json!({"z": 1, "b": 2, "sources": [], "name": "y"}))), "s")
            .expect("replaced");
        let text = std::fs::read_to_string(root.join(CONFIG)).expect("there");
        assert_eq!(order(&text), ["name", "sources", "z", "b"], "{text}");
    }

    #[test]
    fn invalid_source_change_is_an_error_with_reason() {
        let (_kept, root) = &ground("sources:\n  - id: 7\n");
        assert_eq!(source_exists(root, "7"), Ok(true));
        let why = update_source(root, "b", Map::new(), "s").expect_err("there is none").to_string();
        assert!(why.ends_with("`data/config.yaml` has none of that id"), "{why}");
        let why = update_source(root, "7", map(json!({"id": "8"})), "s")
            .expect_err("refused")
            .to_string();
        assert!(why.contains("its id cannot be changed"), "{why}");
        let why = add_source(root, map(json!({"url": "u"})), "s").expect_err("refused").to_string();
        assert_eq!(why, "cannot add the source: its spec has no `id`");
        assert!(clone_of("../x").is_err() && clone_of("..").is_err());
        assert_eq!(clone_of("a"), Ok(".source/a".to_owned()));
    }

    #[test]
    fn write_entry_sets_value_at_dotted_key() {
        let (_kept, root) = &ground("a:\n  b: 1 # one\nlist: [{x: 1}]\n");
        write_entry(root, "a.b", json!(2), "s").expect("set");
        write_entry(root, "a.c.d", json!([true]), "s").expect("set");
        write_entry(root, "list.0.x", json!(3), "s").expect("set");
        let expected = json!({"a": {"b": 2, "c": {"d": [true]}}, "list": [{"x": 3}]});
        assert_eq!(read(root), Ok(expected));
        let why = write_entry(root, "list.x", json!(3), "s").expect_err("refused").to_string();
        assert_eq!(why, "cannot set `list.x`: a list has no key `x`");
        assert!(write_entry(root, "a..b", json!(3), "s").is_err());
        write_entry(root, ".list[-1].x", json!(4), "s").expect("set");
        write_entry(root, "list[0][\"a-b\"]", json!(5), "s").expect("set");
        let text = std::fs::read_to_string(root.join(CONFIG)).expect("there");
        assert!(text.contains("# one"), "{text}");
        assert_eq!(read(root).expect("read")["list"], json!([{"x": 4, "a-b": 5}]));
        let why = write_entry(root, "list[1].x", json!(3), "s").expect_err("refused").to_string();
        assert_eq!(why, "cannot set `list[1].x`: `list` has 1 elements, and no `[1]`");
        let why = write_entry(root, "new[0].x", json!(3), "s").expect_err("refused").to_string();
        assert_eq!(why, "cannot set `new[0].x`: `new` is not a list, so it has no `[0]`");
    }

    #[test]
    fn missing_or_broken_config_error_names_its_path() {
        let (_kept, root) = &ground("a: [\n");
        assert!(read(root).expect_err("broken").starts_with("`data/config.yaml` in /"));
        assert!(source_exists(root, "a").is_err());
        std::fs::remove_file(root.join(CONFIG)).expect("removed");
        assert_eq!(source_exists(root, "a"), Ok(false));
        let why = read(root).expect_err("missing");
        assert!(why.starts_with("no `data/config.yaml` in /"), "{why}");
        assert_eq!(index_is_placeholder(root), Ok(false));
        std::fs::write(root.join(INDEX), "> Run hiivmind-corpus-build to fill it")
            .expect("written");
        assert_eq!(index_is_placeholder(root), Ok(true));
    }
}
