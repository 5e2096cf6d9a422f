//! The options of the agent that begins in a graph: its worktree, and the hosts that it may live on.

use crate::domain::agent::AgentOptions;
use crate::domain::host::HostLabel;
use crate::language::yaml::content::YamlContent;
use crate::language::yaml::tree::{self, YamlFileKind};

/// The keys that say whether the agent has a worktree, and whether snapshots of it are made.
pub(super) const WORKTREE_KEYS: [&str; 2] = ["worktree", "snapshots"];
/// The key with the label of its hosts.
pub(super) const HOST_KEY: &str = "host";

/// Returns the options of the agent that begins in a graph with this text. A graph that cannot be read gives none.
pub fn begun_agent_options(text: &str) -> AgentOptions {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tree::parse(YamlFileKind::GRAPH, text).0;
    let entries = root.as_ref().and_then(|root| match &root.value {
        YamlContent::Map(entries) => Some(entries),
        _ => None,
    });
    let content = |key: &str| {
        let entry = entries.and_then(|entries| entries.iter().find(|entry| &*entry.key == key));
        entry.map(|entry| &entry.value.value)
    };
    let says = |key: &str, wanted: bool| {
        content(key).is_some_and(|value| matches!(value, YamlContent::Bool(is) if *is == wanted))
    };
    let host = match content(HOST_KEY) {
        Some(YamlContent::Text(label)) => HostLabel::parse(&label.text).ok(),
        _ => None,
    };
    let [worktree, snapshots] = WORKTREE_KEYS;
    AgentOptions {
        worktree: says(worktree, true),
        no_snapshots: says(snapshots, false),
        host,
        ..AgentOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_of_hosts_is_a_plain_text() {
        let host = |text: &str| begun_agent_options(text).host.map(|label| label.to_string());
        assert_eq!(host("name: x\nhost: gpu\n"), Some("gpu".to_owned()));
        for text in ["host: a b", "host: true", "nodes: { host: gpu }", "host: [gpu]"] {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn only_booleans_at_the_top_count() {
        let options = begun_agent_options("name: x\nworktree: true\nsnapshots: false\n");
        assert!(options.worktree && options.no_snapshots);
        for text in [
            "worktree: false",
            "worktree: 'true'\nsnapshots: 'false'",
            "nodes: { worktree: true, snapshots: false }",
            "a: [",
            "snapshots: true",
            "",
        ] {
            assert_eq!(begun_agent_options(text), AgentOptions::default(), "{text}");
        }
    }
}
