//! A survey of the states that policies can lead to, before any of them is paid for.
//!
//! A run that is started with `--no-check` is told of their errors as warnings: a workflow may write a state's file
//! before it enters it.

use super::check::check_reachable;
use super::workflow_map::{WorkflowMap, WorkflowMapOptions};
use crate::domain::id::StateName;
use crate::language::diagnostic::Diagnostic;
use crate::language::source::WorkflowSource;

/// The maximum number of states examined.
pub const MAX_SURVEYED_STATES: usize = 1000;

/// Returns the problems of the states that policies lead to from `entry`, one text each.
pub fn survey(entry: &StateName, source: &dyn WorkflowSource) -> Vec<String> {
    let reach =
        WorkflowMapOptions { by_text: false, max_states: MAX_SURVEYED_STATES, graphs: None };
    let workflow_map = WorkflowMap::of(entry, source, reach);
    let by_text = WorkflowMap::of(entry, source, WorkflowMapOptions { by_text: true, ..reach });
    let found = check_reachable(&workflow_map, &by_text, source);
    found.iter().map(Diagnostic::without_severity).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn warnings(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        survey(&StateName::parse("START.md").expect("a state"), &files)
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
