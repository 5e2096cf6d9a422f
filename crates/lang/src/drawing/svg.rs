//! A flow as SVG, or with the places of its parts, for programs that draw it themselves.
//!
//! An SVG is one file that every browser shows, without scripts, in light and in dark. Writing is measured by counting
//! its columns.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::layout::{DrawingLayout, EdgeRoute, LayoutEdge, LayoutInput, layout};
use crate::flow::{EdgeLine, Flow, FlowEdge, FlowPlace, PlaceKind};
use raymond_model::tool_call::first_characters;

/// The free space around the picture.
const MARGIN: f64 = 16.0;
/// The height of a label, and how wide one of its columns is.
const LABEL: (f64, f64) = (14.0, 6.2);
/// The maximum shown width of a label, in characters.
const MAX_LABEL_CHARS: usize = 40;

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

/// The height of a line in a node, and how wide one of its columns is.
const LINE: (f64, f64) = (17.0, 7.4);
/// The maximum number of lines shown in a node, and of columns in each line.
const MAX_LABEL_LINES: usize = 4;
const MAX_LINE_CHARS: usize = 48;

/// A picture whose parts have their places.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlacedDrawing {
    pub width: f64,
    pub height: f64,
    /// The number of nodes that are left out.
    pub hidden: usize,
    pub nodes: Vec<PlacedNode>,
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
    /// The horizontal coordinate of its center.
    pub x: f64,
    /// The vertical coordinate of its center.
    pub y: f64,
    pub width: f64,
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
    /// The word for its colour.
    #[serde(skip)]
    colour: &'static str,
}

impl PlacedDrawing {
    /// Lays out a flow, as in an SVG.
    pub fn of(flow: &Flow) -> Self {
        let plan = LayoutInput {
            nodes: flow.places.iter().map(size).collect(),
            edges: flow.edges.iter().map(layout_edge).collect(),
        };
        let DrawingLayout { width, height, nodes, edges } = layout(&plan);
        let places = flow.places.iter().zip(plan.nodes.iter().zip(nodes));
        Self {
            width,
            height,
            hidden: flow.hidden,
            nodes: places.map(|(place, (&size, at))| PlacedNode::of(place, size, at)).collect(),
            edges: flow
                .edges
                .iter()
                .zip(&edges)
                .map(|(edge, route)| PlacedEdge::of(edge, route))
                .collect(),
        }
    }
}

fn layout_edge(edge: &FlowEdge) -> LayoutEdge {
    let columns = columns(&first_characters(&edge.label, MAX_LABEL_CHARS));
    let label = if columns > 0.0 { (columns * LABEL.1, LABEL.0) } else { (0.0, 0.0) };
    LayoutEdge { from: edge.from, to: edge.to, label }
}

impl PlacedNode {
    fn of(place: &FlowPlace, size: (f64, f64), middle: (f64, f64)) -> Self {
        let ((width, height), (x, y)) = (size, middle);
        let form = match place.kind {
            PlaceKind::Start => "start",
            PlaceKind::End | PlaceKind::Success | PlaceKind::Failure => "end",
            PlaceKind::State | PlaceKind::Join | PlaceKind::Open => "state",
            _ => "other",
        };
        Self { id: place.id.clone(), lines: lines(place), form, x, y, width, height }
    }
}

impl PlacedEdge {
    fn of(edge: &FlowEdge, route: &EdgeRoute) -> Self {
        let line = match edge.line() {
            EdgeLine::Plain => "",
            EdgeLine::Dashed => "loose ",
            EdgeLine::Dotted => "dots ",
            EdgeLine::Bold => "bold ",
        };
        let colour = edge.colour().map_or("", |colour| colour.word);
        Self {
            path: if edge.from == edge.to { loop_of(route) } else { curve_of(route) },
            head: if edge.has_head() { head(route) } else { String::new() },
            label: first_characters(&edge.label, MAX_LABEL_CHARS),
            label_at: route.label,
            look: format!("{line}{colour}").trim().to_owned(),
            colour,
        }
    }
}

/// Writes a flow.
pub fn write(flow: &Flow) -> String {
    let PlacedDrawing { width, height, nodes, edges, .. } = PlacedDrawing::of(flow);
    let (width, height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"{left:.0} {left:.0} {width:.0} {height:.0}\">\n<title>{}</title>\n<style>{STYLE}</style>\n",
        escaped(&flow.title),
        left = -MARGIN,
    );
    for PlacedEdge { path, head, label, label_at: (x, y), look, colour } in &edges {
        let class = |class: &str, look: &str| format!("{class} {look}").trim_end().to_owned();
        let _ = writeln!(text, "<path class=\"{}\" d=\"{path}\"/>", class("edge", look));
        if !head.is_empty() {
            let _ = writeln!(text, "<path class=\"{}\" d=\"{head}\"/>", class("head", colour));
        }
        if !label.is_empty() {
            let (y, label) = (y + 4.0, escaped(label));
            let _ =
                writeln!(text, "<text class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
        }
    }
    for (place, node) in flow.places.iter().zip(&nodes) {
        draw(&mut text, place.kind, node);
    }
    text.push_str("</svg>\n");
    text
}

/// Returns the curve of an edge: vertical at each end, straight through a layer.
fn curve_of(route: &EdgeRoute) -> String {
    let mut path = String::new();
    let straight = |from: f64, to: f64| (from - to).abs() < 0.05;
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

fn loop_of(route: &EdgeRoute) -> String {
    match route.points[..] {
        [(x, y), (out, above), (_, below), (_, end)] => {
            format!("M{x:.1} {y:.1}C{out:.1} {above:.1} {out:.1} {below:.1} {x:.1} {end:.1}")
        }
        _ => String::new(),
    }
}

/// Returns the head of an arrow. An edge ends upright, a loop comes from the right.
fn head(route: &EdgeRoute) -> String {
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

/// Returns the width of a text in columns; an East Asian wide character takes two.
fn columns(text: &str) -> f64 {
    let wide = |c: char| matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    text.chars().map(|c| if wide(c) { 2.0 } else { 1.0 }).sum()
}

fn lines(node: &FlowPlace) -> Vec<String> {
    node.label
        .lines()
        .take(MAX_LABEL_LINES)
        .map(|line| first_characters(line, MAX_LINE_CHARS))
        .collect()
}

/// Returns the width and the height of a node.
fn size(node: &FlowPlace) -> (f64, f64) {
    let lines = lines(node);
    let count: f64 = lines.iter().map(|_| 1.0).sum();
    let widest = lines.iter().map(|line| columns(line)).fold(1.0, f64::max);
    let (width, height) = (widest * LINE.1, count.max(1.0) * LINE.0);
    match node.kind {
        PlaceKind::Start => (14.0, 14.0),
        PlaceKind::Conditional => (width * 1.25 + 56.0, height * 1.7 + 22.0),
        PlaceKind::UserPrompt | PlaceKind::ValidationGate | PlaceKind::Signal | PlaceKind::Join => {
            (width + 52.0, height + 16.0)
        }
        _ => (width + 28.0, height + 14.0),
    }
}

/// Draws a node around its middle.
fn draw(text: &mut String, kind: PlaceKind, node: &PlacedNode) {
    let &PlacedNode { x, y, width, height, .. } = node;
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    let box_of = |inset: f64, round: f64, class: &str| {
        format!(
            "<rect class=\"node{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round:.1}\"/>",
            left + inset,
            top + inset,
            width - 2.0 * inset,
            height - 2.0 * inset,
        )
    };
    let polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        format!("<polygon class=\"node\" points=\"{}\"/>", points.join(" "))
    };
    let (right, bottom) = (left + width, top + height);
    let shape = match kind {
        PlaceKind::Start => {
            format!("<circle class=\"begins\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\"/>")
        }
        PlaceKind::State => box_of(0.0, 7.0, ""),
        PlaceKind::Open => box_of(0.0, 7.0, " loose"),
        PlaceKind::Missing => box_of(0.0, 7.0, " loose wrong"),
        PlaceKind::Agent => box_of(0.0, 14.0, " dots"),
        PlaceKind::Action => box_of(0.0, 0.0, ""),
        PlaceKind::Graph | PlaceKind::Reference => box_of(0.0, 0.0, "") + &box_of(3.0, 0.0, ""),
        PlaceKind::Evaluator | PlaceKind::Document => box_of(0.0, height / 2.0, " dots"),
        PlaceKind::End => box_of(0.0, height / 2.0, "") + &box_of(3.0, height / 2.0 - 3.0, ""),
        PlaceKind::Success => box_of(0.0, height / 2.0, " well"),
        PlaceKind::Failure => box_of(0.0, height / 2.0, " wrong"),
        PlaceKind::Conditional => polygon(&[(x, top), (right, y), (x, bottom), (left, y)]),
        PlaceKind::UserPrompt => {
            polygon(&[(left + 14.0, top), (right, top), (right - 14.0, bottom), (left, bottom)])
        }
        PlaceKind::Join => {
            polygon(&[(left, top), (right, top), (right - 14.0, bottom), (left + 14.0, bottom)])
        }
        PlaceKind::Signal => polygon(&[
            (left, top),
            (right - 14.0, top),
            (right, y),
            (right - 14.0, bottom),
            (left, bottom),
        ]),
        PlaceKind::ValidationGate => polygon(&[
            (left + 14.0, top),
            (right - 14.0, top),
            (right, y),
            (right - 14.0, bottom),
            (left + 14.0, bottom),
            (left, y),
        ]),
    };
    let _ = writeln!(text, "{shape}");
    let above: f64 = node.lines.iter().skip(1).map(|_| LINE.0 / 2.0).sum();
    let mut baseline = y - above + 4.5;
    for line in &node.lines {
        let name = escaped(line);
        let _ =
            writeln!(text, "<text class=\"name\" x=\"{x:.1}\" y=\"{baseline:.1}\">{name}</text>");
        baseline += LINE.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tests::hostile;

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
            PlaceKind::Start,
            PlaceKind::End,
            PlaceKind::State,
            PlaceKind::Join,
            PlaceKind::Open,
            PlaceKind::Graph,
            PlaceKind::Missing,
            PlaceKind::Evaluator,
            PlaceKind::Action,
            PlaceKind::Conditional,
            PlaceKind::UserPrompt,
            PlaceKind::ValidationGate,
            PlaceKind::Reference,
            PlaceKind::Document,
            PlaceKind::Agent,
            PlaceKind::Signal,
            PlaceKind::Success,
            PlaceKind::Failure,
        ];
        let mut flow = Flow::default();
        for (index, kind) in kinds.into_iter().enumerate() {
            flow.place(&index.to_string(), "x", kind);
        }
        let text = write(&flow);
        let document = roxmltree::Document::parse(&text).expect("valid XML");
        let shapes = document.descendants().filter(|node| {
            node.attribute("class")
                .is_some_and(|class| class.starts_with("node") || class == "begins")
        });
        assert!(shapes.count() >= kinds.len());
    }

    #[test]
    fn empty_drawing_gives_valid_xml() {
        let text = write(&Flow::default());
        assert!(roxmltree::Document::parse(&text).is_ok(), "{text}");
    }

    #[test]
    fn texts_stay_as_they_are() {
        let placed = PlacedDrawing::of(&hostile());
        assert_eq!(placed.nodes.len(), 5);
        assert_eq!(placed.nodes[1].lines, ["a \"b\" <c> & #1; `d` %%{e} ]}|\\n"]);
        assert!(placed.edges.iter().all(|edge| edge.path.starts_with('M')));
    }
}
