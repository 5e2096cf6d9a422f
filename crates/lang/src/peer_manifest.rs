//! The manifest of `ray`, another runtime of prompt folders: a `workflow.yaml` with an `id` beside the states.
//!
//! It is not a graph. Its `default_budget` is the budget of a run; what has no meaning here is named.

use super::manifest::{self, Manifest};
use super::output::OrderedJson;
use super::source::WorkflowSource;
use super::yaml::tree::YamlFileKind;
use super::yaml::{self, PlacedValue};
use crate::manifest::budget;
use raymond_model::id::StateName;
use raymond_model::money::Usd;

/// The keys by which a graph, or a workflow in one file, is told from such a manifest.
const OF_OTHERS: [&str; 4] = ["nodes", "start_node", "endings", "states"];

/// Keys that ask for nothing.
const FOR_PEOPLE: [&str; 4] = ["id", "name", "description", "requires_human_input"];

/// What such a manifest says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerManifest {
    /// The spending limit of a run.
    pub budget: Option<Usd>,
    /// The keys that have no effect here.
    pub unread: Vec<String>,
}

impl PeerManifest {
    /// Reads the manifest of a folder, if it has one of this kind.
    pub fn of(source: &dyn WorkflowSource) -> Option<Self> {
        let name = StateName::parse(manifest::GRAPH).ok()?;
        source.check(&name).ok()?;
        Self::read(&source.read(&name).ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let root: PlacedValue<OrderedJson> = yaml::read(YamlFileKind::IMPORT, text).ok()?;
        let OrderedJson::Object(keys) = root.value else { return None };
        let has = |name: &str| keys.iter().any(|(key, _)| key == name);
        if !has("id") || OF_OTHERS.into_iter().any(has) {
            return None;
        }
        let mut read = Self::default();
        for (key, value) in keys {
            match (key.as_str(), value) {
                ("default_budget", OrderedJson::Number(amount)) if amount.as_f64() == Some(0.0) => {
                }
                ("default_budget", OrderedJson::Number(amount)) => {
                    read.budget = budget(&amount.to_string()).ok();
                    read.unread.extend(read.budget.is_none().then_some(key));
                }
                (name, _) if FOR_PEOPLE.contains(&name) => {}
                _ => read.unread.push(key),
            }
        }
        Some(read)
    }
}

impl Manifest {
    /// Returns the manifest with the budget of that of `ray` in the same folder, if it has none.
    pub fn with_peer(mut self, source: &dyn WorkflowSource) -> Self {
        self.budget = self.budget.or_else(|| PeerManifest::of(source)?.budget);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn budget_is_read_and_other_keys_are_named() {
        let text = "id: smoke\nname: Smoke\ndefault_budget: 5.0\ninput: { mode: required }\nbackend: { name: pi }\n";
        let read = PeerManifest::read(text).expect("a manifest");
        assert_eq!(read.budget, Some(Usd::from_dollars(5.0)));
        assert_eq!(read.unread, ["input", "backend"]);
        let read = PeerManifest::read("id: x\ndefault_budget: -1\n").expect("a manifest");
        assert_eq!((read.budget, read.unread), (None, vec!["default_budget".to_owned()]));
        let none = PeerManifest::read("id: x\ndefault_budget: 0\n").expect("a manifest");
        assert_eq!(none, PeerManifest::default());
        for other in ["id: x\nnodes: {}\n", "id: x\nstates: {}\n", "name: x\n", "[id]", "id: {"] {
            assert_eq!(PeerManifest::read(other), None, "{other}");
        }
    }

    #[test]
    fn own_manifest_comes_before_that_of_the_peer() {
        let peer = "id: x\ndefault_budget: 5\n".to_owned();
        let files: BTreeMap<String, String> = [(manifest::GRAPH.to_owned(), peer)].into();
        let with = |budget| Manifest { budget, ..Manifest::default() }.with_peer(&files).budget;
        let own = Some(Usd::from_dollars(1.0));
        assert_eq!((with(own), with(None)), (own, Some(Usd::from_dollars(5.0))));
    }
}
