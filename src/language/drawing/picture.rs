//! The content of a drawing: nodes and edges, before a format or a layout is chosen.

/// A picture of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowDrawing {
    /// The name of the drawn workflow.
    pub title: String,
    /// The nodes, the near ones first.
    pub nodes: Vec<DrawingNode>,
    /// The edges.
    pub edges: Vec<DrawingEdge>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawingNode {
    /// The id; it is unique.
    pub id: String,
    /// The text of the node, one line or more.
    pub label: String,
    /// The kind.
    pub kind: NodeKind,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// The start of the workflow.
    Start,
    /// The end of an agent of a folder.
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
    /// A node that branches on a condition.
    Conditional,
    /// A node that asks a person.
    UserPrompt,
    /// A node that checks several conditions.
    ValidationGate,
    /// A node that has a document carried out.
    Reference,
    /// A document or a skill that is carried out on the way.
    Document,
    /// A further agent, or a role of a program.
    Agent,
    /// A signal that a program waits for or gives.
    Signal,
    /// An ending of a graph or a program that is a success.
    Success,
    /// An ending of a graph or a program that is an error.
    Failure,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawingEdge {
    /// The index of the node it leaves.
    pub from: usize,
    /// The index of the node it leads to.
    pub to: usize,
    /// The text of the edge; it may be empty.
    pub label: String,
    /// The kind.
    pub kind: EdgeKind,
    /// False if only a mention in a text supports the edge.
    pub certain: bool,
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// The agent continues: the beginning, `goto`, the `next` of a `fork`, and the next node.
    Goes,
    /// The agent continues and forgets everything.
    Resets,
    /// The agent calls, and is to return.
    Calls,
    /// The agent returns from a call.
    Returns,
    /// A further agent starts.
    Forks,
    /// Several start at once.
    FansOut,
    /// The results of agents are waited for.
    Joins,
    /// The agent ends.
    Ends,
    /// The agent continues because something failed.
    Fails,
    /// Something is taken in on the way, such as an evaluator.
    Consults,
    /// A role is sent a request.
    Asks,
    /// The answer of a role is waited for.
    Answers,
}

impl WorkflowDrawing {
    /// Returns the index of the node with an id; adds the node if it is new.
    pub fn node(&mut self, id: &str, label: &str, kind: NodeKind) -> usize {
        self.find(id).unwrap_or_else(|| {
            self.nodes.push(DrawingNode { id: id.to_owned(), label: label.to_owned(), kind });
            self.nodes.len() - 1
        })
    }

    /// Returns the index of the node with an id, if there is one.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    /// Adds an edge, unless an equal one exists. If two edges differ only in their certainty, the certain one is kept.
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

    /// Returns a drawing whose labels contain everything that could break a format.
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
    fn duplicate_nodes_and_edges_are_merged() {
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
