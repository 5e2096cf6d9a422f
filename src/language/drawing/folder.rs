//! A folder of prompts as a picture.
//!
//! A result leads where it really does: out of a call to the state the caller goes on at, and to the
//! end where nobody called.

use std::collections::BTreeSet;

use super::picture::{Drawing, Edge, EdgeKind, NodeKind};
use crate::domain::id::StateName;
use crate::domain::transition::Transition;
use crate::language::program::walk::started;
use crate::language::prompt::outline::{Origin, Outline, Program, Prompt, State, Way};

/// By what the beginning and the end are known; no file has such a name.
const START: &str = "/start";
const END: &str = "/end";

/// Draws a folder.
#[must_use]
pub fn draw(outline: &Outline, title: &str) -> Drawing {
    let mut drawing = Drawing { title: title.to_owned(), ..Drawing::default() };
    drawing.node(START, "", NodeKind::Start);
    for name in &outline.order {
        let kind = outline.states.get(name).map_or(NodeKind::Missing, kind);
        drawing.node(name.as_str(), name.as_str(), kind);
    }
    let mut picture = Picture { outline, drawing };
    picture.edge(START, outline.entry.as_str(), "", EdgeKind::Goes, true);
    for (name, prompt) in outline.prompts() {
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

fn kind(state: &State) -> NodeKind {
    match state {
        State::Prompt(prompt) if prompt.is_open() => NodeKind::Open,
        State::Prompt(_) => NodeKind::State,
        State::Graph(_) | State::Program(_) => NodeKind::Graph,
        State::Unreadable(_) | State::Other => NodeKind::Missing,
    }
}

struct Picture<'a> {
    outline: &'a Outline,
    drawing: Drawing,
}

impl<'a> Picture<'a> {
    fn edge(&mut self, from: &str, to: &str, label: &str, kind: EdgeKind, certain: bool) {
        if let (Some(from), Some(to)) = (self.drawing.find(from), self.drawing.find(to)) {
            self.drawing.edge(Edge { from, to, label: label.to_owned(), kind, certain });
        }
    }

    /// All ways from a state but those that a result goes.
    fn ways(&mut self, name: &StateName, prompt: &Prompt) {
        for way in &prompt.ways {
            let kind = match &way.transition {
                Transition::Result { .. } => continue,
                Transition::Goto { .. } => EdgeKind::Goes,
                Transition::Ask { next, .. } => {
                    self.edge(
                        name.as_str(),
                        next.as_str(),
                        "ask",
                        EdgeKind::Goes,
                        way.is_certain(),
                    );
                    EdgeKind::Fails
                }
                Transition::Reset { .. } => EdgeKind::Resets,
                Transition::Call { .. } | Transition::Function { .. } => EdgeKind::Calls,
                Transition::Fork { next, .. } => {
                    self.edge(
                        name.as_str(),
                        next.as_str(),
                        "next",
                        EdgeKind::Goes,
                        way.is_certain(),
                    );
                    EdgeKind::Forks
                }
            };
            if let Some(late) = way.transition.late() {
                self.edge(name.as_str(), late.as_str(), "no answer", kind, way.is_certain());
            }
            if let Some(target) = way.transition.target() {
                let label = label(way);
                self.edge(name.as_str(), target.as_str(), &label, kind, way.is_certain());
            }
        }
    }

    /// The states that the text of a state without policy only speaks of.
    fn mentions(&mut self, name: &StateName, prompt: &Prompt) {
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

    /// The agents that programs begin.
    fn started(&mut self) {
        let outline = self.outline;
        for (name, state) in &outline.states {
            if let State::Program(Program { definition: Some(program), .. }) = state {
                for first in started(program) {
                    self.edge(name.as_str(), first.as_str(), "run-folder", EdgeKind::Forks, true);
                }
            }
        }
    }

    /// Where results lead.
    fn results(&mut self) {
        let outline = self.outline;
        let ways =
            || outline.prompts().flat_map(|(_, prompt)| &prompt.ways).map(|way| &way.transition);
        let on_their_own = ways().filter_map(|transition| match transition {
            Transition::Reset { target, .. } | Transition::Fork { target, .. } => Some(target),
            _ => None,
        });
        let ending = self.level(on_their_own.chain([&outline.entry]));
        if ending.iter().any(|name| self.gives_result(name).is_some()) {
            self.drawing.node(END, "end", NodeKind::End);
        }
        for name in ending {
            if let Some(certain) = self.gives_result(name) {
                self.edge(name.as_str(), END, "result", EdgeKind::Ends, certain);
            }
        }
        for (caller, prompt) in outline.prompts() {
            for way in &prompt.ways {
                if let Transition::Call { target, return_to, .. }
                | Transition::Function { target, return_to, .. } = &way.transition
                {
                    self.returns(caller, target, return_to);
                }
            }
        }
    }

    /// The results that come back from a call; the call itself goes on, if none is known.
    fn returns(&mut self, caller: &StateName, target: &StateName, return_to: &StateName) {
        let mut comes_back = false;
        for name in self.level([target]) {
            if let Some(certain) = self.gives_result(name) {
                comes_back = true;
                self.edge(name.as_str(), return_to.as_str(), "returns", EdgeKind::Returns, certain);
            }
        }
        if !comes_back {
            self.edge(caller.as_str(), return_to.as_str(), "returns", EdgeKind::Returns, false);
        }
    }

    /// The states that agents come to from these without calling, being called, or forgetting.
    fn level(&self, from: impl IntoIterator<Item = &'a StateName>) -> BTreeSet<&'a StateName> {
        let mut reached = BTreeSet::new();
        let mut to_look_at: Vec<&StateName> = from.into_iter().collect();
        while let Some(name) = to_look_at.pop() {
            let Some(state) = self.outline.states.get(name).filter(|_| reached.insert(name)) else {
                continue;
            };
            let ways = state.prompt().map_or(&[][..], |prompt| &prompt.ways);
            let next = ways.iter().flat_map(|way| match &way.transition {
                Transition::Reset { .. } => [None, None],
                Transition::Goto { target, .. } => [Some(target), None],
                other => [other.continuation(), other.late()],
            });
            to_look_at.extend(next.flatten());
        }
        reached
    }

    /// Whether a state gives a result, and whether that is certain.
    fn gives_result(&self, name: &StateName) -> Option<bool> {
        let state = self.outline.states.get(name)?;
        let is_result = |way: &&Way| matches!(way.transition, Transition::Result { .. });
        match state {
            State::Graph(_) | State::Program(_) => Some(true),
            State::Prompt(prompt) => {
                let ways = prompt.ways.iter().filter(is_result);
                ways.map(Way::is_certain).reduce(|one, other| one || other)
            }
            State::Unreadable(_) | State::Other => None,
        }
    }
}

/// The tag, with the variables that a policy asks for.
fn label(way: &Way) -> String {
    let tag = std::iter::once(way.transition.tag().to_string());
    let fixed = way.transition.variables().iter().filter(|_| way.origin != Origin::Text);
    tag.chain(fixed.map(|(name, value)| format!("{name}={value}"))).collect::<Vec<_>>().join(" ")
}
