//! Tags, frontmatter, `raymond.yaml`, replies and programs: each attribute, nested key, form and keyword.

use std::collections::BTreeSet;

use raymond::domain::transition::TagName;
use raymond::language::graph::vocabulary::GraphVocabulary;
use raymond::language::program::reader::{METADATA, ROLE_KEYWORDS, forms};
use raymond::language::schema::FileSchema;
use raymond::language::turn_options;
use raymond::plugin::schema::{ProtocolPart, schema};
use serde_json::Value;

use super::page::{listed, row_of, rows, section, spans};
use super::{keys_below, reference};

/// The keys of a transition's JSON that are not attributes of its tag.
const NO_ATTRIBUTES: [&str; 8] =
    ["tag", "target", "scope", "variables", "also", "payload", "question", "structured"];

/// Returns the attributes that a tag takes, from the type that it is read into.
fn attributes(tag: TagName) -> BTreeSet<String> {
    let schema = schema(ProtocolPart::All);
    let variants = schema["$defs"]["Transition"]["oneOf"].as_array().expect("variants");
    let own = |variant: &&Value| variant["properties"]["tag"]["const"] == tag.name();
    let own = variants.iter().find(own).expect("a tag is a variant");
    let keys = own["properties"].as_object().expect("a mapping").keys();
    let attributes = keys.filter(|key| !NO_ATTRIBUTES.contains(&key.as_str()));
    attributes.map(|key| key.trim_end_matches("_ms").to_owned()).collect()
}

/// Checks that the table names the tags of each attribute.
#[track_caller]
fn assert_attributes(page: &str, table: &str) {
    let mut wrong = Vec::new();
    for tag in TagName::ALL {
        for attribute in attributes(*tag) {
            let row = row_of(table, &attribute);
            if !row.is_some_and(|row| spans(&row[1]).any(|span| span == tag.name())) {
                wrong.push(format!("{attribute} of {tag}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{page} does not list {wrong:?}");
}

#[test]
fn tags_lists_each_attribute_of_each_tag() {
    let page = reference("tags.md");
    let before = page.split("\n## ").next().expect("a text before the first section");
    assert_attributes("tags.md", before);
}

#[test]
fn policy_lists_each_attribute_of_each_tag() {
    assert_attributes("frontmatter.md", &section(&reference("frontmatter.md"), "Policy"));
}

/// The keys with keys of their own, and the sections that list these.
const NESTED: [(FileSchema, &str, &[&str]); 6] = [
    (FileSchema::Frontmatter, "allowed_transitions", &["Policy"]),
    (FileSchema::Frontmatter, "evaluator", &["Evaluator", "Policy"]),
    (FileSchema::Frontmatter, "supervision", &["Supervision"]),
    (FileSchema::Manifest, "supervision", &["Supervision"]),
    (FileSchema::Manifest, "inputs", &["Folders"]),
    (FileSchema::Manifest, "plugins", &["Plug-ins", "Supervision"]),
];

#[test]
fn each_nested_key_is_listed_in_its_section() {
    let vocabulary = GraphVocabulary::new();
    let pages =
        [(FileSchema::Frontmatter, "frontmatter.md"), (FileSchema::Manifest, "raymond-yaml.md")];
    for (file, page) in pages {
        let schema = file.schema(&vocabulary);
        for (key, shape) in schema["properties"].as_object().expect("a mapping") {
            let nested = keys_below(shape);
            if nested.is_empty() || turn_options::KEYS.contains(&key.as_str()) {
                continue;
            }
            let (_, _, headings) =
                NESTED.iter().find(|row| row.0 == file && row.1 == key).unwrap_or_else(|| {
                    panic!("`{key}` has keys of its own: say here which section lists them")
                });
            let own = headings.iter().map(|heading| section(&reference(page), heading));
            let listed = listed(&own.collect::<Vec<_>>().join("\n"));
            let missing: Vec<_> = nested.iter().filter(|key| !listed.contains(*key)).collect();
            assert!(missing.is_empty(), "{page} does not list {missing:?} in {headings:?}");
        }
    }
}

#[test]
fn replies_lists_each_key_of_a_reply() {
    let known = keys_below(&FileSchema::Replies.schema(&GraphVocabulary::new()));
    assert!(known.contains("repeat"), "{known:?}");
    let listed = listed(&section(&reference("replies.md"), "A reply"));
    let missing: Vec<&String> = known.iter().filter(|key| !listed.contains(*key)).collect();
    assert!(missing.is_empty(), "replies.md does not list {missing:?}");
}

#[test]
fn programs_lists_each_form_with_its_keywords() {
    let page = reference("programs.md");
    let rows = rows(&page);
    let mut missing = Vec::new();
    for (form, keywords) in forms() {
        let head = format!("`{form}`");
        let own: Vec<&Vec<String>> = rows.iter().filter(|row| row[0] == head).collect();
        // `await` takes the same as `wait`, and its row says so.
        let is_listed = |keyword: &str| {
            own.iter().any(|row| row[1] == "the same" || row[1].contains(&format!("`:{keyword}`")))
        };
        missing.extend(own.is_empty().then(|| head.clone()));
        let unknown = keywords.iter().filter(|keyword| !own.is_empty() && !is_listed(keyword));
        missing.extend(unknown.map(|keyword| format!("{head} :{keyword}")));
    }
    assert!(missing.is_empty(), "programs.md does not list {missing:?}");
}

#[test]
fn programs_lists_each_key_of_metadata_and_roles() {
    let page = reference("programs.md");
    let metadata = listed(&section(&page, "Metadata"));
    let roles = listed(&section(&page, "Roles"));
    let missing: Vec<&str> = METADATA.into_iter().filter(|key| !metadata.contains(*key)).collect();
    assert!(missing.is_empty(), "programs.md does not list {missing:?} in Metadata");
    let own = ROLE_KEYWORDS.iter().filter(|key| !turn_options::KEYWORDS.contains(key));
    let missing: Vec<_> = own.filter(|key| !roles.contains(&format!(":{key}"))).collect();
    assert!(missing.is_empty(), "programs.md does not list {missing:?} in Roles");
}
