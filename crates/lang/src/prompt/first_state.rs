//! The state that a folder begins with, if its manifest names none.
//!
//! The terms that a state gives: the options of an agent that begins there, and the budget of a call that leads there.

use crate::manifest;
use crate::manifest::PeerManifest;
use crate::source::WorkflowSource;
use raymond_model::id::StateName;

/// The names of a first prompt or script. A folder with several of them does not say which one comes first.
pub const STARTS: [&str; 4] = [manifest::FIRST_STATE, "1_START.md", "START.sh", "1_START.sh"];

/// The names of the first file of a folder without such a prompt or script.
const OTHERS: [&str; 2] = [manifest::GRAPH, manifest::PROGRAM];

/// The names of which a folder has one, as a sentence lists them.
pub const USUAL_NAMES: &str = "START.md, START.sh, workflow.yaml or workflow.lisp";

/// The outcome of the search for a first state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsualFirstState {
    /// The folder has one.
    Found(StateName),
    /// The folder has several.
    Several {
        /// The usual one.
        first: StateName,
        /// Another one.
        other: StateName,
    },
    /// The folder has none.
    Missing,
}

impl UsualFirstState {
    /// Returns the state that a folder begins with whose manifest names none.
    pub fn find(source: &dyn WorkflowSource) -> Self {
        let mut starts = there(source, &STARTS);
        match (starts.next(), starts.next()) {
            (Some(first), Some(other)) => Self::Several { first, other },
            (Some(only), None) => Self::Found(only),
            (None, _) => there(source, &OTHERS)
                .find(|name| name.as_str() != manifest::GRAPH || PeerManifest::of(source).is_none())
                .map_or(Self::Missing, Self::Found),
        }
    }
}

/// Returns whether a state has a name that folders usually begin with.
pub fn is_usual(name: &StateName) -> bool {
    let name = name.as_str();
    STARTS.contains(&name) || OTHERS.contains(&name)
}

/// Returns those of the names that are files of a folder.
fn there<'a>(
    source: &'a dyn WorkflowSource,
    names: &'a [&str],
) -> impl Iterator<Item = StateName> + 'a {
    names
        .iter()
        .filter_map(|name| StateName::parse(name).ok())
        .filter(|name| source.check(name).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(names: &[&str]) -> UsualFirstState {
        let files: BTreeMap<String, String> =
            names.iter().map(|&name| (name.to_owned(), "x".to_owned())).collect();
        UsualFirstState::find(&files)
    }

    #[test]
    fn prompts_and_scripts_come_before_graphs_and_programs() {
        let state = |name: &str| StateName::parse(name).expect("a state");
        for name in ["START.md", "1_START.md", "START.sh", "1_START.sh"] {
            let all = [name, "workflow.yaml", "workflow.lisp", "OTHER.md"];
            assert_eq!(found(&all), UsualFirstState::Found(state(name)));
        }
        let graph = UsualFirstState::Found(state("workflow.yaml"));
        assert_eq!(found(&["workflow.lisp", "workflow.yaml"]), graph);
        assert_eq!(found(&["OTHER.md"]), UsualFirstState::Missing);
    }

    #[test]
    fn two_starts_leave_the_first_state_open() {
        let several = UsualFirstState::Several {
            first: StateName::parse("START.md").expect("a state"),
            other: StateName::parse("1_START.sh").expect("a state"),
        };
        assert_eq!(found(&["1_START.sh", "START.md"]), several);
    }
}
