//! The schemas for editors: the kept files equal the printed ones, and all samples fit them.

use std::fs;
use std::path::{Path, PathBuf};

use raymond::domain::operation::RecoveryClass;
use raymond::language::graph::vocabulary::{CustomTypeSpec, GraphVocabulary, TypeRole};
use raymond::language::schema::FileSchema;
use serde_json::Value;

use crate::support::Test;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the built-in types, and those of the example with its own types.
fn vocabulary() -> GraphVocabulary {
    let mut vocabulary = GraphVocabulary::new();
    let types = [("in_stock", TypeRole::Precondition), ("reserve", TypeRole::Consequence)];
    for (name, role) in types {
        let (required, optional) = (vec!["item".to_owned()], vec!["count".to_owned()]);
        let own = CustomTypeSpec { role, required, optional, class: RecoveryClass::Uncertain };
        vocabulary.add(name, own).expect("a new name");
    }
    vocabulary
}

#[test]
fn printed_schemas_match_committed_files() {
    // `RAYMOND_RENEW=1 cargo test --test it schema` writes them anew.
    for file in FileSchema::ALL {
        let kept = root().join("schema").join(file.file_name());
        let printed = Test::new().raymond(&["schema", file.name()]).ok().stdout.clone();
        if std::env::var_os("RAYMOND_RENEW").is_some() {
            fs::write(&kept, &printed).expect("written");
        }
        let known = fs::read_to_string(&kept).unwrap_or_default();
        assert!(
            known == printed,
            "{} has changed; renew it: RAYMOND_RENEW=1 cargo test --test it schema",
            kept.display()
        );
    }
}

#[test]
fn description_of_the_page_matches_the_kept_file() {
    let kept = root().join("schema/openapi.json");
    let made = serde_json::to_string_pretty(&raymond::cli::serve::openapi::document());
    let made = made.expect("JSON") + "\n";
    if std::env::var_os("RAYMOND_RENEW").is_some() {
        fs::write(&kept, &made).expect("written");
    }
    let known = fs::read_to_string(&kept).unwrap_or_default();
    assert!(
        known == made,
        "{} has changed; renew it: RAYMOND_RENEW=1 cargo test --test it schema",
        kept.display()
    );
}

#[test]
fn plugin_schema_is_printed_by_default() {
    let default = Test::new().raymond(&["schema"]).ok().stdout.clone();
    assert_eq!(Test::new().raymond(&["schema", "plugin"]).ok().stdout, default);
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Returns the kind of a file, and its YAML.
fn yaml_of(path: &Path) -> Option<(FileSchema, String)> {
    let text = fs::read_to_string(path).ok()?;
    let name = path.file_name()?.to_str()?;
    match (name, path.extension()?.to_str()?) {
        ("raymond.yaml", _) => Some((FileSchema::Manifest, text)),
        ("replies.yaml", _) => Some((FileSchema::Replies, text)),
        ("workflow.yaml", _) => Some((FileSchema::Graph, text)),
        (_, "yaml") if path.parent()?.file_name()? == "tests" => Some((FileSchema::Tests, text)),
        (_, "md") => {
            let head = text.strip_prefix("---\n")?.split_once("\n---\n")?.0.to_owned();
            Some((FileSchema::Frontmatter, head))
        }
        _ => None,
    }
}

#[test]
fn each_sample_and_example_fits_its_schema() {
    let mut found = Vec::new();
    files(&root().join("workflows"), &mut found);
    files(&root().join("examples"), &mut found);
    let mut counts = [0; FileSchema::ALL.len()];
    for path in found {
        let Some((file, yaml)) = yaml_of(&path) else { continue };
        let schema = file.schema(&vocabulary());
        let validator = jsonschema::validator_for(&schema).expect("it is a schema");
        let value: Value = serde_yaml::from_str(&yaml).expect("YAML");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        counts[FileSchema::ALL.iter().position(|known| *known == file).expect("known")] += 1;
    }
    assert!(counts[0] > 10 && counts[2] > 10 && counts[3] > 2, "{counts:?}");
}

#[test]
fn editor_schema_comments_point_to_committed_schemas() {
    // The line that names the schema leads to it.
    let mut found = Vec::new();
    files(&root().join("workflows"), &mut found);
    files(&root().join("examples"), &mut found);
    for path in found {
        let Some((file, text)) = yaml_of(&path) else { continue };
        if file == FileSchema::Frontmatter {
            continue; // It is a part of a file that is no YAML.
        }
        if path.starts_with(root().join("examples")) {
            continue; // It has types of its own, which the kept schema does not know.
        }
        let line = text.lines().next().unwrap_or_default();
        let schema = line.strip_prefix("# yaml-language-server: $schema=").unwrap_or_default();
        let named = path.parent().expect("a folder").join(schema);
        let kept = root().join("schema").join(file.file_name());
        assert_eq!(named.canonicalize().ok(), kept.canonicalize().ok(), "{}", path.display());
    }
}

#[test]
fn pages_of_files_show_the_editor_line() {
    // The pages about these files show the line, with the name of the kept schema.
    let pages = [
        (FileSchema::Manifest, "raymond-yaml.md"),
        (FileSchema::Replies, "replies.md"),
        (FileSchema::Graph, "graphs.md"),
    ];
    for (file, page) in pages {
        let text = fs::read_to_string(root().join("docs/reference").join(page)).expect("a page");
        let line = format!("\n# yaml-language-server: $schema=../../schema/{}\n", file.file_name());
        assert!(text.contains(&line), "{page} does not show{line}");
    }
}
