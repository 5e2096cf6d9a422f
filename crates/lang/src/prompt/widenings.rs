//! Finds options that ask for more than a starter allowed, and problems of the states, before a workflow starts.

use crate::diagnostic::Diagnostic;
use crate::graph;
use crate::program::checked_program::Program;
use crate::prompt::check::check_reachable;
use crate::prompt::workflow_map::{FolderPrompt, WorkflowMap, WorkflowMapOptions};
use crate::source::{SourcePlace, WorkflowSource};
use crate::turn_options::{OptionPlaces, embed_files};
use raymond_model::id::StateName;
use raymond_model::turn_options::TurnOptions;
use raymond_model::widening::PermissionCeiling;

/// An option that asks for too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundWidening {
    pub file: StateName,
    /// Its place in the file.
    pub place: SourcePlace,
    /// The reason, and the option to type to allow it.
    pub message: String,
}

/// Finds them in all states of a map.
pub fn in_outline(
    workflow_map: &WorkflowMap,
    source: &dyn WorkflowSource,
    ceiling: &PermissionCeiling,
) -> Vec<FoundWidening> {
    let mut found = Vec::new();
    let prompts = workflow_map.prompts().chain(&workflow_map.evaluators);
    found.extend(prompts.flat_map(|(name, prompt)| in_prompt(name, prompt, source, ceiling)));
    for (name, state) in &workflow_map.states {
        let of_graph = state.graph().map(|graph| in_graph(name, graph, ceiling));
        let of_program = state.program().map(|program| in_program(name, program, ceiling));
        found.extend(of_graph.into_iter().chain(of_program).flatten());
    }
    found
}

fn in_prompt(
    name: &StateName,
    prompt: &FolderPrompt,
    source: &dyn WorkflowSource,
    ceiling: &PermissionCeiling,
) -> Vec<FoundWidening> {
    in_options(name, &prompt.frontmatter.options, &prompt.places.options, source, ceiling)
}

/// Finds the widenings in the options of a file. A configuration that cannot be read may ask for anything.
pub fn in_options(
    file: &StateName,
    options: &TurnOptions,
    places: &OptionPlaces,
    source: &dyn WorkflowSource,
    ceiling: &PermissionCeiling,
) -> Vec<FoundWidening> {
    let mut options = options.clone();
    // A file that cannot be read does not hide the requests of the others.
    let _ = embed_files(&mut options, places, source);
    let widenings = ceiling.widenings(&options).into_iter();
    let found = widenings.map(|widening| FoundWidening {
        file: file.clone(),
        place: places.of(widening.key, widening.part.as_deref()).unwrap_or(SourcePlace::START),
        message: format!("`{}`: {}", widening.key, widening.message),
    });
    found.collect()
}

/// Finds them in the nodes of a graph.
pub fn in_graph(
    file: &StateName,
    graph: &graph::checked_graph::Graph,
    ceiling: &PermissionCeiling,
) -> Vec<FoundWidening> {
    let found = graph.turns.iter().flat_map(|(name, turn)| {
        let widenings = ceiling.widenings(&turn.options).into_iter();
        widenings.map(move |widening| FoundWidening {
            file: file.clone(),
            place: turn
                .places
                .of(widening.key, widening.part.as_deref())
                .unwrap_or(SourcePlace::START),
            message: format!("the node `{name}`: `{}`: {}", widening.key, widening.message),
        })
    });
    found.collect()
}

/// Finds them in the roles of a program.
pub fn in_program(
    file: &StateName,
    program: &Program,
    ceiling: &PermissionCeiling,
) -> Vec<FoundWidening> {
    let found = program.roles.iter().flat_map(|role| {
        let widenings = ceiling.widenings(&role.options).into_iter();
        widenings.map(|widening| FoundWidening {
            file: file.clone(),
            place: role
                .option_places
                .of(widening.key, widening.part.as_deref())
                .filter(|at| program.files.resolve(*at).0.is_none())
                .unwrap_or(role.at),
            message: format!("the role `{}`: `{}`: {}", role.name, widening.key, widening.message),
        })
    });
    found.collect()
}

// Surveys the states that policies can lead to, before any of them costs money.
//
// With `--no-check`, raymond reports their errors as warnings: a workflow may write a state's file before it enters
// that state.

/// The maximum number of states examined.
pub const MAX_SURVEYED_STATES: usize = 1000;

/// The states that a run can come to from its first one, as far as prompts and scripts lead.
#[derive(Debug)]
pub struct SurveyedStates {
    /// Those that policies lead to.
    pub certain: WorkflowMap,
    /// Those, and the ones that only texts name.
    pub possible: WorkflowMap,
}

impl SurveyedStates {
    /// Surveys the states from `entry` on.
    pub fn of(entry: &StateName, source: &dyn WorkflowSource) -> Self {
        let map = |by_text| {
            let max_states = MAX_SURVEYED_STATES;
            WorkflowMap::of(entry, source, WorkflowMapOptions { by_text, max_states, graphs: None })
        };
        Self { certain: map(false), possible: map(true) }
    }

    /// Returns whether no state is left out because there are too many.
    pub fn is_complete(&self) -> bool {
        self.possible.states.len() < MAX_SURVEYED_STATES
    }

    /// Returns the problems of the states that policies lead to, one text each.
    pub fn problems(&self, source: &dyn WorkflowSource) -> Vec<String> {
        let found = check_reachable(&self.certain, &self.possible, source);
        found.iter().map(Diagnostic::without_severity).collect()
    }
}

#[cfg(test)]
mod survey_tests {
    use std::collections::BTreeMap;

    use super::*;

    fn warnings(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let entry = StateName::parse("START.md").expect("a state");
        SurveyedStates::of(&entry, &files).problems(&files)
    }

    #[test]
    fn errors_in_reachable_files_are_reported() {
        let found = warnings(&[
            ("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n---\nx"),
            (
                "NEXT.md",
                "---\nallowed_transitions:\n  - { tag: call, target: SUB.md, return: STRAT.md }\n---\nx",
            ),
            ("SUB.md", "---\nmodle: x\n---\nx"),
            ("UNREACHED.md", "---\nmodle: x\n---\nx"),
        ]);
        assert_eq!(
            found,
            [
                "NEXT.md:3:42: RF101 STRAT.md: there is no such file; did you mean START.md?",
                "SUB.md:2:1: RF002 unknown key `modle`; did you mean `model`?",
            ]
        );
    }

    #[test]
    fn cyclic_workflow_is_surveyed_without_warnings() {
        let found = warnings(&[
            ("START.md", "---\nallowed_transitions:\n  - { tag: goto, target: B.md }\n---\nx"),
            ("B.md", "---\nallowed_transitions:\n  - { tag: goto, target: START.md }\n---\n{{x}}"),
            ("UNREACHED.md", "<goto>GONE.md</goto>"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn evaluator_without_output_placeholder_is_reported() {
        let found = |check| {
            warnings(&[
                ("START.md", "---\nevaluator: { prompt: CHECK.md }\n---\nx"),
                ("CHECK.md", check),
            ])
        };
        assert!(found("is {{ output }} good?").is_empty());
        assert!(found("may it {{transition}}?").is_empty());
        let blind = "CHECK.md:1:1: RF402 an evaluator sees only its prompt; show it {{output}}, the reply it judges";
        assert_eq!(found("is it good?"), [blind]);
    }
}
