//! The reference is complete and right, as far as a test can tell: each page lists the names that the code
//! has, its examples pass `raymond check`, and no link of the docs is dead.

mod environment;
mod example_runs;
mod files;
mod graphs;
mod json;
mod json_output;
mod languages;
mod options;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use raymond::cli::args::Cli;
use raymond::cli::exit::CliExitCode;
use raymond::domain::transition::TagName;
use raymond::language::graph::vocabulary::{GraphVocabulary, TypeRole};
use raymond::language::schema::FileSchema;
use raymond::language::{graph, program, prompt};
use regex::Regex;
use serde_json::Value;

use self::page::listed;
use crate::support::Test;

/// A kind of example: the info string of its fence, the name of its file, and a file that must stand beside
/// it.
const EXAMPLES: [(&str, &str, &str); 5] = [
    ("markdown prompt", "START.md", "notes.txt"),
    ("yaml raymond.yaml", "raymond.yaml", "START.md"),
    ("yaml replies", "replies.yaml", "START.md"),
    ("yaml graph", "workflow.yaml", "notes.txt"),
    ("lisp program", "workflow.lisp", "notes.txt"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(path)).expect("there is such a page")
}

fn reference(page: &str) -> String {
    read(Path::new("docs/reference").join(page))
}

/// Returns all markdown files of the docs, and those at the top.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec!["README.md".into(), "CONTRIBUTING.md".into(), "SECURITY.md".into()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder").flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Checks that a page lists all these names.
#[track_caller]
fn assert_lists<'a>(page: &str, known: impl IntoIterator<Item = &'a str>) {
    let listed = listed(&reference(page));
    let missing: Vec<&str> = known.into_iter().filter(|name| !listed.contains(*name)).collect();
    assert!(missing.is_empty(), "{page} does not list {missing:?}");
}

/// Returns the keys of all mappings below a shape of a schema, not those of its own place.
fn keys_below(shape: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let own = shape.as_object().into_iter().flatten();
    for (name, part) in own {
        if let ("properties", Some(properties)) = (name.as_str(), part.as_object()) {
            found.extend(properties.keys().cloned());
            found.extend(properties.values().flat_map(keys_below));
        } else if !["if", "then", "else", "not"].contains(&name.as_str()) {
            found.extend(keys_below(part));
        }
    }
    found.extend(shape.as_array().into_iter().flatten().flat_map(keys_below));
    found
}

fn keys(schema: FileSchema) -> Vec<String> {
    let document = schema.schema(&GraphVocabulary::new());
    let properties = document["properties"].as_object().expect("a schema of a mapping");
    properties.keys().cloned().collect()
}

#[test]
fn commands_page_lists_each_command_and_option() {
    let cli = Cli::command();
    let listed = listed(&reference("commands.md"));
    let mut missing = Vec::new();
    let mut commands: Vec<&clap::Command> = cli.get_subcommands().collect();
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let name = command.get_name();
        if !listed.iter().any(|one| one.split(' ').any(|word| word == name)) {
            missing.push(name.to_owned());
        }
        let options = command.get_arguments().filter(|option| !option.is_hide_set());
        for option in options.filter_map(clap::Arg::get_long).filter(|name| *name != "help") {
            let option = format!("--{option}");
            if !listed.contains(&option) && !missing.contains(&option) {
                missing.push(option);
            }
        }
    }
    assert!(missing.is_empty(), "commands.md does not list {missing:?}");
}

#[test]
fn exit_codes_page_lists_each_code() {
    let codes: Vec<String> = CliExitCode::ALL.iter().map(|code| code.code().to_string()).collect();
    assert_lists("exit-codes.md", codes.iter().map(String::as_str));
}

/// Returns the texts of all source files but the tests and the tables of codes.
fn sources() -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !(path.to_string_lossy().ends_with("tests.rs")
                || path.ends_with("codes.rs")
                || path.iter().any(|part| part == "tests"))
            {
                let text = fs::read_to_string(path).expect("a source file");
                texts.push(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
            }
        }
    }
    texts
}

#[test]
fn environment_page_lists_each_variable_of_the_code() {
    let variable = Regex::new("RAYMOND_[A-Z]+").expect("a pattern");
    // Only tests set these.
    let of_tests = ["RAYMOND_MEMINFO", "RAYMOND_FAULT", "RAYMOND_NO", "RAYMOND_CLOCK"];
    let mut known = BTreeSet::new();
    for text in sources() {
        known.extend(variable.find_iter(&text).map(|found| found.as_str().to_owned()));
    }
    known.retain(|name| !of_tests.iter().any(|other| name.starts_with(other)));
    assert_lists("environment.md", known.iter().map(String::as_str));
}

#[test]
fn tags_page_lists_each_tag() {
    assert_lists("tags.md", TagName::ALL.iter().map(|tag| tag.name()));
}

#[test]
fn frontmatter_and_manifest_pages_list_each_key() {
    let (frontmatter, manifest) = (keys(FileSchema::Frontmatter), keys(FileSchema::Manifest));
    assert_lists("frontmatter.md", frontmatter.iter().map(String::as_str));
    assert_lists("raymond-yaml.md", manifest.iter().map(String::as_str));
}

#[test]
fn graphs_page_lists_each_key_node_condition_and_action() {
    let vocabulary = GraphVocabulary::new();
    let keys = keys(FileSchema::Graph);
    assert_lists("graphs.md", keys.iter().map(String::as_str));
    for role in [TypeRole::Precondition, TypeRole::Consequence] {
        assert_lists("conditions-and-actions.md", vocabulary.names(role));
    }
}

#[test]
fn reference_pages_list_each_check_code() {
    let pages: [(&str, &[(&str, &str)]); 3] = [
        ("frontmatter.md", &prompt::codes::CODES),
        ("graphs.md", &graph::keys::CODES),
        ("programs.md", &program::codes::CODES),
    ];
    for (page, codes) in pages {
        assert_lists(page, codes.iter().map(|(code, _)| *code));
    }
}

#[test]
fn graph_code_table_matches_codes_used_in_source() {
    // WF401 and those above it occur in runs only.
    let code = Regex::new("WF[0-3][0-9]{2}").expect("a pattern");
    let mut used = BTreeSet::new();
    for text in sources() {
        used.extend(code.find_iter(&text).map(|found| found.as_str().to_owned()));
    }
    let table: BTreeSet<String> =
        graph::keys::CODES.iter().map(|(code, _)| (*code).to_owned()).collect();
    assert_eq!(used, table);
}

#[test]
fn reference_examples_are_valid() {
    let mut count = 0;
    for path in pages() {
        let page = read(&path);
        for (info, file, beside) in EXAMPLES {
            let fence = format!("```{info}\n");
            for block in page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()) {
                let test = Test::new()
                    .file(beside, b"Answer with <result>ok</result>")
                    .file(file, block.as_bytes());
                let outcome = test.raymond(&["check", ".", "--json"]);
                let found = outcome.json();
                let errors: Vec<&Value> = found["diagnostics"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    // Other files of the example's workflow do not exist.
                    .filter(|one| {
                        one["severity"] == "error"
                            && !["RF101", "RF201", "RF102"].iter().any(|code| one["code"] == *code)
                    })
                    .collect();
                assert!(errors.is_empty(), "{}: {errors:#?}\n{block}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 15, "only {count} examples were found");
}

#[test]
fn pages_have_no_dead_links() {
    let link = Regex::new(r"\]\(([^)#\s]+)(#[^)]*)?\)").expect("a pattern");
    let mut dead = Vec::new();
    for page in pages() {
        let folder = page.parent().unwrap_or(Path::new(""));
        for found in link.captures_iter(&read(&page)) {
            let target = &found[1];
            if !target.contains("://") && !root().join(folder).join(target).exists() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn summary_lists_each_page() {
    let summary = read("docs/SUMMARY.md");
    let missing: Vec<PathBuf> = pages()
        .into_iter()
        .filter_map(|page| page.strip_prefix("docs").ok().map(Path::to_owned))
        .filter(|page| page != Path::new("SUMMARY.md"))
        .filter(|page| !summary.contains(&format!("({})", page.display())))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
