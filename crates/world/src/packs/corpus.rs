//! The operations on corpora: their configuration and sources, lists of plug-ins, and old log files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::context::OperationContext;
use crate::files;
use crate::git::Git;
use crate::glob::{FileAccess, glob_directories, resolve};
use crate::on_disk::on_disk;
use crate::outcome::OperationError;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::operation::PackOperation;

mod config;
mod edit;

/// An operation of the pack.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CorpusOperation {
    ConfigExists,
    IndexExists,
    // Checks whether the index is still the initial index of a new corpus.
    IndexIsPlaceholder,
    SourceExists { id: String },
    SourceCloned { id: String },
    SourceHasUpdates { id: String },
    // Lists the plug-ins in the workspace: `{name, path, status, description, keywords}`.
    DiscoverPlugins { pattern: String },
    // Lists the plug-ins in the workspace and, unless `user` is false, those that a person has installed.
    DiscoverUserPlugins { pattern: String, home: String, user: Option<bool> },
    ReadConfig,
    // Sets an entry of the configuration; `path` is its keys with dots between them.
    WriteConfigEntry { path: String, value: Value },
    UpdateSource { id: String, fields: Map<String, Value> },
    // Replaces the configuration. Without a new configuration, only checks that the current one can be read.
    WriteConfig { config: Option<Map<String, Value>> },
    UpdateConfigIndexMetadata { fields: Map<String, Value> },
    UpdateMarketplaceJson { marketplace_path: String, plugin_name: String, plugin_path: String },
    // Keeps the log files from a date on, such as `2026-01-15`, and the newest ones up to a count. The answer is the
    // number of files that were removed.
    ApplyLogRetention { location: String, since: Option<String>, count: Option<u32> },
    AddSource { spec: Map<String, Value> },
}

/// Performs an operation of the pack.
pub(super) async fn perform(
    shared: &Arc<OperationContext>,
    stem: &str,
    operation: &PackOperation,
) -> Result<Value, OperationError> {
    let operation = Value::Object(operation.clone().into());
    let operation: CorpusOperation = serde_json::from_value(operation)
        .map_err(|_| "its parameters do not fit together".to_owned())?;
    if let CorpusOperation::SourceHasUpdates { id } = &operation {
        return Git { shared, stem }.has_updates(&config::clone_of(id)?).await;
    }
    let lock = match operation.edited(shared.root())? {
        Some(path) => Some(shared.lock_path(&path).await?),
        None => None,
    };
    let work = move |shared: &OperationContext, stem: &str| operation.perform(shared.root(), stem);
    on_disk(shared, stem, lock, work).await
}

impl CorpusOperation {
    /// Returns the file that it edits: two edits of one file are not at the same time.
    fn edited(&self, root: &Path) -> Result<Option<PathBuf>, String> {
        Ok(match self {
            Self::AddSource { .. }
            | Self::UpdateSource { .. }
            | Self::WriteConfig { .. }
            | Self::UpdateConfigIndexMetadata { .. }
            | Self::WriteConfigEntry { .. } => Some(root.join(config::path(root))),
            Self::UpdateMarketplaceJson { marketplace_path, .. } => {
                Some(resolve(root, marketplace_path, FileAccess::Write)?)
            }
            _ => None,
        })
    }

    fn perform(self, root: &Path, stem: &str) -> Result<Value, OperationError> {
        Ok(match self {
            Self::ConfigExists => files::is_file(root, config::path(root))?.into(),
            Self::IndexExists => files::is_file(root, config::index(root))?.into(),
            Self::IndexIsPlaceholder => config::index_is_placeholder(root)?.into(),
            Self::SourceExists { id } => config::source_exists(root, &id)?.into(),
            Self::SourceCloned { id } => files::is_directory(root, &config::clone_of(&id)?)?.into(),
            Self::DiscoverPlugins { pattern } => installed(root, &pattern, None)?,
            Self::DiscoverUserPlugins { pattern, home, user } => {
                installed(root, &pattern, user.unwrap_or(true).then_some(&*home))?
            }
            Self::ReadConfig => config::read(root)?,
            Self::ApplyLogRetention { location, since, count } => {
                remove_old(root, &location, since.as_deref(), count)?.into()
            }
            Self::WriteConfig { config } => config::write(root, config, stem)?.into(),
            Self::UpdateConfigIndexMetadata { fields } => {
                config::update_index(root, fields, stem)?.into()
            }
            Self::UpdateMarketplaceJson { marketplace_path, plugin_name, plugin_path } => {
                enter(root, &marketplace_path, &plugin_name, &plugin_path, stem)?.into()
            }
            Self::WriteConfigEntry { path, value } => {
                config::write_entry(root, &path, value, stem)?.into()
            }
            Self::UpdateSource { id, fields } => {
                config::update_source(root, &id, fields, stem)?.into()
            }
            Self::AddSource { spec } => config::add_source(root, spec, stem)?.into(),
            // It is performed by git.
            Self::SourceHasUpdates { .. } => Value::Null,
        })
    }
}

/// Enters a plug-in into a list, or corrects its path there. The order of the list stays.
fn enter(
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

/// The ends of the names of log files.
const ENDS: [&str; 3] = [".yaml", ".json", ".md"];

/// Removes the log files from before a date, and all but the newest `count`. Returns the number of files that were
/// removed. Only files that have a date in their name count as log files.
fn remove_old(
    root: &Path,
    location: &str,
    since: Option<&str>,
    count: Option<u32>,
) -> Result<usize, String> {
    let directory = resolve(root, location, FileAccess::Read)?;
    // Without the directory, no log files exist.
    let Ok(entries) = std::fs::read_dir(&directory) else { return Ok(0) };
    let files = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let old = old(names, since, count);
    for name in &old {
        files::delete(root, &format!("{}/{name}", directory.display()))?;
    }
    Ok(old.len())
}

/// Returns the names of the files that are not kept.
fn old(names: Vec<String>, since: Option<&str>, count: Option<u32>) -> Vec<String> {
    let dated = names.into_iter().filter(|name| ENDS.iter().any(|end| name.ends_with(end)));
    let mut dated: Vec<(String, String)> =
        dated.filter_map(|name| Some((date(&name)?.to_owned(), name))).collect();
    dated.sort();
    dated.reverse();
    let kept = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let is_old = |(place, (date, _)): &(usize, (String, String))| {
        *place >= kept || since.is_some_and(|since| date.as_str() < since)
    };
    dated.into_iter().enumerate().filter(is_old).map(|(_, (_, name))| name).collect()
}

/// Returns the name from its date on, such as `2026-01-15-143022.yaml`.
fn date(name: &str) -> Option<&str> {
    let is_date = |part: &str| {
        let bytes = part.as_bytes();
        bytes.len() >= 10
            && bytes[..10].iter().enumerate().all(|(place, byte)| match place {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
    };
    name.char_indices().map(|(place, _)| &name[place..]).find(|part| is_date(part))
}

/// The directories below the workspace that plug-ins may be in.
const IN_WORKSPACE: [&str; 4] = [".claude-plugin/skills/", ".claude/skills/", "", "*/"];

/// The directories below a person's home that plug-ins may be in.
const IN_HOME: [&str; 2] = [".claude/skills/", ".claude/plugins/**/"];

/// Returns the plug-ins in the workspace, and with `home` also those that a person has installed, by their names. Of
/// two with one name that in the workspace counts.
fn installed(root: &Path, pattern: &str, home: Option<&str>) -> Result<Value, String> {
    if pattern.contains('/') {
        return Err(format!(
            "the pattern `{pattern}` is that of the name of a directory; write it without a `/`"
        ));
    }
    let mut found = BTreeMap::new();
    add(&mut found, root, String::new(), pattern, None);
    for within in IN_WORKSPACE {
        for below in glob_directories(root, &format!("{within}{pattern}/"))? {
            add(&mut found, &root.join(&below), below, pattern, None);
        }
    }
    if let Some(home) = home.map(Path::new).filter(|home| home.is_absolute()) {
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        for within in IN_HOME {
            for below in glob_directories(&home, &format!("{within}{pattern}/"))? {
                add(&mut found, &home.join(&below), below, pattern, Some(&home));
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Adds the plug-in in a directory, if there is one.
fn add(
    found: &mut BTreeMap<String, Value>,
    directory: &Path,
    below: String,
    pattern: &str,
    home: Option<&Path>,
) {
    let Ok(config) = config::read(directory) else { return };
    let text = |key: &str| config["corpus"][key].as_str().map(str::to_owned);
    let dir_name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let named = text("name").or_else(|| {
        let name = dir_name?;
        name.strip_prefix(beginning(pattern)).map(str::to_owned)
    });
    let Some(name) = named else { return };
    let has_index = directory.join(config::index(directory)).is_file();
    let status = match config::index_is_placeholder(directory) {
        Ok(false) if has_index => "built",
        _ => "placeholder",
    };
    let path = match home {
        Some(home) => home.join(&below).to_string_lossy().into_owned(),
        None if below.is_empty() => ".".to_owned(),
        None => below,
    };
    let plugin = json!({
        "name": name,
        "status": status,
        "description": text("description").or_else(|| text("display_name")).unwrap_or_default(),
        "path": path,
        "keywords": config["corpus"]["keywords"].as_array().cloned().unwrap_or_default(),
    });
    found.entry(name).or_insert(plugin);
}

/// Returns the beginning that all names of a pattern have.
fn beginning(pattern: &str) -> &str {
    pattern.find(['*', '?', '[', '{', '\\']).map_or("", |end| &pattern[..end])
}

#[cfg(test)]
mod marketplace_tests {
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

#[cfg(test)]
mod retention_tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "refresh-2026-01-15-100000.yaml",
        "refresh-2026-01-16-090000.yaml",
        "refresh-2026-01-16-100000.json",
        "README.md",
        "2026-01-01.txt",
        "notes.yaml",
    ];

    fn names() -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }

    #[test]
    fn files_before_date_and_beyond_count_are_old_and_undated_files_are_kept() {
        assert_eq!(old(names(), Some("2026-01-16"), None), [NAMES[0]]);
        assert_eq!(old(names(), None, Some(1)), [NAMES[1], NAMES[0]]);
        assert_eq!(old(names(), None, Some(0)).len(), 3);
        assert!(old(names(), None, None).is_empty());
    }

    #[test]
    fn old_files_are_removed_and_repetition_removes_none() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("there");
        assert_eq!(remove_old(&root, "logs/", None, Some(1)), Ok(0), "there is no directory");
        std::fs::create_dir(root.join("logs")).expect("made");
        for name in NAMES {
            std::fs::write(root.join("logs").join(name), "x").expect("written");
        }
        assert_eq!(remove_old(&root, "logs/", None, Some(1)), Ok(2));
        assert_eq!(remove_old(&root, "logs/", None, Some(1)), Ok(0));
        assert!(root.join("logs").join(NAMES[2]).exists());
        assert!(remove_old(&root, "../..", None, Some(0)).is_err());
    }
}

#[cfg(test)]
mod plugins_tests {
    use super::*;

    fn corpus(directory: &Path, config: &str, index: Option<&str>) {
        std::fs::create_dir_all(directory.join("data")).expect("made");
        std::fs::write(directory.join("data/config.yaml"), config).expect("written");
        if let Some(index) = index {
            std::fs::write(directory.join("data/index.md"), index).expect("written");
        }
    }

    const CORPORA: &str = "hiivmind-corpus-*";

    #[test]
    fn plugins_of_another_pattern_have_their_names_without_its_beginning() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("there");
        corpus(&root.join(".claude/skills/acme-docs-vue"), "a: 1\n", Some("# Index\n"));
        corpus(&root.join("acme-docs-react"), "corpus: {name: react-docs}\n", None);
        corpus(&root.join("hiivmind-corpus-polars"), "a: 1\n", None);
        let found = installed(&root, "acme-docs-*", None).expect("found");
        let named = |at: usize| (&found[at]["name"], &found[at]["status"]);
        assert_eq!(named(0), (&json!("react-docs"), &json!("placeholder")));
        assert_eq!(named(1), (&json!("vue"), &json!("built")));
        assert_eq!(found.as_array().map(Vec::len), Some(2));
        let why = installed(&root, "../*", None).expect_err("refused");
        assert!(why.contains("write it without a `/`"), "{why}");
    }

    #[test]
    fn corpora_outside_of_workspace_are_found_only_with_home() {
        let kept = tempfile::tempdir().expect("a directory");
        let (root, home) = (kept.path().join("work"), kept.path().join("home"));
        let polars = "corpus: {name: polars, keywords: [frames], description: Frames}\n";
        corpus(&root.join("hiivmind-corpus-polars"), polars, Some("# Index\n"));
        corpus(&root.join(".claude-plugin/skills/hiivmind-corpus-react"), "sources: []\n", None);
        corpus(&home.join(".claude/skills/hiivmind-corpus-polars"), polars, None);
        corpus(&home.join(".claude/plugins/cache/m/hiivmind-corpus-vue"), "a: 1\n", None);
        corpus(&root.join("hiivmind-corpus-broken"), "a: [\n", None);
        let root = root.canonicalize().expect("there");
        let inside = installed(&root, CORPORA, None).expect("found");
        let expected = json!([
            {
                "name": "polars", "status": "built", "description": "Frames",
                "path": "hiivmind-corpus-polars", "keywords": ["frames"],
            },
            {
                "name": "react", "status": "placeholder", "description": "",
                "path": ".claude-plugin/skills/hiivmind-corpus-react", "keywords": [],
            },
        ]);
        assert_eq!(inside, expected);
        let home = home.to_string_lossy();
        let all = installed(&root, CORPORA, Some(&home)).expect("found");
        let names: Vec<_> =
            all.as_array().expect("a list").iter().map(|entry| &entry["name"]).collect();
        assert_eq!(names, ["polars", "react", "vue"]);
        assert_eq!(all[0], expected[0], "that in the workspace counts");
        assert!(all[2]["path"].as_str().is_some_and(|path| path.starts_with('/')), "{all}");
    }

    #[test]
    fn workspace_that_is_a_corpus_is_listed() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("there");
        std::fs::write(root.join("config.yaml"), "corpus: {name: own}\n").expect("written");
        std::fs::write(root.join("index.md"), "Run hiivmind-corpus-build").expect("written");
        let found = installed(&root, CORPORA, None).expect("found");
        assert_eq!((&found[0]["name"], &found[0]["path"]), (&json!("own"), &json!(".")));
        assert_eq!(found[0]["status"], "placeholder");
    }
}
