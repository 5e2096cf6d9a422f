//! Tells whether the agent that begins in a graph works in a git worktree of its own.

use crate::language::yaml::content::YamlContent;
use crate::language::yaml::tree::{self, YamlFileKind};

/// The key of a graph whose agent has a worktree.
pub(super) const KEY: &str = "worktree";

/// Returns whether the text of a graph has `worktree: true`. A graph that cannot be read has none.
#[must_use]
pub fn has_worktree(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(root) = tree::parse(YamlFileKind::GRAPH, text).0 else { return false };
    let YamlContent::Map(entries) = &root.value else { return false };
    let entry = entries.iter().find(|entry| &*entry.key == KEY);
    entry.is_some_and(|entry| matches!(entry.value.value, YamlContent::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_at_the_top_gives_a_worktree() {
        assert!(has_worktree("name: x\nworktree: true\n"));
        for text in ["worktree: false", "worktree: 'true'", "nodes: { worktree: true }", "a: [", ""]
        {
            assert!(!has_worktree(text), "{text}");
        }
    }
}
