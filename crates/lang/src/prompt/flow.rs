//! The flow of a folder of prompts, and which of its states lead to each other.
//!
//! A result leads to its real destination: from a call to the state that the caller returns to, from a worker to
//! the state that waits for it, and to the end if it has neither a caller nor a join.

use std::collections::BTreeSet;

use super::joins::awaited;
use super::workflow_map::{
    FolderPrompt, FolderState, TransitionEdge, TransitionOrigin, WorkflowMap,
};
use crate::flow::{END, EdgeKind, Flow, FlowMap, PlaceKind, START};
use crate::program::checked_program::started;
use raymond_model::id::StateName;
use raymond_model::time::format_duration;
use raymond_model::transition::{ANY_LIST, ForkList, TagName, Transition};

impl WorkflowMap {
    /// Returns the ways between the states.
    pub fn flow_map(&self) -> FlowMap<&StateName> {
        self.flow_map_by(Transition::states)
    }

    /// Returns the ways between the states, as far as `next` names them for a transition.
    fn flow_map_by<'map, N>(
        &'map self,
        next: impl Fn(&'map Transition) -> N,
    ) -> FlowMap<&'map StateName>
    where
        N: IntoIterator,
        N::Item: Into<Option<&'map StateName>>,
    {
        let edges =
            self.texts().flat_map(|(name, text)| text.edges.iter().map(move |edge| (name, edge)));
        let edges = edges.flat_map(|(name, edge)| {
            let next = next(&edge.transition).into_iter().filter_map(Into::into);
            next.filter_map(|to| Some((name, self.known(to)?))).collect::<Vec<_>>()
        });
        FlowMap::new(self.states.keys(), edges)
    }

    /// Returns the states that an agent reaches from these without calling, being called, or forgetting.
    pub fn level<'a>(
        &'a self,
        from: impl IntoIterator<Item = &'a StateName>,
    ) -> BTreeSet<&'a StateName> {
        let map = self.flow_map_by(|transition| match transition {
            Transition::Reset { keeps_stack: false, .. } => [None; 2],
            Transition::Goto { target, .. } | Transition::Reset { target, .. } => {
                [Some(target), None]
            }
            other => [other.continuation(), other.timeout_state()],
        });
        map.reached_from(from.into_iter().filter_map(|name| self.known(name)))
    }

    /// Returns the states that an agent reaches from its first state, without those of the agents it forks.
    pub fn reached_by_one_agent(&self, first: &StateName) -> BTreeSet<&StateName> {
        let map = self.flow_map_by(|transition| {
            let entered = transition.target().filter(|_| !transition.is_fork());
            [entered, transition.continuation(), transition.timeout_state()]
        });
        map.reached_from(self.known(first))
    }

    /// Returns the known transitions of its prompts and scripts.
    pub fn transitions(&self) -> impl Iterator<Item = &Transition> {
        self.texts().flat_map(|(_, state)| &state.edges).map(|edge| &edge.transition)
    }

    /// Returns the map's own name of a state that it has.
    pub(super) fn known(&self, name: &StateName) -> Option<&StateName> {
        self.states.get_key_value(name).map(|(name, _)| name)
    }

    /// Returns the flow of the folder.
    pub fn flow(&self, title: &str) -> Flow {
        let mut flow = Flow::begin(title);
        for name in &self.order {
            let state = self.states.get(name);
            let join = state.and_then(join);
            let label = join.map_or_else(|| name.to_string(), |join| format!("{name}\n{join}"));
            flow.place(name.as_str(), &label, state.map_or(PlaceKind::Missing, kind));
        }
        let mut builder = FolderFlowBuilder { workflow_map: self, flow };
        builder.flow.join(START, self.entry.as_str(), "", EdgeKind::Goes);
        for (name, prompt) in self.texts() {
            for (index, edge) in prompt.edges.iter().enumerate() {
                builder.edge(name, prompt, index, edge);
            }
            builder.mentions(name, prompt);
            if let Some(evaluator) = prompt.evaluator() {
                let id = format!("/evaluator/{evaluator}");
                builder.flow.place(&id, evaluator.as_str(), PlaceKind::Evaluator);
                builder.flow.join(name.as_str(), &id, "judged by", EdgeKind::Consults);
            }
        }
        for (name, state) in &self.states {
            for first in state.program().map(started).unwrap_or_default() {
                builder.flow.join(name.as_str(), first.as_str(), "run-folder", EdgeKind::Forks);
            }
        }
        builder.results();
        builder.flow
    }
}

fn kind(state: &FolderState) -> PlaceKind {
    match state {
        FolderState::Prompt(prompt) if prompt.is_open() => PlaceKind::Open,
        FolderState::Prompt(prompt) if prompt.frontmatter.join.is_some() => PlaceKind::Join,
        FolderState::Prompt(_) => PlaceKind::State,
        FolderState::Graph(_)
        | FolderState::Program(_)
        | FolderState::Script(_)
        | FolderState::Beyond(..) => PlaceKind::Graph,
        FolderState::Unreadable(_) | FolderState::Other => PlaceKind::Missing,
    }
}

/// Returns the label of a join: its condition and its time limit.
fn join(state: &FolderState) -> Option<String> {
    let join = state.prompt()?.frontmatter.join.as_ref()?;
    let within = join.timeout_ms.map(|timeout| format!(" within {}", format_duration(timeout)));
    Some(format!("join {}{}", join.need, within.unwrap_or_default()))
}

struct FolderFlowBuilder<'a> {
    workflow_map: &'a WorkflowMap,
    flow: Flow,
}

impl<'a> FolderFlowBuilder<'a> {
    /// Adds a way from a state, unless it is a result.
    fn edge(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        index: usize,
        edge: &TransitionEdge,
    ) {
        let (kind, along) = match &edge.transition {
            Transition::Result { .. } => return,
            Transition::Goto { .. } if edge.is_of_join() => (EdgeKind::Fails, None),
            Transition::Goto { .. } => (EdgeKind::Goes, None),
            Transition::Ask { next, .. } => (EdgeKind::Fails, Some((next, "ask"))),
            Transition::Reset { .. } => (EdgeKind::Resets, None),
            Transition::Call { .. } | Transition::Function { .. } => (EdgeKind::Calls, None),
            // Forks of several agents at once have edges of another kind.
            Transition::Fork { next, each, .. } => {
                let are_many = each.is_some() || prompt.frontmatter.policy.many_forks;
                let kind = if are_many { EdgeKind::FansOut } else { EdgeKind::Forks };
                (kind, Some((next, "next")))
            }
        };
        let label = [label(edge, kind), when(edge, index, prompt)].concat();
        let late = edge.transition.timeout_state();
        let edges = [
            along.map(|(next, label)| (next, label, EdgeKind::Goes)),
            late.map(|late| (late, "no answer", kind)),
            edge.transition.target().map(|target| (target, &*label, kind)),
        ];
        for (to, label, kind) in edges.into_iter().flatten() {
            self.flow.join_if(edge.is_certain(), name.as_str(), to.as_str(), label, kind);
        }
    }

    /// Adds the states that the text of a state without policy only mentions.
    fn mentions(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let named: BTreeSet<&StateName> =
            prompt.edges.iter().flat_map(|edge| edge.transition.states()).collect();
        for other in prompt.mentioned.iter().filter(|_| prompt.is_open()) {
            if other != name && !named.contains(other) {
                self.flow.join_if(false, name.as_str(), other.as_str(), "", EdgeKind::Goes);
            }
        }
    }

    /// Adds the edges of the results of some states. Returns whether there are any.
    fn results_of(
        &mut self,
        states: &BTreeSet<&StateName>,
        to: &str,
        label: &str,
        kind: EdgeKind,
    ) -> bool {
        let results = states.iter().filter_map(|name| Some((name, self.gives_result(name)?)));
        let results: Vec<_> = results.collect();
        for (name, certain) in &results {
            self.flow.join_if(*certain, name.as_str(), to, label, kind);
        }
        !results.is_empty()
    }

    /// Adds the edges that results lead along.
    fn results(&mut self) {
        let workflow_map = self.workflow_map;
        let (joined_children, joined) = self.joined();
        let started = workflow_map.transitions().filter_map(|transition| match transition {
            Transition::Reset { target, .. } => Some(target).filter(|to| !joined.contains(to)),
            Transition::Fork { target, .. } => {
                Some(target).filter(|to| !joined_children.contains(to))
            }
            _ => None,
        });
        let ending = self.until_the_end(started.chain([&workflow_map.entry]));
        if ending.iter().any(|name| self.gives_result(name).is_some()) {
            self.flow.place(END, "end", PlaceKind::End);
        }
        self.results_of(&ending, END, "result", EdgeKind::Ends);
        for (caller, prompt) in workflow_map.texts() {
            for (target, return_to) in prompt.edges.iter().filter_map(TransitionEdge::call) {
                let (level, to) = (workflow_map.level([target]), return_to.as_str());
                // If no result is known, the call itself leads to the caller's next state.
                if !self.results_of(&level, to, "returns", EdgeKind::Returns) {
                    self.flow.join_if(false, caller.as_str(), to, "returns", EdgeKind::Returns);
                }
            }
        }
    }

    /// Returns the states that agents reach from these without calling or being called.
    fn until_the_end(
        &self,
        from: impl IntoIterator<Item = &'a StateName>,
    ) -> BTreeSet<&'a StateName> {
        let mut started: BTreeSet<&StateName> = from.into_iter().collect();
        loop {
            let reached = self.workflow_map.level(started.iter().copied());
            let texts =
                reached.iter().filter_map(|name| self.workflow_map.states.get(*name)?.text());
            let resets = texts.flat_map(|state| &state.edges).filter_map(|edge| {
                edge.transition.target().filter(|_| edge.transition.tag() == TagName::Reset)
            });
            let before = started.len();
            started.extend(resets);
            if started.len() == before {
                return reached;
            }
        }
    }

    /// Adds the results that joins wait for. Returns the states that the joined agents start in, and all states that
    /// they reach.
    fn joined(&mut self) -> (BTreeSet<&'a StateName>, BTreeSet<&'a StateName>) {
        let (mut children, mut joined) = (BTreeSet::new(), BTreeSet::new());
        for (join, agents) in awaited(self.workflow_map) {
            let prompt = self.workflow_map.states.get(join).and_then(FolderState::prompt);
            if prompt.is_none_or(|prompt| prompt.frontmatter.join.is_none()) {
                continue;
            }
            let states = self.until_the_end(agents.born_in.iter().copied());
            self.results_of(&states, join.as_str(), "joined", EdgeKind::Joins);
            children.extend(agents.born_in);
            joined.extend(states);
        }
        (children, joined)
    }

    /// Returns whether a state gives a result: `Some(true)` if that is certain, `None` if it gives none.
    fn gives_result(&self, name: &StateName) -> Option<bool> {
        match self.workflow_map.states.get(name)? {
            FolderState::Graph(_) | FolderState::Program(_) => Some(true),
            FolderState::Beyond(..) => Some(false),
            FolderState::Prompt(prompt) | FolderState::Script(prompt) => {
                let edges = prompt.edges.iter();
                let results = edges.filter(|edge| edge.transition.tag() == TagName::Result);
                results.map(TransitionEdge::is_certain).max()
            }
            FolderState::Unreadable(_) | FolderState::Other => None,
        }
    }
}

/// Returns the tag, with the list and the variables that a policy requires.
fn label(edge: &TransitionEdge, kind: EdgeKind) -> String {
    match edge.origin {
        TransitionOrigin::Failure => return "too many failed".to_owned(),
        TransitionOrigin::Timeout => return "not in time".to_owned(),
        TransitionOrigin::Policy | TransitionOrigin::Evaluator | TransitionOrigin::Text => {}
    }
    let tag = std::iter::once(edge.transition.tag().to_string());
    let list = match &edge.transition {
        Transition::Fork { each: Some(each), .. } => Some(list(each)),
        _ => (kind == EdgeKind::FansOut).then(|| "several at once".to_owned()),
    };
    let fixed =
        edge.transition.variables().iter().filter(|_| edge.origin != TransitionOrigin::Text);
    let fixed = fixed.map(|(name, value)| format!("{name}={value}"));
    tag.chain(list).chain(fixed).collect::<Vec<_>>().join(" ")
}

/// Returns the conditions on an answer's fields as a label. The rules come first among a policy's ways, in order.
fn when(edge: &TransitionEdge, index: usize, prompt: &FolderPrompt) -> String {
    let output =
        prompt.frontmatter.output.as_ref().filter(|_| edge.origin == TransitionOrigin::Policy);
    let tests =
        output.and_then(|output| output.rules.get(index)).map_or(&[][..], |rule| &rule.when);
    tests.iter().fold(String::new(), |label, test| format!("{label} {test}"))
}

/// Returns the label of a fork's list, as far as the list is known.
fn list(each: &ForkList) -> String {
    if each.is_inline() || each.list == ANY_LIST {
        return format!("for each {}", each.name);
    }
    format!("for each {} of {}", each.name, each.list)
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
