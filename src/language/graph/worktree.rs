//! Tells whether the agent that begins in a graph works in a git worktree of its own, and whether snapshots of it are made.

use crate::domain::agent::AgentOptions;
use crate::language::yaml::content::YamlContent;
use crate::language::yaml::tree::{self, YamlFileKind};

/// The keys of a graph whose agent has a worktree: whether it has one, and whether snapshots of it are made.
pub(super) const KEYS: [&str; 2] = ["worktree", "snapshots"];

/// Returns the options of the agent that begins in a graph with this text. A graph that cannot be read gives none.
#[must_use]
pub fn worktree_options(text: &str) -> AgentOptions {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tree::parse(YamlFileKind::GRAPH, text).0;
    let entries = root.as_ref().and_then(|root| match &root.value {
        YamlContent::Map(entries) => Some(entries),
        _ => None,
    });
    let says = |key: &str, wanted: bool| {
        let entry = entries.and_then(|entries| entries.iter().find(|entry| &*entry.key == key));
        entry
            .is_some_and(|entry| matches!(entry.value.value, YamlContent::Bool(is) if is == wanted))
    };
    let [worktree, snapshots] = KEYS;
    AgentOptions {
        worktree: says(worktree, true),
        no_snapshots: says(snapshots, false),
        ..AgentOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_booleans_at_the_top_count() {
        let options = worktree_options("name: x\nworktree: true\nsnapshots: false\n");
        assert!(options.worktree && options.no_snapshots);
        for text in [
            "worktree: false",
            "worktree: 'true'\nsnapshots: 'false'",
            "nodes: { worktree: true, snapshots: false }",
            "a: [",
            "snapshots: true",
            "",
        ] {
            assert_eq!(worktree_options(text), AgentOptions::default(), "{text}");
        }
    }
}
