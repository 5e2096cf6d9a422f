//! Environment variables: each one that the code names.

use std::collections::BTreeSet;

use regex::Regex;

use super::page::spans;
use super::{reference, root};

/// The files that name variables which raymond neither reads nor sets: those that a workflow may not set by
/// itself.
const OTHERS: [&str; 1] = ["crates/model/src/widening.rs"];

/// Returns the texts of all source files but the tests and the tables of codes.
fn sources() -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_test = path.to_string_lossy().ends_with("tests.rs")
                || path.iter().any(|part| part == "tests");
            if path.is_dir() {
                folders.push(path);
            } else if !is_test && !OTHERS.iter().any(|other| path.ends_with(other)) {
                let text = std::fs::read_to_string(path).expect("a source file");
                texts.push(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
            }
        }
    }
    texts
}

#[test]
fn environment_lists_each_variable_that_the_code_names() {
    // Names with an underscore are found wherever they stand as a text of their own; of the others those that are read or
    // set. Names of constants are no texts, and `CARGO_PKG_VERSION` and its like are read by the compiler.
    let name = Regex::new(r#""([A-Z]+(?:_[A-Z0-9]+)+)""#).expect("a pattern");
    let used = Regex::new(r#"(?:env|env_remove|var|var_os)\("([A-Z]+)""#).expect("a pattern");
    let mut known = BTreeSet::new();
    for text in sources() {
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let found = name.captures_iter(line).chain(used.captures_iter(line));
            known.extend(found.map(|found| found[1].to_owned()));
        }
    }
    known.retain(|name| !name.starts_with("CARGO_PKG_"));
    assert!(known.contains("HOME") && known.contains("SSH_AUTH_SOCK"), "{known:?}");
    let page = reference("environment.md");
    let listed: BTreeSet<&str> = spans(&page).collect();
    let is_listed = |name: &String| {
        listed.contains(name.as_str()) || listed.contains(format!("{name}*").as_str())
    };
    let missing: Vec<&String> = known.iter().filter(|one| !is_listed(one)).collect();
    assert!(missing.is_empty(), "environment.md does not list {missing:?}");
}
