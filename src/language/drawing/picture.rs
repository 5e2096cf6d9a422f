//! What is drawn: nodes and edges, before anything is said of a format or of where they stand.

/// A picture of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowDrawing {
    /// What it is a picture of.
    pub title: String,
    /// The nodes, the near ones first.
    pub nodes: Vec<DrawingNode>,
    /// The edges.
    pub edges: Vec<DrawingEdge>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawingNode {
    /// By which it is known; no two have the same.
    pub id: String,
    /// What a person reads, a line or more.
    pub label: String,
    /// What it is.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// Where it begins.
    Start,
    /// Where an agent of a folder ends.
    End,
    /// A prompt with a policy.
    State,
    /// A prompt with a policy that waits for the agents forked before.
    Join,
    /// A prompt without a policy.
    Open,
    /// A graph or a program as a state.
    Graph,
    /// A state that cannot be entered.
    Missing,
    /// The prompt of an evaluator.
    Evaluator,
    /// A node of a graph that does something.
    Action,
    /// One that goes by a condition.
    Conditional,
    /// One that asks a person.
    UserPrompt,
    /// One that checks several conditions.
    ValidationGate,
    /// One that has a document carried out.
    Reference,
    /// A document or a skill that is carried out on the way.
    Document,
    /// A further agent, or a role of a program.
    Agent,
    /// A signal that a program waits for or gives.
    Signal,
    /// An ending of a graph or a program that is a success.
    Success,
    /// One that is an error.
    Failure,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawingEdge {
    /// The index of the node it leaves.
    pub from: usize,
    /// The index of the node it leads to.
    pub to: usize,
    /// What a person reads; it may be empty.
    pub label: String,
    /// What it is.
    pub kind: EdgeKind,
    /// Whether it is more than what a text shows.
    pub certain: bool,
}

/// What an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// The agent goes on: the beginning, `goto`, what follows a `fork` and a node.
    Goes,
    /// It goes on and forgets everything.
    Resets,
    /// It calls, and is to come back.
    Calls,
    /// It comes back from a call.
    Returns,
    /// A further agent is born.
    Forks,
    /// Several are born at once.
    FansOut,
    /// What an agent ends with is waited for.
    Joins,
    /// It ends.
    Ends,
    /// It goes on because something failed.
    Fails,
    /// Something is taken in on the way, such as an evaluator.
    Consults,
    /// A role is sent a request.
    Asks,
    /// Its answer is waited for.
    Answers,
}

impl WorkflowDrawing {
    /// The index of the node of an id, which is added if it is new.
    pub fn node(&mut self, id: &str, label: &str, kind: NodeKind) -> usize {
        self.find(id).unwrap_or_else(|| {
            self.nodes.push(DrawingNode { id: id.to_owned(), label: label.to_owned(), kind });
            self.nodes.len() - 1
        })
    }

    /// The index of the node of an id, if there is one.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    /// Adds an edge, unless there is the same already; of two that differ only in that, the certain one
    /// stays.
    pub fn edge(&mut self, edge: DrawingEdge) {
        let same = |other: &&mut DrawingEdge| {
            (other.from, other.to, other.kind) == (edge.from, edge.to, edge.kind)
                && other.label == edge.label
        };
        match self.edges.iter_mut().find(same) {
            Some(other) => other.certain |= edge.certain,
            None => self.edges.push(edge),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A drawing with everything in its labels that could break a format.
    pub(in super::super) fn hostile() -> WorkflowDrawing {
        let mut drawing =
            WorkflowDrawing { title: "a \"b\"\n<c>".to_owned(), ..WorkflowDrawing::default() };
        let labels =
            ["end", "a \"b\" <c> & #1; `d` %%{e} ]}|\\n", "zwei\nZeilen", "日本 ✓", "\u{7}"];
        for label in labels {
            drawing.node(label, label, NodeKind::State);
        }
        #[expect(clippy::needless_range_loop, reason = "it is a name as well as an index")]
        for to in 0..5 {
            let label = labels[to].to_owned();
            drawing.edge(DrawingEdge {
                from: 0,
                to,
                label,
                kind: EdgeKind::Goes,
                certain: to % 2 == 0,
            });
        }
        drawing
    }

    #[test]
    fn nodes_and_edges_are_there_once() {
        let mut drawing = WorkflowDrawing::default();
        assert_eq!(drawing.node("a", "A", NodeKind::State), 0);
        assert_eq!(drawing.node("a", "B", NodeKind::Open), 0);
        let edge = |certain| DrawingEdge {
            from: 0,
            to: 0,
            label: String::new(),
            kind: EdgeKind::Goes,
            certain,
        };
        drawing.edge(edge(false));
        drawing.edge(edge(true));
        drawing.edge(edge(false));
        assert_eq!(drawing.edges, [edge(true)]);
    }
}
