//! Drawings of folders of prompts.
//!
//! A result leads to its real destination: from a call to the state that the caller returns to, from a worker to
//! the state that waits for it, and to the end if there is no caller and no join.

use std::collections::BTreeSet;

use super::picture::{DrawingEdge, EdgeKind, NodeKind, WorkflowDrawing};
use crate::program::walk::started;
use crate::prompt::joins::awaited;
use crate::prompt::workflow_map::{
    FolderProgram, FolderPrompt, FolderState, TransitionEdge, TransitionOrigin, WorkflowMap,
};
use raymond_model::id::StateName;
use raymond_model::time::format_duration;
use raymond_model::transition::{ANY_LIST, ForkList, TagName, Transition};

/// The ids of the beginning and the end; no file has such a name.
const START: &str = "/start";
const END: &str = "/end";

/// Draws a folder.
pub fn draw(workflow_map: &WorkflowMap, title: &str) -> WorkflowDrawing {
    let mut drawing = WorkflowDrawing { title: title.to_owned(), ..WorkflowDrawing::default() };
    drawing.node(START, "", NodeKind::Start);
    for name in &workflow_map.order {
        let kind = workflow_map.states.get(name).map_or(NodeKind::Missing, kind);
        let join = workflow_map.states.get(name).and_then(join);
        let label = join.map_or_else(|| name.to_string(), |join| format!("{name}\n{join}"));
        drawing.node(name.as_str(), &label, kind);
    }
    let mut picture = FolderDrawingBuilder { workflow_map, drawing };
    picture.edge(START, workflow_map.entry.as_str(), "", EdgeKind::Goes, true);
    for (name, prompt) in workflow_map.texts() {
        picture.ways(name, prompt);
        picture.mentions(name, prompt);
        if let Some(evaluator) = prompt.evaluator() {
            let id = format!("/evaluator/{evaluator}");
            picture.drawing.node(&id, evaluator.as_str(), NodeKind::Evaluator);
            picture.edge(name.as_str(), &id, "judged by", EdgeKind::Consults, true);
        }
    }
    picture.started();
    picture.results();
    picture.drawing
}

fn kind(state: &FolderState) -> NodeKind {
    match state {
        FolderState::Prompt(prompt) if prompt.is_open() => NodeKind::Open,
        FolderState::Prompt(prompt) if prompt.frontmatter.join.is_some() => NodeKind::Join,
        FolderState::Prompt(_) => NodeKind::State,
        FolderState::Graph(_)
        | FolderState::Program(_)
        | FolderState::Script(_)
        | FolderState::Beyond(..) => NodeKind::Graph,
        FolderState::Unreadable(_) | FolderState::Other => NodeKind::Missing,
    }
}

/// Returns the label of a join: its condition and its time limit.
fn join(state: &FolderState) -> Option<String> {
    let join = state.prompt()?.frontmatter.join.as_ref()?;
    let within = join.timeout_ms.map(|timeout| format!(" within {}", format_duration(timeout)));
    Some(format!("join {}{}", join.need, within.unwrap_or_default()))
}

/// Returns the kind of a fork's edges: forks of several agents at once have their own.
fn forks(way: &TransitionEdge, prompt: &FolderPrompt) -> EdgeKind {
    let has_list = matches!(way.transition, Transition::Fork { each: Some(_), .. });
    let several = has_list || prompt.frontmatter.policy.many_forks;
    if several { EdgeKind::FansOut } else { EdgeKind::Forks }
}

struct FolderDrawingBuilder<'a> {
    workflow_map: &'a WorkflowMap,
    drawing: WorkflowDrawing,
}

impl<'a> FolderDrawingBuilder<'a> {
    fn edge(&mut self, from: &str, to: &str, label: &str, kind: EdgeKind, certain: bool) {
        if let (Some(from), Some(to)) = (self.drawing.find(from), self.drawing.find(to)) {
            self.drawing.edge(DrawingEdge { from, to, label: label.to_owned(), kind, certain });
        }
    }

    /// Draws all ways from a state except those of results.
    fn ways(&mut self, name: &StateName, prompt: &FolderPrompt) {
        for (index, way) in prompt.ways.iter().enumerate() {
            let (kind, along) = match &way.transition {
                Transition::Result { .. } => continue,
                Transition::Goto { .. } if way.is_of_join() => (EdgeKind::Fails, None),
                Transition::Goto { .. } => (EdgeKind::Goes, None),
                Transition::Ask { next, .. } => (EdgeKind::Fails, Some((next, "ask"))),
                Transition::Reset { .. } => (EdgeKind::Resets, None),
                Transition::Call { .. } | Transition::Function { .. } => (EdgeKind::Calls, None),
                Transition::Fork { next, .. } => (forks(way, prompt), Some((next, "next"))),
            };
            let (from, certain) = (name.as_str(), way.is_certain());
            if let Some((next, label)) = along {
                self.edge(from, next.as_str(), label, EdgeKind::Goes, certain);
            }
            if let Some(late) = way.transition.timeout_state() {
                self.edge(from, late.as_str(), "no answer", kind, certain);
            }
            if let Some(target) = way.transition.target() {
                let label = [label(way, kind), when(way, index, prompt)].concat();
                self.edge(from, target.as_str(), &label, kind, certain);
            }
        }
    }

    /// Draws the states that the text of a state without policy only mentions.
    fn mentions(&mut self, name: &StateName, prompt: &FolderPrompt) {
        if prompt.is_open() {
            let named: Vec<&StateName> =
                prompt.ways.iter().flat_map(|way| way.transition.states()).collect();
            for other in prompt.mentioned.iter().filter(|other| !named.contains(other)) {
                if other != name {
                    self.edge(name.as_str(), other.as_str(), "", EdgeKind::Goes, false);
                }
            }
        }
    }

    /// Draws the agents that programs start.
    fn started(&mut self) {
        let workflow_map = self.workflow_map;
        for (name, state) in &workflow_map.states {
            if let FolderState::Program(FolderProgram { program: Some(program), .. }) = state {
                for first in started(program) {
                    self.edge(name.as_str(), first.as_str(), "run-folder", EdgeKind::Forks, true);
                }
            }
        }
    }

    /// Draws the edges that results lead along.
    fn results(&mut self) {
        let workflow_map = self.workflow_map;
        let ways = || workflow_map.ways();
        let (joined_children, joined) = self.joined();
        let on_their_own = ways().filter_map(|transition| match transition {
            Transition::Reset { target, .. } => Some(target).filter(|to| !joined.contains(to)),
            Transition::Fork { target, .. } => {
                Some(target).filter(|to| !joined_children.contains(to))
            }
            _ => None,
        });
        let ending = self.until_the_end(on_their_own.chain([&workflow_map.entry]));
        if ending.iter().any(|name| self.gives_result(name).is_some()) {
            self.drawing.node(END, "end", NodeKind::End);
        }
        for name in ending {
            if let Some(certain) = self.gives_result(name) {
                self.edge(name.as_str(), END, "result", EdgeKind::Ends, certain);
            }
        }
        for (caller, prompt) in workflow_map.texts() {
            for way in &prompt.ways {
                if let Transition::Call { target, return_to, .. }
                | Transition::Function { target, return_to, .. } = &way.transition
                {
                    self.returns(caller, target, return_to);
                }
            }
        }
    }

    /// Returns the states that agents reach from these without calling or being called.
    fn until_the_end(
        &self,
        from: impl IntoIterator<Item = &'a StateName>,
    ) -> BTreeSet<&'a StateName> {
        let mut begun: BTreeSet<&StateName> = from.into_iter().collect();
        loop {
            let reached = self.workflow_map.level(begun.iter().copied());
            let texts =
                reached.iter().filter_map(|name| self.workflow_map.states.get(*name)?.text());
            let resets = texts.flat_map(|state| &state.ways).filter_map(|way| {
                way.transition.target().filter(|_| way.transition.tag() == TagName::Reset)
            });
            let more: Vec<&StateName> = resets.filter(|to| !begun.contains(to)).collect();
            if more.is_empty() {
                return reached;
            }
            begun.extend(more);
        }
    }

    /// Draws the results that joins wait for. Returns the states that the joined agents start in, and all
    /// states that they reach.
    fn joined(&mut self) -> (BTreeSet<&'a StateName>, BTreeSet<&'a StateName>) {
        let workflow_map = self.workflow_map;
        let (mut children, mut joined) = (BTreeSet::new(), BTreeSet::new());
        for (join, agents) in awaited(workflow_map) {
            let prompt = workflow_map.states.get(join).and_then(FolderState::prompt);
            if prompt.is_none_or(|prompt| prompt.frontmatter.join.is_none()) {
                continue;
            }
            let states = self.until_the_end(agents.born_in.iter().copied());
            for name in &states {
                if let Some(certain) = self.gives_result(name) {
                    self.edge(name.as_str(), join.as_str(), "joined", EdgeKind::Joins, certain);
                }
            }
            children.extend(agents.born_in);
            joined.extend(states);
        }
        (children, joined)
    }

    /// Draws the results that return from a call. If no result is known, the call itself leads to the caller's next
    /// state.
    fn returns(&mut self, caller: &StateName, target: &StateName, return_to: &StateName) {
        let mut comes_back = false;
        for name in self.workflow_map.level([target]) {
            if let Some(certain) = self.gives_result(name) {
                comes_back = true;
                self.edge(name.as_str(), return_to.as_str(), "returns", EdgeKind::Returns, certain);
            }
        }
        if !comes_back {
            self.edge(caller.as_str(), return_to.as_str(), "returns", EdgeKind::Returns, false);
        }
    }

    /// Returns whether a state gives a result: `Some(true)` if that is certain, `None` if it gives none.
    fn gives_result(&self, name: &StateName) -> Option<bool> {
        let state = self.workflow_map.states.get(name)?;
        let is_result = |way: &&TransitionEdge| matches!(way.transition, Transition::Result { .. });
        match state {
            FolderState::Graph(_) | FolderState::Program(_) => Some(true),
            FolderState::Beyond(..) => Some(false),
            FolderState::Prompt(prompt) | FolderState::Script(prompt) => {
                let ways = prompt.ways.iter().filter(is_result);
                ways.map(TransitionEdge::is_certain).reduce(|one, other| one || other)
            }
            FolderState::Unreadable(_) | FolderState::Other => None,
        }
    }
}

/// Returns the tag, with the list and the variables that a policy requires.
fn label(way: &TransitionEdge, kind: EdgeKind) -> String {
    match way.origin {
        TransitionOrigin::Failure => return "too many failed".to_owned(),
        TransitionOrigin::Timeout => return "not in time".to_owned(),
        TransitionOrigin::Policy | TransitionOrigin::Evaluator | TransitionOrigin::Text => {}
    }
    let tag = std::iter::once(way.transition.tag().to_string());
    let list = match &way.transition {
        Transition::Fork { each: Some(each), .. } => Some(list(each)),
        _ => (kind == EdgeKind::FansOut).then(|| "several at once".to_owned()),
    };
    let fixed = way.transition.variables().iter().filter(|_| way.origin != TransitionOrigin::Text);
    let fixed = fixed.map(|(name, value)| format!("{name}={value}"));
    tag.chain(list).chain(fixed).collect::<Vec<_>>().join(" ")
}

/// Returns the conditions on an answer's fields as a label. The rules come first among a policy's ways, in order.
fn when(way: &TransitionEdge, index: usize, prompt: &FolderPrompt) -> String {
    let output =
        prompt.frontmatter.output.as_ref().filter(|_| way.origin == TransitionOrigin::Policy);
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
