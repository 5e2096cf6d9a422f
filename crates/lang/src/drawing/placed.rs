//! A picture with the places of its nodes and edges, for programs that draw it themselves.

use schemars::JsonSchema;
use serde::Serialize;

use super::layout::{DrawingLayout, EdgeRoute, layout};
use super::picture::{DrawingEdge, DrawingNode, EdgeKind, NodeKind, WorkflowDrawing};
use super::svg::{MAX_LABEL_CHARS, classes, curve_of, head, layout_input, loop_of, shape};

/// A picture whose parts have their places.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlacedDrawing {
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
    /// The number of nodes that are left out.
    pub hidden: usize,
    /// The nodes.
    pub nodes: Vec<PlacedNode>,
    /// The edges.
    pub edges: Vec<PlacedEdge>,
}

/// A node with its place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlacedNode {
    /// The id: the name of a state.
    pub id: String,
    /// The lines of its text.
    pub lines: Vec<String>,
    /// The form: `start`, `end`, `state` or `other`.
    pub form: &'static str,
    /// The middle.
    pub x: f64,
    /// The middle.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

/// An edge with its place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlacedEdge {
    /// The line, as the path of an SVG.
    pub path: String,
    /// The head of the arrow, likewise; empty if it has none.
    pub head: String,
    /// The text.
    pub label: String,
    /// The left end of the text, at half its height.
    pub label_at: (f64, f64),
    /// The words for its line and its colour.
    pub look: String,
}

impl PlacedDrawing {
    /// Lays out a picture, as in an SVG.
    pub fn of(drawing: &WorkflowDrawing) -> Self {
        let plan = layout_input(drawing);
        let DrawingLayout { width, height, nodes, edges } = layout(&plan);
        let places = plan.nodes.iter().zip(nodes);
        Self {
            width,
            height,
            hidden: drawing.hidden,
            nodes: drawing
                .nodes
                .iter()
                .zip(places)
                .map(|(one, (&size, at))| node(one, size, at))
                .collect(),
            edges: drawing.edges.iter().zip(&edges).map(|(one, route)| edge(one, route)).collect(),
        }
    }
}

fn node(node: &DrawingNode, (width, height): (f64, f64), (x, y): (f64, f64)) -> PlacedNode {
    let form = match node.kind {
        NodeKind::Start => "start",
        NodeKind::End | NodeKind::Success | NodeKind::Failure => "end",
        NodeKind::State | NodeKind::Join | NodeKind::Open => "state",
        _ => "other",
    };
    PlacedNode { id: node.id.clone(), lines: shape::lines(node), form, x, y, width, height }
}

fn edge(edge: &DrawingEdge, route: &EdgeRoute) -> PlacedEdge {
    let (line, colour) = classes(edge);
    let is_headless = edge.kind == EdgeKind::Consults;
    PlacedEdge {
        path: if edge.from == edge.to { loop_of(route) } else { curve_of(route) },
        head: if is_headless { String::new() } else { head(route) },
        label: shape::shortened(&edge.label, MAX_LABEL_CHARS),
        label_at: route.label,
        look: format!("{line}{colour}").trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::picture::tests::hostile;
    use super::*;

    #[test]
    fn texts_stay_as_they_are() {
        let placed = PlacedDrawing::of(&hostile());
        assert_eq!(placed.nodes.len(), 5);
        assert_eq!(placed.nodes[1].lines, ["a \"b\" <c> & #1; `d` %%{e} ]}|\\n"]);
        assert!(placed.edges.iter().all(|edge| edge.path.starts_with('M')));
    }
}
