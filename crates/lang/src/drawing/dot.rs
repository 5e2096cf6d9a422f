//! A picture as DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::picture::{DrawingEdge, DrawingNode, EdgeKind, NodeKind, WorkflowDrawing};

/// Writes a picture as a directed graph.
pub fn write(drawing: &WorkflowDrawing) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&drawing.title));
    text.push_str("    graph [bgcolor=transparent, rankdir=TB]\n");
    text.push_str("    node [fontname=\"sans-serif\", fontsize=12, color=\"#64748b\", style=filled, fillcolor=\"#f1f5f9\"]\n");
    text.push_str("    edge [fontname=\"sans-serif\", fontsize=10, color=\"#64748b\", fontcolor=\"#64748b\"]\n");
    for (index, node) in drawing.nodes.iter().enumerate() {
        let _ =
            writeln!(text, "    n{index} [label={}, {}]", quoted(&node.label), node_style(node));
    }
    for edge in &drawing.edges {
        let mut attributes = vec![];
        if !edge.label.is_empty() {
            attributes.push(format!("label={}", quoted(&edge.label)));
        }
        attributes.extend(style(edge).map(str::to_owned));
        let attributes = match attributes.as_slice() {
            [] => String::new(),
            some => format!(" [{}]", some.join(", ")),
        };
        let _ = writeln!(text, "    n{} -> n{}{attributes}", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}

fn node_style(node: &DrawingNode) -> &'static str {
    match node.kind {
        NodeKind::Start => "shape=circle, width=0.15, fixedsize=true, fillcolor=\"#64748b\"",
        NodeKind::End => "shape=doublecircle",
        NodeKind::State => "shape=box, style=\"filled,rounded\"",
        NodeKind::Open => "shape=box, style=\"filled,rounded,dashed\"",
        NodeKind::Missing => "shape=box, style=\"filled,rounded,dashed\", color=\"#dc2626\"",
        NodeKind::Graph | NodeKind::Reference => "shape=box, peripheries=2",
        NodeKind::Document => "shape=note",
        NodeKind::Evaluator => "shape=oval",
        NodeKind::Action => "shape=box",
        NodeKind::Conditional => "shape=diamond",
        NodeKind::UserPrompt => "shape=parallelogram",
        NodeKind::Join => "shape=invtrapezium",
        NodeKind::ValidationGate => "shape=hexagon",
        NodeKind::Agent => "shape=component",
        NodeKind::Signal => "shape=cds",
        NodeKind::Success => "shape=oval, color=\"#16a34a\"",
        NodeKind::Failure => "shape=oval, color=\"#dc2626\"",
    }
}

fn style(edge: &DrawingEdge) -> impl Iterator<Item = &'static str> {
    let line = match edge.kind {
        _ if !edge.certain => Some("style=dashed"),
        EdgeKind::Consults => Some("style=dotted"),
        EdgeKind::Asks | EdgeKind::Answers => Some("style=dashed"),
        EdgeKind::Resets => Some("style=bold"),
        _ => None,
    };
    let colour = match edge.kind {
        EdgeKind::Calls | EdgeKind::Returns | EdgeKind::Asks | EdgeKind::Answers => {
            Some("color=\"#8b5cf6\"")
        }
        EdgeKind::Forks | EdgeKind::Joins => Some("color=\"#3b82f6\""),
        EdgeKind::FansOut => Some("color=\"#3b82f6:#3b82f6:#3b82f6\""),
        EdgeKind::Fails => Some("color=\"#dc2626\""),
        EdgeKind::Goes | EdgeKind::Resets | EdgeKind::Ends | EdgeKind::Consults => None,
    };
    let head = match edge.kind {
        EdgeKind::Calls => Some("arrowhead=onormal"),
        EdgeKind::Forks | EdgeKind::FansOut => Some("arrowhead=diamond"),
        EdgeKind::Joins => Some("arrowhead=odiamond"),
        EdgeKind::Consults => Some("arrowhead=none"),
        _ => None,
    };
    [line, colour, head].into_iter().flatten()
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
    use super::super::picture::tests::hostile;
    use super::*;

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
