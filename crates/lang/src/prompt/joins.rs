//! The agents that each state may wait for.
//!
//! These are the forks before it, at its own level of the return stack or a deeper one, that no join has taken since.
//!
//! The analysis finds all possible agents: a state without any is certain to wait for nobody.

use std::collections::{BTreeMap, BTreeSet};

use super::workflow_map::{FolderPrompt, FolderState, WorkflowMap, call};
use raymond_model::id::StateName;
use raymond_model::transition::{TagName, Transition};

/// The agents that may be waited for in a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinableAgents<'a> {
    /// The states they start in.
    pub born_in: BTreeSet<&'a StateName>,
    /// True if there may be others, because an agent on the way may take any transition.
    pub others: bool,
}

impl JoinableAgents<'_> {
    /// Returns whether there are no such agents.
    pub fn is_nobody(&self) -> bool {
        self.born_in.is_empty() && !self.others
    }

    /// Adds agents; returns whether any of them is new.
    fn add(&mut self, more: &Self) -> bool {
        let before = (self.born_in.len(), self.others);
        self.born_in.extend(&more.born_in);
        self.others |= more.others;
        before != (self.born_in.len(), self.others)
    }
}

/// Returns the agents that each state may wait for, if it waits.
pub fn awaited(workflow_map: &WorkflowMap) -> BTreeMap<&StateName, JoinableAgents<'_>> {
    let called = workflow_map.transitions().filter_map(|transition| Some(call(transition)?.0));
    let mut behind = JoinAnalysis {
        levels: called.map(|target| (target, workflow_map.level([target]))).collect(),
        workflow_map,
        all: BTreeMap::new(),
    };
    if workflow_map.is_entered {
        let from_outside = JoinableAgents { others: true, ..JoinableAgents::default() };
        behind.all.insert(&workflow_map.entry, from_outside);
    }
    while behind.advance() {}
    behind.all
}

/// The agents known so far behind each state.
struct JoinAnalysis<'a> {
    workflow_map: &'a WorkflowMap,
    /// The states at the level of each called state.
    levels: BTreeMap<&'a StateName, BTreeSet<&'a StateName>>,
    all: BTreeMap<&'a StateName, JoinableAgents<'a>>,
}

impl<'a> JoinAnalysis<'a> {
    /// Advances the analysis by one step from each state; returns whether it found something new.
    fn advance(&mut self) -> bool {
        let mut is_new = false;
        for (name, prompt) in self.workflow_map.texts() {
            let left = self.left(name, prompt);
            let edges =
                prompt.edges.iter().filter_map(|edge| self.behind(name, &edge.transition, &left));
            let mut come_to: Vec<(Vec<&StateName>, JoinableAgents<'_>)> = edges.collect();
            let mentioned = prompt.mentioned.iter().filter(|_| prompt.is_open());
            come_to.push((mentioned.collect(), left));
            for (states, agents) in come_to {
                for state in states {
                    is_new |= self.all.entry(state).or_default().add(&agents);
                }
            }
        }
        is_new
    }

    /// Returns the agents that may be waited for after a state: a join has taken all of them.
    fn left(&self, name: &StateName, prompt: &FolderPrompt) -> JoinableAgents<'a> {
        let mut left = match prompt.frontmatter.join {
            Some(_) => JoinableAgents::default(),
            None => self.all.get(name).cloned().unwrap_or_default(),
        };
        left.others |= prompt.is_open();
        left
    }

    /// Returns the states to which a way leads the agent itself, at its own level, and the agents behind it there. A
    /// called or forked state has no agents behind it.
    fn behind(
        &self,
        name: &StateName,
        transition: &'a Transition,
        left: &JoinableAgents<'a>,
    ) -> Option<(Vec<&'a StateName>, JoinableAgents<'a>)> {
        let mut behind = left.clone();
        if transition.tag() == TagName::Result {
            return None;
        }
        if transition.tag() == TagName::Reset {
            // The agents behind all callers are behind it, too.
            behind.others |= self.levels.values().any(|level| level.contains(name));
        }
        if let (true, Some((_, target))) = (transition.is_fork(), transition.entered()) {
            behind.born_in.insert(target);
        }
        if !transition.is_call() {
            let next = transition.next_state();
            return Some((
                next.map_or_else(|| transition.states().collect(), |next| vec![next]),
                behind,
            ));
        }
        let called = transition.next_state().and_then(|target| self.levels.get(target));
        for name in called.into_iter().flatten() {
            let state = self.workflow_map.states.get(*name).and_then(FolderState::text);
            // What a subroutine leaves in another folder is not known here.
            behind.others |= name.in_other_folder().is_some();
            if let Some(prompt) = state.filter(|prompt| prompt.may_end()) {
                behind.add(&self.left(name, prompt));
            }
        }
        Some((transition.continuation().into_iter().collect(), behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::workflow_map::WorkflowMapOptions;

    /// Returns the states with a join, each with the agents it may wait for; `?` stands for others.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let policy = |entries: &str| {
            let (head, entries) = entries.split_once(" | ").unwrap_or(("", entries));
            let entries = entries.split("; ").map(|entry| format!("  - {{ tag: {entry} }}\n"));
            let head = if head.is_empty() { String::new() } else { format!("{head}\n") };
            format!("---\n{head}allowed_transitions:\n{}---\nx\n", entries.collect::<String>())
        };
        let text = |text: &str| {
            if text.contains('<') { text.to_owned() } else { policy(text) }
        };
        let source: BTreeMap<String, String> =
            files.iter().map(|(name, entries)| ((*name).to_owned(), text(entries))).collect();
        let reach = WorkflowMapOptions { by_text: true, max_states: 100, graphs: None };
        let workflow_map =
            WorkflowMap::of(&StateName::parse("A.md").expect("a state"), &source, reach);
        let awaited = awaited(&workflow_map);
        let joins = workflow_map.prompts().filter(|(_, prompt)| prompt.frontmatter.join.is_some());
        let shown = joins.map(|(name, _)| {
            let agents = awaited.get(name).cloned().unwrap_or_default();
            let born: Vec<&str> = agents.born_in.iter().map(|name| name.as_str()).collect();
            format!("{name}: {}{}", born.join(" "), if agents.others { "?" } else { "" })
        });
        shown.collect()
    }

    #[test]
    fn join_waits_for_forks_on_path_to_it() {
        let end = ("END.md", "join: all | result");
        let of = |files: &[(&str, &str)]| found(&[files, &[end, ("W.md", "result")]].concat());
        assert_eq!(of(&[("A.md", "fork, target: W.md, next: END.md")]), ["END.md: W.md"]);
        assert_eq!(of(&[("A.md", "goto, target: END.md")]), ["END.md: "]);
        let through = [
            ("A.md", "fork, target: W.md, next: B.md"),
            ("B.md", "ask, next: C.md; call, target: W.md, return: C.md"),
            ("C.md", "reset, target: END.md"),
        ];
        assert_eq!(of(&through), ["END.md: W.md"]);
        let workers_wait = [("A.md", "fork, target: END.md, next: W.md")];
        assert_eq!(of(&workers_wait), ["END.md: "], "a worker has forked nobody yet");
    }

    #[test]
    fn join_leaves_no_forks_for_later_joins() {
        let files = [
            ("A.md", "fork, target: W.md, next: B.md"),
            ("B.md", "join: all | goto, target: C.md"),
            ("C.md", "join: all\non_failure: D.md | result"),
            ("D.md", "join: any | result"),
            ("W.md", "result"),
        ];
        assert_eq!(found(&files), ["B.md: W.md", "C.md: ", "D.md: "]);
    }

    #[test]
    fn callee_forks_reach_caller_join_but_not_vice_versa() {
        let files = [
            ("A.md", "fork, target: V.md, next: B.md"),
            ("B.md", "call, target: SUB.md, return: END.md"),
            ("SUB.md", "join: all | fork, target: W.md, next: LAST.md"),
            ("LAST.md", "result"),
            ("END.md", "join: all | result"),
            ("V.md", "result"),
            ("W.md", "result"),
        ];
        assert_eq!(found(&files), ["SUB.md: ", "END.md: V.md W.md"]);
    }

    #[test]
    fn state_without_policy_may_fork() {
        let files = [("A.md", "Go to B.md, or <result>x</result>"), ("B.md", "join: all | result")];
        assert_eq!(found(&files), ["B.md: ?"]);
    }
}
