//! Checks the states in which a graph begins agents, and reads the options of the agent that begins in a graph.
//!
//! The states have to be there, as far as they are written out.

use crate::diagnostic::quoted;
use crate::graph::reader::GraphReader;
use crate::source::{WorkflowSource, is_state};
use crate::yaml::tree::{self, YamlFileKind};
use crate::yaml::{YamlContent, YamlValue};
use raymond_model::agent::AgentOptions;
use raymond_model::host::HostLabel;
use raymond_model::id::{Folder, StateName};

/// The state of a folder in which agents begin, unless another one is named.
pub(super) const FIRST_STATE: &str = "START.md";

impl GraphReader<'_> {
    /// Reports a folder or a state that does not exist.
    pub(super) fn begins_in(&mut self, folder: Option<&YamlValue>, state: Option<&YamlValue>) {
        let source = self.source;
        let Some(node) = folder else { return self.state_in(source, state, None) };
        let Some(path) = written_out(node) else { return };
        let within = match Folder::parse(path) {
            Ok(folder) => source.within(&folder).map_err(|error| error.reason()),
            Err(error) => Err(error.to_string()),
        };
        match within {
            Ok(below) => self.state_in(&*below, state, Some(node)),
            Err(why) => self.no_target(node, path, &why),
        }
    }

    /// Reports a state that the folder lacks; `folder` is where the folder is named.
    fn state_in(
        &mut self,
        source: &dyn WorkflowSource,
        state: Option<&YamlValue>,
        folder: Option<&YamlValue>,
    ) {
        let Some(node) = state.or(folder) else { return };
        let name = match state {
            Some(state) => match written_out(state) {
                Some(name) => name,
                None => return,
            },
            None => FIRST_STATE,
        };
        let why = match StateName::parse(name) {
            Ok(name) if name.in_other_folder().is_some() => None,
            Ok(name) => match source.check(&name) {
                Ok(()) if !is_state(&name, source) => Some("this is not a state".to_owned()),
                Ok(()) => None,
                Err(error) => Some(error.reason()),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            self.no_target(node, name, &why);
        }
    }

    fn no_target(&mut self, node: &YamlValue, name: &str, why: &str) {
        let message = format!("no agent can begin in {}: {why}", quoted(name));
        self.report.error(node.at, "WF214", message);
    }
}

/// Returns a text without `${…}`.
fn written_out(node: &YamlValue) -> Option<&str> {
    node.text().map(|text| &*text.text).filter(|text| !text.contains("${"))
}

// The options of the agent that begins in a graph: its worktree, and the hosts that it may live on.

/// The keys that say whether the agent has a worktree, and whether raymond takes snapshots of that worktree.
pub(super) const WORKTREE_KEYS: [&str; 2] = ["worktree", "snapshots"];
/// The key with the label of its hosts.
pub(super) const HOST_KEY: &str = "host";

/// Returns the options of the agent that begins in a graph with this text. A graph that cannot be read gives none.
pub fn first_agent_options(text: &str) -> AgentOptions {
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
mod first_agent_tests {
    use super::*;

    #[test]
    fn label_of_hosts_is_a_plain_text() {
        let host = |text: &str| first_agent_options(text).host.map(|label| label.to_string());
        assert_eq!(host("name: x\nhost: gpu\n"), Some("gpu".to_owned()));
        for text in ["host: a b", "host: true", "nodes: { host: gpu }", "host: [gpu]"] {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn only_booleans_at_the_top_count() {
        let options = first_agent_options("name: x\nworktree: true\nsnapshots: false\n");
        assert!(options.worktree && options.no_snapshots);
        for text in [
            "worktree: false",
            "worktree: 'true'\nsnapshots: 'false'",
            "nodes: { worktree: true, snapshots: false }",
            "a: [",
            "snapshots: true",
            "",
        ] {
            assert_eq!(first_agent_options(text), AgentOptions::default(), "{text}");
        }
    }
}
