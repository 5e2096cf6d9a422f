//! A picture as SVG.
//!
//! It is one file that every browser shows, without scripts, in light and in dark.

pub(super) mod shape;

use std::fmt::Write as _;

use super::layout::{DrawingLayout, EdgeRoute, LayoutEdge, LayoutInput, layout};
use super::picture::{DrawingEdge, EdgeKind, WorkflowDrawing};

/// The free space around the picture.
const MARGIN: f64 = 16.0;
/// The height of a label, and how wide one of its columns is.
pub(super) const LABEL: (f64, f64) = (14.0, 6.2);
/// The maximum shown width of a label, in columns.
pub(super) const MAX_LABEL_CHARS: usize = 40;

/// The colours of the lines and the text for light, then for dark backgrounds, and the colours of the kinds of edges
/// for both.
const STYLE: &str = "\
.node{fill:#f1f5f9;stroke:#64748b;stroke-width:1.3}\
.name{fill:#0f172a;font:13px system-ui,sans-serif;text-anchor:middle}\
.edge{fill:none;stroke:#64748b;stroke-width:1.3}\
.head{fill:#64748b}\
.label{fill:#64748b;font:11px system-ui,sans-serif}\
.begins{fill:#64748b}\
@media(prefers-color-scheme:dark){\
.node{fill:#1e293b;stroke:#94a3b8}.name{fill:#f1f5f9}.edge{stroke:#94a3b8}\
.head,.label,.begins{fill:#94a3b8}}\
.loose{stroke-dasharray:5 4}.dots{stroke-dasharray:1.5 3}.bold{stroke-width:2.6}\
.wrong{stroke:#dc2626}.well{stroke:#16a34a}\
.edge.calls{stroke:#8b5cf6}.edge.forks{stroke:#3b82f6}.edge.fails{stroke:#dc2626}\
.head.calls{fill:#8b5cf6}.head.forks{fill:#3b82f6}.head.fails{fill:#dc2626}";

/// Returns the sizes of the nodes and labels of a picture, which are laid out.
pub(super) fn layout_input(drawing: &WorkflowDrawing) -> LayoutInput {
    let link = |edge: &DrawingEdge| {
        let columns = shape::columns(&shape::shortened(&edge.label, MAX_LABEL_CHARS));
        let label = if columns > 0.0 { (columns * LABEL.1, LABEL.0) } else { (0.0, 0.0) };
        LayoutEdge { from: edge.from, to: edge.to, label }
    };
    LayoutInput {
        nodes: drawing.nodes.iter().map(shape::size).collect(),
        edges: drawing.edges.iter().map(link).collect(),
    }
}

/// Writes a picture.
pub fn write(drawing: &WorkflowDrawing) -> String {
    let plan = layout_input(drawing);
    let DrawingLayout { width, height, nodes, edges } = layout(&plan);
    let (width, height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"{left:.0} {left:.0} {width:.0} {height:.0}\">\n<title>{}</title>\n<style>{STYLE}</style>\n",
        escaped(&drawing.title),
        left = -MARGIN,
    );
    for (edge, route) in drawing.edges.iter().zip(&edges) {
        draw_edge(&mut text, edge, route);
    }
    for ((node, &size), &middle) in drawing.nodes.iter().zip(&plan.nodes).zip(&nodes) {
        shape::draw(&mut text, node, size, middle);
    }
    text.push_str("</svg>\n");
    text
}

fn draw_edge(text: &mut String, edge: &DrawingEdge, route: &EdgeRoute) {
    let (line, colour) = classes(edge);
    let path = if edge.from == edge.to { loop_of(route) } else { curve_of(route) };
    let _ = writeln!(text, "<path class=\"edge{line}{colour}\" d=\"{path}\"/>");
    if edge.kind != EdgeKind::Consults {
        let _ = writeln!(text, "<path class=\"head{colour}\" d=\"{}\"/>", head(route));
    }
    if !edge.label.is_empty() {
        let (x, y) = route.label;
        let label = escaped(&shape::shortened(&edge.label, MAX_LABEL_CHARS));
        let _ = writeln!(
            text,
            "<text class=\"label\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>",
            y + 4.0
        );
    }
}

pub(super) fn classes(edge: &DrawingEdge) -> (&'static str, &'static str) {
    let line = match edge.kind {
        _ if !edge.certain => " loose",
        EdgeKind::Asks | EdgeKind::Answers => " loose",
        EdgeKind::Consults => " dots",
        EdgeKind::Resets | EdgeKind::FansOut => " bold",
        _ => "",
    };
    let colour = match edge.kind {
        EdgeKind::Calls | EdgeKind::Returns | EdgeKind::Asks | EdgeKind::Answers => " calls",
        EdgeKind::Forks | EdgeKind::FansOut | EdgeKind::Joins => " forks",
        EdgeKind::Fails => " fails",
        EdgeKind::Goes | EdgeKind::Resets | EdgeKind::Ends | EdgeKind::Consults => "",
    };
    (line, colour)
}

/// Returns the curve of an edge: upright at each end, straight through a layer.
pub(super) fn curve_of(route: &EdgeRoute) -> String {
    let mut path = String::new();
    let straight = |one: f64, other: f64| (one - other).abs() < 0.05;
    for (index, &(x, y)) in route.points.iter().enumerate() {
        let next = route.points.get(index + 1);
        let _ = match index.checked_sub(1).map(|before| route.points[before]) {
            None => write!(path, "M{x:.1} {y:.1}"),
            Some((before, _)) if straight(x, before) => match next {
                Some((next, _)) if straight(x, *next) => continue,
                _ => write!(path, "V{y:.1}"),
            },
            Some((before, above)) => {
                let middle = f64::midpoint(above, y);
                write!(path, "C{before:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}")
            }
        };
    }
    path
}

pub(super) fn loop_of(route: &EdgeRoute) -> String {
    match route.points[..] {
        [(x, y), (out, above), (_, below), (_, end)] => {
            format!("M{x:.1} {y:.1}C{out:.1} {above:.1} {out:.1} {below:.1} {x:.1} {end:.1}")
        }
        _ => String::new(),
    }
}

/// Returns the head of an arrow. An edge ends upright, a loop comes from the right.
pub(super) fn head(route: &EdgeRoute) -> String {
    let Some(&[(from_x, from_y), (x, y)]) = route.points.last_chunk::<2>() else {
        return String::new();
    };
    if (from_y - y).abs() < 0.05 && from_x > x {
        return format!("M{x:.1} {y:.1}l7 -3.5v7z");
    }
    let back = if y > from_y { -7.0 } else { 7.0 };
    format!("M{x:.1} {y:.1}l-3.5 {back:.0}h7z")
}

/// Returns a text without special meaning to XML, and without the characters that XML forbids.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push(' '),
            '\u{fffe}' | '\u{ffff}' => safe.push(char::REPLACEMENT_CHARACTER),
            c if c.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::picture::tests::hostile;
    use super::super::picture::{DrawingNode, NodeKind};
    use super::*;

    #[test]
    fn any_label_gives_valid_xml() {
        let text = write(&hostile());
        let document = roxmltree::Document::parse(&text).expect("valid XML");
        let shown: Vec<&str> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("name"))
            .flat_map(|node| node.descendants())
            .filter_map(|node| node.text().filter(|_| node.is_text()))
            .collect();
        let expected =
            ["end", "a \"b\" <c> & #1; `d` %%{e} ]}|\\n", "zwei", "Zeilen", "日本 ✓", "�"];
        assert_eq!(shown, expected);
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("script")).count(), 0);
    }

    #[test]
    fn each_kind_of_node_has_a_shape() {
        let kinds = [
            NodeKind::Start,
            NodeKind::End,
            NodeKind::State,
            NodeKind::Join,
            NodeKind::Open,
            NodeKind::Graph,
            NodeKind::Missing,
            NodeKind::Evaluator,
            NodeKind::Action,
            NodeKind::Conditional,
            NodeKind::UserPrompt,
            NodeKind::ValidationGate,
            NodeKind::Reference,
            NodeKind::Document,
            NodeKind::Agent,
            NodeKind::Signal,
            NodeKind::Success,
            NodeKind::Failure,
        ];
        let node = |(index, kind): (usize, NodeKind)| DrawingNode {
            id: index.to_string(),
            label: "x".into(),
            kind,
        };
        let nodes: Vec<DrawingNode> = kinds.into_iter().enumerate().map(node).collect();
        let drawing = WorkflowDrawing { nodes, ..WorkflowDrawing::default() };
        let text = write(&drawing);
        let document = roxmltree::Document::parse(&text).expect("valid XML");
        let shapes = document.descendants().filter(|node| {
            node.attribute("class")
                .is_some_and(|class| class.starts_with("node") || class == "begins")
        });
        assert!(shapes.count() >= kinds.len());
    }

    #[test]
    fn empty_drawing_gives_valid_xml() {
        let text = write(&WorkflowDrawing::default());
        assert!(roxmltree::Document::parse(&text).is_ok(), "{text}");
    }
}
