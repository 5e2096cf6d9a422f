//! Lists the corpora that are installed: directories with a configuration that names a corpus.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::config;
use super::glob::glob_directories;

/// The directories that may be corpora, below the workspace.
const IN_WORKSPACE: [&str; 4] = [
    ".claude-plugin/skills/hiivmind-corpus-*/",
    ".claude/skills/hiivmind-corpus-*/",
    "hiivmind-corpus-*/",
    "*/hiivmind-corpus-*/",
];

/// The directories that may be corpora, below a person's home.
const IN_HOME: [&str; 2] =
    [".claude/skills/hiivmind-corpus-*/", ".claude/plugins/**/hiivmind-corpus-*/"];

/// The beginning of the names of these directories.
const PREFIX: &str = "hiivmind-corpus-";

/// Returns the corpora in the workspace, and with `home` also those that a person has installed, by their names. Of
/// two with one name that in the workspace counts.
pub(super) fn installed(root: &Path, home: Option<&str>) -> Result<Value, String> {
    let mut found = BTreeMap::new();
    add(&mut found, root, String::new(), None);
    for pattern in IN_WORKSPACE {
        for below in glob_directories(root, pattern)? {
            add(&mut found, &root.join(&below), below, None);
        }
    }
    if let Some(home) = home.map(Path::new).filter(|home| home.is_absolute()) {
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        for pattern in IN_HOME {
            for below in glob_directories(&home, pattern)? {
                add(&mut found, &home.join(&below), below, Some(&home));
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Adds the corpus in a directory, if there is one.
fn add(found: &mut BTreeMap<String, Value>, directory: &Path, below: String, home: Option<&Path>) {
    let Ok(config) = config::read(directory) else { return };
    let text = |key: &str| config["corpus"][key].as_str().map(str::to_owned);
    let dir_name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let named = text("name").or_else(|| {
        let name = dir_name?;
        name.strip_prefix(PREFIX).map(str::to_owned)
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
    let corpus = json!({
        "name": name,
        "status": status,
        "description": text("description").or_else(|| text("display_name")).unwrap_or_default(),
        "path": path,
        "keywords": config["corpus"]["keywords"].as_array().cloned().unwrap_or_default(),
    });
    found.entry(name).or_insert(corpus);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(directory: &Path, config: &str, index: Option<&str>) {
        std::fs::create_dir_all(directory.join("data")).expect("made");
        std::fs::write(directory.join("data/config.yaml"), config).expect("written");
        if let Some(index) = index {
            std::fs::write(directory.join("data/index.md"), index).expect("written");
        }
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
        let inside = installed(&root, None).expect("found");
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
        let all = installed(&root, Some(&home)).expect("found");
        let names: Vec<_> =
            all.as_array().expect("a list").iter().map(|one| &one["name"]).collect();
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
        let found = installed(&root, None).expect("found");
        assert_eq!((&found[0]["name"], &found[0]["path"]), (&json!("own"), &json!(".")));
        assert_eq!(found[0]["status"], "placeholder");
    }
}
