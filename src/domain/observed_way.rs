//! The ways that a run has taken, as a test sees them: from state to state, and from node to node. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::graph_execution::NodeName;
use super::id::StateName;
use super::transition::Transition;

/// A way from a state to another one, or from a node of a graph to a node or an ending.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedWay {
    /// The state that it leads from: `START.md`, `workflow.yaml#node`.
    pub from: String,
    /// The case in which it is taken.
    pub case: ObservedWayCase,
    /// The state that it leads to, without its folder or its file; empty for a result.
    pub to: String,
}

/// The case in which a way is taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObservedWayCase {
    /// A transition with this tag.
    Tag(&'static str),
    /// The node has this outcome.
    Outcome(String),
    /// The node has any outcome.
    Any,
}

impl ObservedWay {
    /// Returns the ways of a transition from a state: one for each state that it enters, or one for the question or the
    /// result.
    pub fn of(from: &str, transition: &Transition) -> Vec<Self> {
        let forked: Vec<StateName> =
            transition.forked().into_iter().map(|fork| fork.target).collect();
        let entered: Vec<&StateName> = match transition {
            Transition::Ask { next, .. } => vec![next],
            Transition::Result { .. } => {
                let case = ObservedWayCase::Tag(transition.tag().name());
                return vec![Self { from: from.to_owned(), case, to: String::new() }];
            }
            _ => match transition.entered() {
                Some((_, target)) if forked.is_empty() => vec![target],
                _ => forked.iter().collect(),
            },
        };
        let case = ObservedWayCase::Tag(transition.tag().name());
        let last =
            |name: &StateName| name.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        let way = |to: &StateName| Self { from: from.to_owned(), case: case.clone(), to: last(to) };
        entered.into_iter().map(way).collect()
    }

    /// Returns the way from a node that had an outcome.
    pub fn from_node(from: String, outcome: &str, to: &NodeName) -> Self {
        Self { from, case: ObservedWayCase::Outcome(outcome.to_owned()), to: to.to_string() }
    }

    /// Returns whether to take this way is to take one that is described.
    pub fn is(&self, described: &Self) -> bool {
        let fits = described.case == ObservedWayCase::Any || described.case == self.case;
        fits && self.from == described.from && self.to == described.to
    }
}

impl fmt::Display for ObservedWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, case, to } = self;
        match case {
            ObservedWayCase::Tag("ask") => write!(f, "{from}: <ask next=\"{to}\">"),
            ObservedWayCase::Tag(tag) if to.is_empty() => write!(f, "{from}: <{tag}>"),
            ObservedWayCase::Tag(tag) => write!(f, "{from}: <{tag}>{to}</{tag}>"),
            ObservedWayCase::Outcome(outcome) => write!(f, "{from} → {to} ({outcome})"),
            ObservedWayCase::Any => write!(f, "{from} → {to}"),
        }
    }
}

/// The progress of a program in one record. It may have passed several states, of which the record tells the number of
/// moves to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramMove {
    /// The program: `workflow.lisp`.
    pub program: String,
    /// The state that it was in before.
    pub from: Arc<str>,
    /// The state that it is in.
    pub to: Arc<str>,
    /// The number of moves to each state in between. To fall through from a state to the next one is none.
    pub entered: BTreeMap<String, u64>,
}

/// The position of an agent in its program, as its last record tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramTrace {
    program: String,
    state: Arc<str>,
    entries: BTreeMap<String, u64>,
}

impl ProgramTrace {
    /// Returns the trace of a program that begins.
    pub fn begin(program: String, state: &Arc<str>) -> Self {
        Self { program, state: Arc::clone(state), entries: BTreeMap::new() }
    }

    /// Goes on to a state; returns the move. `entries` counts the moves to each state since the beginning.
    pub fn go_on(&mut self, state: &Arc<str>, entries: &BTreeMap<String, u64>) -> ProgramMove {
        let before = |name: &String| self.entries.get(name).copied().unwrap_or_default();
        let more = entries.iter().map(|(name, count)| {
            let count = count.saturating_sub(before(name));
            (name.clone(), count)
        });
        let entered = more.filter(|(_, count)| *count > 0).collect();
        let from = std::mem::replace(&mut self.state, Arc::clone(state));
        self.entries.clone_from(entries);
        ProgramMove { program: self.program.clone(), from, to: Arc::clone(state), entered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_and_result_are_ways_too() {
        let shown = |json: serde_json::Value| -> Vec<String> {
            let transition = serde_json::from_value(json).expect("a transition");
            ObservedWay::of("A.md", &transition).iter().map(ToString::to_string).collect()
        };
        let ask = serde_json::json!({"tag": "ask", "question": "Keep?", "next": "B.md"});
        assert_eq!(shown(ask), ["A.md: <ask next=\"B.md\">"]);
        let one = serde_json::json!({"tag": "result", "payload": "one"});
        let other = serde_json::json!({"tag": "result", "payload": "other"});
        assert_eq!(shown(one.clone()), ["A.md: <result>"]);
        assert_eq!(shown(one), shown(other));
        assert_eq!(
            shown(serde_json::json!({"tag": "goto", "target": "B.md"})),
            ["A.md: <goto>B.md</goto>"]
        );
    }
}
