//! The YAML files of workflows as JSON Schema, for editors: the keys are those that the readers know.
//!
//! The schemas are of draft-07, which the language servers for YAML know best.

mod graph;
pub(crate) mod shape;

use serde_json::{Value, json};

use super::cases;
use super::graph::vocabulary::GraphVocabulary;
use super::keys::KeySpec;
use super::manifest::RawManifest;
use super::prompt::frontmatter::RawFrontmatter;
use super::replies;

/// The version of the schemas.
const VERSION: u32 = 1;

/// A kind of file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSchema {
    /// The head of a prompt.
    Frontmatter,
    /// The manifest of a workflow.
    Manifest,
    /// The scripted replies of a workflow.
    Replies,
    /// A graph.
    Graph,
    /// The test cases of a workflow.
    Tests,
}

impl FileSchema {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Frontmatter, Self::Manifest, Self::Replies, Self::Graph, Self::Tests];

    /// Returns the name of the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frontmatter => "frontmatter",
            Self::Manifest => "raymond-yaml",
            Self::Replies => "replies",
            Self::Graph => "graph",
            Self::Tests => "tests",
        }
    }

    /// Returns the name of the file that the schema is kept in.
    pub fn file_name(self) -> String {
        format!("{}-v{VERSION}.json", self.name())
    }

    /// Returns whether a key may stand at the top of such a file: in the head of a prompt, or in the manifest.
    pub(crate) fn has_key(self, key: &str) -> bool {
        let keys = match self {
            Self::Frontmatter => RawFrontmatter::KEYS,
            Self::Manifest => RawManifest::KEYS,
            Self::Replies | Self::Graph | Self::Tests => return false,
        };
        with_options(keys)["properties"].get(key).is_some()
    }

    /// Returns the schema. The vocabulary is that of graphs.
    pub fn schema(self, vocabulary: &GraphVocabulary) -> Value {
        let (title, mut schema) = match self {
            Self::Frontmatter => {
                ("the frontmatter of a prompt", with_options(RawFrontmatter::KEYS))
            }
            Self::Manifest => {
                ("raymond.yaml, the manifest of a workflow", with_options(RawManifest::KEYS))
            }
            Self::Replies => {
                ("replies.yaml, the scripted replies of a workflow", replies::file_shape())
            }
            Self::Graph => ("a graph", graph::shape(vocabulary)),
            Self::Tests => ("tests/*.yaml, test cases of a workflow", cases::file_shape()),
        };
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema["$id"] = json!(format!("urn:raymond:{}:v{VERSION}", self.name()));
        schema["title"] = json!(format!("raymond: {title}"));
        schema
    }
}

/// Returns a mapping with these keys and those of the options of turns, of which it may have keys of its own.
fn with_options(keys: &[KeySpec]) -> Value {
    let mut mapping = shape::mapping(keys, &[]);
    for (key, option) in graph::properties() {
        if !keys.iter().any(|own| own.name == key) {
            mapping["properties"][key] = option;
        }
    }
    mapping
}

#[cfg(test)]
mod tests;
