//! The loops of a map: which states lead to each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{FolderState, WorkflowMap};
use crate::domain::id::StateName;

/// The number of the loop of each state. States that lead to each other have the same number.
#[derive(Debug)]
pub struct StateLoops<'map>(BTreeMap<&'map StateName, usize>);

impl StateLoops<'_> {
    /// Returns whether a state leads back to one that leads to it.
    #[must_use]
    pub fn leads_back(&self, from: &StateName, to: &StateName) -> bool {
        self.0.get(from).zip(self.0.get(to)).is_some_and(|(one, other)| one == other)
    }
}

impl WorkflowMap {
    /// Returns the loops of the map, by any ways, also of other agents, in time linear in its size (Kosaraju's
    /// algorithm).
    #[must_use]
    pub fn loops(&self) -> StateLoops<'_> {
        let backwards = self.ways_back();
        let mut loops = BTreeMap::new();
        for (number, &state) in self.ways_done_last_first().iter().enumerate() {
            let mut to_look_at = vec![state];
            while let Some(state) = to_look_at.pop() {
                if loops.contains_key(state) {
                    continue;
                }
                loops.insert(state, number);
                to_look_at.extend(backwards.get(state).into_iter().flatten());
            }
        }
        StateLoops(loops)
    }

    /// Returns the states from which one of `targets` is reached, by any ways, including these.
    #[must_use]
    pub fn leading_to<'map>(
        &'map self,
        targets: impl IntoIterator<Item = &'map StateName>,
    ) -> BTreeSet<&'map StateName> {
        let backwards = self.ways_back();
        let mut reached = BTreeSet::new();
        let mut to_look_at: Vec<&StateName> = targets.into_iter().collect();
        while let Some(state) = to_look_at.pop() {
            if reached.insert(state) {
                to_look_at.extend(backwards.get(state).into_iter().flatten());
            }
        }
        reached
    }

    /// Returns for each state the prompts with a way to it.
    #[must_use]
    pub fn ways_back(&self) -> BTreeMap<&StateName, Vec<&StateName>> {
        let mut back = BTreeMap::<_, Vec<_>>::new();
        for name in self.states.keys() {
            for next in self.next(name) {
                back.entry(next).or_default().push(name);
            }
        }
        back
    }

    /// Returns all states such that each comes before the states that it leads to, but for loops.
    fn ways_done_last_first(&self) -> Vec<&StateName> {
        let (mut seen, mut done) = (BTreeSet::new(), Vec::with_capacity(self.states.len()));
        for start in self.states.keys() {
            let mut open = vec![(start, false)];
            while let Some((state, is_done)) = open.pop() {
                if is_done {
                    done.push(state);
                } else if seen.insert(state) {
                    open.push((state, true));
                    open.extend(self.next(state).map(|next| (next, false)));
                }
            }
        }
        done.reverse();
        done
    }

    /// Returns the states that a state's ways lead to.
    fn next(&self, name: &StateName) -> impl Iterator<Item = &StateName> {
        let ways = self.states.get(name).and_then(FolderState::prompt).map(|prompt| &prompt.ways);
        let named = ways.into_iter().flatten().flat_map(|way| way.transition.states());
        named.filter_map(|next| self.states.get_key_value(next).map(|(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::prompt::workflow_map::WorkflowMapOptions;

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
        let loops = map.loops();
        let back = |from: &str, to: &str| loops.leads_back(&state(from), &state(to));
        assert!(back("C.md", "B.md") && back("B.md", "C.md") && back("D.md", "D.md"));
        assert!(!back("B.md", "A.md") && !back("D.md", "B.md") && !back("F.md", "E.md"));
        let to_e =
            map.leading_to([&state("E.md")].map(|e| map.states.get_key_value(e).expect("E").0));
        let names: Vec<&str> = to_e.iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["A.md", "B.md", "C.md", "E.md"]);
    }
}
