//! The ways of a map: which states lead to each other, by any ways, also of other agents.

use super::WorkflowMap;
use crate::flow_map::FlowMap;
use raymond_model::id::StateName;
use raymond_model::transition::Transition;

impl WorkflowMap {
    /// Returns the ways between the states.
    pub fn flow_map(&self) -> FlowMap<&StateName> {
        self.flow_map_by(Transition::states)
    }

    /// Returns the ways between the states, as far as `next` names them for a transition.
    pub(super) fn flow_map_by<'map, N>(
        &'map self,
        next: impl Fn(&'map Transition) -> N,
    ) -> FlowMap<&'map StateName>
    where
        N: IntoIterator,
        N::Item: Into<Option<&'map StateName>>,
    {
        let mut ways = Vec::new();
        for (name, state) in &self.states {
            for way in state.ways().into_iter().flatten() {
                let next = next(&way.transition).into_iter().filter_map(Into::into);
                ways.extend(next.filter_map(|to| Some((name, self.known(to)?))));
            }
        }
        FlowMap::new(self.states.keys(), ways)
    }

    /// Returns the known transitions of its prompts and scripts.
    pub fn ways(&self) -> impl Iterator<Item = &Transition> {
        self.texts().flat_map(|(_, state)| &state.ways).map(|way| &way.transition)
    }

    /// Returns the map's own name of a state that it has.
    pub(super) fn known(&self, name: &StateName) -> Option<&StateName> {
        self.states.get_key_value(name).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::prompt::workflow_map::WorkflowMapOptions;

    fn state(name: &str) -> StateName {
        StateName::parse(name).expect("a state")
    }

    fn map(files: &[(&str, &str)]) -> WorkflowMap {
        let files: BTreeMap<String, String> =
            files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let options = WorkflowMapOptions { by_text: false, max_states: 100, graphs: None };
        WorkflowMap::of(&state("A.md"), &files, options)
    }

    fn policy(targets: &str) -> String {
        let entries = targets.chars().map(|to| format!("  - {{ tag: goto, target: {to}.md }}\n"));
        format!("---\nallowed_transitions:\n{}---\nGo.", entries.collect::<String>())
    }

    #[test]
    fn only_states_that_lead_to_each_other_are_in_one_loop() {
        let texts =
            [policy("B"), policy("CD"), policy("BE"), policy("D"), policy("F"), "End.".into()];
        let names = ["A.md", "B.md", "C.md", "D.md", "E.md", "F.md"];
        let files: Vec<(&str, &str)> =
            names.into_iter().zip(texts.iter().map(String::as_str)).collect();
        let map = map(&files);
        let loops = map.flow_map().loops();
        let back = |from: &str, to: &str| loops.leads_back(&state(from), &state(to));
        assert!(back("C.md", "B.md") && back("B.md", "C.md") && back("D.md", "D.md"));
        assert!(!back("B.md", "A.md") && !back("D.md", "B.md") && !back("F.md", "E.md"));
        let to_e = map
            .flow_map()
            .leading_to([&state("E.md")].map(|e| map.states.get_key_value(e).expect("E").0));
        let names: Vec<&str> = to_e.iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["A.md", "B.md", "C.md", "E.md"]);
    }
}
