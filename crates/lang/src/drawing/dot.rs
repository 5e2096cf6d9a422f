//! A flow as DOT, the language of Graphviz.

use std::fmt::Write as _;

use crate::flow::{EdgeKind, EdgeLine, Flow, FlowEdge, FlowPlace, PlaceKind};

/// Writes a flow as a directed graph.
pub fn write(flow: &Flow) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&flow.title));
    text.push_str("    graph [bgcolor=transparent, rankdir=TB]\n");
    text.push_str("    node [fontname=\"sans-serif\", fontsize=12, color=\"#64748b\", style=filled, fillcolor=\"#f1f5f9\"]\n");
    text.push_str("    edge [fontname=\"sans-serif\", fontsize=10, color=\"#64748b\", fontcolor=\"#64748b\"]\n");
    for (index, node) in flow.places.iter().enumerate() {
        let _ =
            writeln!(text, "    n{index} [label={}, {}]", quoted(&node.label), node_style(node));
    }
    for edge in &flow.edges {
        let mut attributes = vec![];
        if !edge.label.is_empty() {
            attributes.push(format!("label={}", quoted(&edge.label)));
        }
        attributes.extend(style(edge));
        let attributes = match attributes.as_slice() {
            [] => String::new(),
            some => format!(" [{}]", some.join(", ")),
        };
        let _ = writeln!(text, "    n{} -> n{}{attributes}", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}

fn node_style(node: &FlowPlace) -> &'static str {
    match node.kind {
        PlaceKind::Start => "shape=circle, width=0.15, fixedsize=true, fillcolor=\"#64748b\"",
        PlaceKind::End => "shape=doublecircle",
        PlaceKind::State => "shape=box, style=\"filled,rounded\"",
        PlaceKind::Open => "shape=box, style=\"filled,rounded,dashed\"",
        PlaceKind::Missing => "shape=box, style=\"filled,rounded,dashed\", color=\"#dc2626\"",
        PlaceKind::Graph | PlaceKind::Reference => "shape=box, peripheries=2",
        PlaceKind::Document => "shape=note",
        PlaceKind::Evaluator => "shape=oval",
        PlaceKind::Action => "shape=box",
        PlaceKind::Conditional => "shape=diamond",
        PlaceKind::UserPrompt => "shape=parallelogram",
        PlaceKind::Join => "shape=invtrapezium",
        PlaceKind::ValidationGate => "shape=hexagon",
        PlaceKind::Agent => "shape=component",
        PlaceKind::Signal => "shape=cds",
        PlaceKind::Success => "shape=oval, color=\"#16a34a\"",
        PlaceKind::Failure => "shape=oval, color=\"#dc2626\"",
    }
}

fn style(edge: &FlowEdge) -> impl Iterator<Item = String> {
    let fans_out = edge.kind == EdgeKind::FansOut;
    let line = match edge.line() {
        EdgeLine::Plain => None,
        EdgeLine::Dashed => Some("style=dashed"),
        EdgeLine::Dotted => Some("style=dotted"),
        EdgeLine::Bold => Some("style=bold").filter(|_| !fans_out),
    };
    let colour = edge.colour().map(|colour| {
        let lines = if fans_out { 3 } else { 1 };
        format!("color=\"{}\"", vec![colour.number; lines].join(":"))
    });
    let head = match edge.kind {
        EdgeKind::Calls => Some("arrowhead=onormal"),
        EdgeKind::Forks | EdgeKind::FansOut => Some("arrowhead=diamond"),
        EdgeKind::Joins => Some("arrowhead=odiamond"),
        _ if !edge.has_head() => Some("arrowhead=none"),
        _ => None,
    };
    [line.map(str::to_owned), colour, head.map(str::to_owned)].into_iter().flatten()
}

/// Returns a text in quotes, without special meaning to Graphviz.
fn quoted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    safe.push('"');
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '"' => safe.push_str("\\\""),
            '\\' => safe.push_str("\\\\"),
            '&' => safe.push_str("&amp;"),
            c if c.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe.push('"');
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tests::hostile;

    #[test]
    fn special_characters_in_labels_are_escaped() {
        let text = write(&hostile());
        let hard = r#""a \"b\" <c> &amp; #1; `d` %%{e} ]}|\\n""#;
        assert!(text.starts_with(r#"digraph "a \"b\"\n<c>" {"#), "{text}");
        for line in [
            format!("    n1 [label={hard}, shape=box, style=\"filled,rounded\"]\n"),
            format!("    n0 -> n1 [label={hard}, style=dashed]\n"),
            "    n0 -> n2 [label=\"zwei\\nZeilen\"]\n".to_owned(),
            "    n3 [label=\"日本 ✓\", ".to_owned(),
            "    n4 [label=\"�\", ".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
