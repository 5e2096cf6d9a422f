//! The places of a workflow as a test names them: its states, the nodes of its graphs, the states of its programs.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::checked_graph::Graph;
use super::program::taken_ways::ProgramStates;
use super::prompt::workflow_map::{
    FolderGraph, FolderGraphReader, FolderState, WorkflowMap, WorkflowMapOptions,
};
use super::replies::key_of;
use super::source::WorkflowSource;
use crate::graph::targets::ways;
use raymond_model::id::StateName;
use raymond_model::observed_run::{ObservedWay, ObservedWayCase};

/// The most states that are looked at.
const MAX_STATES: usize = 10_000;

/// The places of a workflow, the transitions that its policies allow, and the ways of its graphs and programs.
#[derive(Debug, Clone, Default)]
pub struct WorkflowPlaces {
    names: BTreeSet<String>,
    asked: BTreeSet<String>,
    files: BTreeSet<String>,
    pub(super) ways: BTreeSet<ObservedWay>,
    /// The ways whose target is computed.
    pub(super) computed_ways: BTreeSet<ObservedWay>,
    /// The programs, by their places.
    pub(super) programs: BTreeMap<String, ProgramStates>,
}

impl WorkflowPlaces {
    /// Returns the places that a workflow reaches from its first state.
    pub fn of(
        entry: &StateName,
        source: &dyn WorkflowSource,
        graphs: &FolderGraphReader<'_>,
    ) -> Self {
        let reach =
            WorkflowMapOptions { by_text: true, max_states: MAX_STATES, graphs: Some(graphs) };
        let map = WorkflowMap::across(entry, source, reach);
        let mut places = Self::default();
        let files = source.names().unwrap_or_default();
        places.files.extend(files.iter().map(ToString::to_string));
        for (name, state) in &map.states {
            places.add(&by_folder(name), state);
        }
        places
    }

    fn add(&mut self, name: &str, state: &FolderState) {
        match state {
            FolderState::Prompt(prompt) | FolderState::Script(prompt) => {
                self.names.insert(name.to_string());
                if matches!(state, FolderState::Prompt(_)) {
                    self.asked.insert(name.to_string());
                }
                self.asked.extend(prompt.evaluator().map(ToString::to_string));
                for way in prompt.ways.iter().filter(|way| way.is_certain()) {
                    self.ways.extend(ObservedWay::of(name, &way.transition));
                }
            }
            FolderState::Graph(FolderGraph { graph: Some(graph), .. }) => {
                let nodes = graph.nodes.keys().map(|node| format!("{name}#{node}"));
                let nodes: Vec<String> = nodes.collect();
                self.asked.extend(nodes.iter().cloned());
                self.names.extend(nodes);
                self.add_ways(name, graph);
            }
            FolderState::Program(program) => {
                let Some(program) = &program.program else { return };
                self.names
                    .extend(program.states.iter().map(|state| format!("{name}#{}", state.name)));
                self.programs.insert(name.to_owned(), ProgramStates::of(program));
                self.asked.extend(program.roles.iter().map(|role| format!("{name}#{}", role.name)));
            }
            FolderState::Graph(_)
            | FolderState::Beyond(..)
            | FolderState::Unreadable(_)
            | FolderState::Other => {}
        }
    }

    fn add_ways(&mut self, name: &str, graph: &Graph) {
        for (node, way) in graph
            .nodes
            .iter()
            .flat_map(|(node, own)| ways(own).into_iter().map(move |way| (node, way)))
        {
            let case = way.case.outcome().map_or(ObservedWayCase::Any, ObservedWayCase::Outcome);
            let own = ObservedWay { from: format!("{name}#{node}"), case, to: way.to.to_string() };
            if way.is_computed() {
                self.computed_ways.insert(own);
            } else {
                self.ways.insert(own);
            }
        }
    }

    /// Returns whether a name is that of a place: as it is, or as a part of a graph or a program without its file. A
    /// file of the folder counts, because a placeholder may lead to it.
    pub fn has(&self, name: &str) -> bool {
        let is_part = |place: &String| place.split_once('#').is_some_and(|(_, part)| part == name);
        self.names.contains(name) || self.files.contains(name) || self.names.iter().any(is_part)
    }

    /// Returns whether replies of this key may be asked for.
    pub fn may_be_asked(&self, key: &str) -> bool {
        self.asked.contains(key) || self.files.contains(key)
    }

    /// Returns the names of all places.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the keys of all replies that may be asked for.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(String::as_str)
    }

    /// Adds the places of the same workflow that it reaches from another first state.
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
        self.asked.extend(other.asked);
        self.files.extend(other.files);
        self.ways.extend(other.ways);
        self.computed_ways.extend(other.computed_ways);
        self.programs.extend(other.programs);
    }
}

/// Returns a state as a run names it: below the folder that has it.
fn by_folder(name: &StateName) -> String {
    let beyond = name.in_other_folder();
    let folder = beyond.and_then(|(path, state)| Some((path.seen_from(None).ok()??, state)));
    folder.map_or_else(|| name.to_string(), |(folder, state)| key_of(Some(&folder), &state))
}
