//! The content of a drawing: nodes and edges, before a format or a layout is chosen.

use std::collections::HashMap;

/// A picture of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowDrawing {
    /// The name of the drawn workflow.
    pub title: String,
    /// The nodes, the near ones first.
    pub nodes: Vec<DrawingNode>,
    /// The edges.
    pub edges: Vec<DrawingEdge>,
    /// The number of nodes that are left out, because there are too many of them.
    pub hidden: usize,
    /// The indices of the nodes by their ids.
    pub(super) by_id: HashMap<String, usize>,
    /// The indices of the edges by the nodes that they join.
    pub(super) by_ends: HashMap<(usize, usize, EdgeKind), Vec<usize>>,
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
            let index = self.nodes.len();
            self.nodes.push(DrawingNode { id: id.to_owned(), label: label.to_owned(), kind });
            self.by_id.insert(id.to_owned(), index);
            index
        })
    }

    /// Returns the index of the node with an id, if there is one.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Adds an edge, unless an equal one exists. If two edges differ only in their certainty, the certain one is kept.
    pub fn edge(&mut self, edge: DrawingEdge) {
        let alike = self.by_ends.entry((edge.from, edge.to, edge.kind)).or_default();
        if let Some(&other) = alike.iter().find(|&&other| self.edges[other].label == edge.label) {
            self.edges[other].certain |= edge.certain;
        } else {
            alike.push(self.edges.len());
            self.edges.push(edge);
        }
    }

    /// Returns the drawing with at most `max` nodes: the others, the far ones, become a single one that says how many
    /// they are.
    pub fn folded(self, max: usize) -> Self {
        let max = max.max(1);
        if self.nodes.len() <= max {
            return self;
        }
        let hidden = self.nodes.len() - max;
        let mut folded = Self { title: self.title, hidden, ..Self::default() };
        for DrawingNode { id, label, kind } in self.nodes.into_iter().take(max) {
            folded.node(&id, &label, kind);
        }
        let more = format!("… {hidden} more nodes,\nnot shown");
        let rest = folded.node("/more", &more, NodeKind::Graph);
        for edge in self.edges {
            let DrawingEdge { from, to, kind, certain, .. } = edge;
            match (from < max, to < max) {
                (true, true) => folded.edge(edge),
                (false, false) => {}
                _ => {
                    let (from, to) = (from.min(rest), to.min(rest));
                    folded.edge(DrawingEdge { from, to, label: String::new(), kind, certain });
                }
            }
        }
        folded
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
    fn far_nodes_are_folded_into_one() {
        let mut drawing = WorkflowDrawing::default();
        for index in 0..5 {
            drawing.node(&index.to_string(), "x", NodeKind::Action);
        }
        for (from, to) in [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 0)] {
            let label = format!("{from} to {to}");
            drawing.edge(DrawingEdge { from, to, label, kind: EdgeKind::Goes, certain: true });
        }
        assert_eq!(drawing.clone().folded(5), drawing);
        let folded = drawing.folded(2);
        let labels: Vec<&str> = folded.nodes.iter().map(|node| node.label.as_str()).collect();
        assert_eq!((labels, folded.hidden), (vec!["x", "x", "… 3 more nodes,\nnot shown"], 3));
        let edges: Vec<(usize, usize, &str)> =
            folded.edges.iter().map(|edge| (edge.from, edge.to, edge.label.as_str())).collect();
        assert_eq!(edges, [(0, 1, "0 to 1"), (1, 2, ""), (2, 0, "")]);
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
