//! Lists the plug-ins that are installed: directories with a name of a pattern, and a configuration.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::config;
use super::glob::glob_directories;

/// The directories below the workspace that plug-ins may be in.
const IN_WORKSPACE: [&str; 4] = [".claude-plugin/skills/", ".claude/skills/", "", "*/"];

/// The directories below a person's home that plug-ins may be in.
const IN_HOME: [&str; 2] = [".claude/skills/", ".claude/plugins/**/"];

/// Returns the plug-ins in the workspace, and with `home` also those that a person has installed, by their names. Of
/// two with one name that in the workspace counts.
pub(super) fn installed(root: &Path, pattern: &str, home: Option<&str>) -> Result<Value, String> {
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
mod tests {
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
        let found = installed(&root, CORPORA, None).expect("found");
        assert_eq!((&found[0]["name"], &found[0]["path"]), (&json!("own"), &json!(".")));
        assert_eq!(found[0]["status"], "placeholder");
    }
}
