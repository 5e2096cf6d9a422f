//! A picture as Mermaid, which GitHub and many editors draw by themselves.
//!
//! Nodes are called `n0`, `n1`, …, so that no name can be one of Mermaid's words, such as `end`. In labels every
//! character with a meaning to Mermaid is written as its number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::picture::{DrawingEdge, DrawingNode, EdgeKind, NodeKind, WorkflowDrawing};

/// Writes a picture as a flowchart.
pub fn write(drawing: &WorkflowDrawing) -> String {
    let mut text = format!("%% {}\nflowchart TD\n", comment(&drawing.title));
    for (index, node) in drawing.nodes.iter().enumerate() {
        let _ = writeln!(text, "    n{index}{}", shape(node));
    }
    let mut styled: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, edge) in drawing.edges.iter().enumerate() {
        let label = if edge.label.is_empty() {
            String::new()
        } else {
            format!("|\"{}\"|", escaped(&edge.label))
        };
        let _ = writeln!(text, "    n{} {}{label} n{}", edge.from, arrow(edge), edge.to);
        if let Some(colour) = colour(edge.kind) {
            styled.entry(colour).or_default().push(index.to_string());
        }
    }
    for (name, style) in CLASSES {
        if drawing.nodes.iter().any(|node| class(node.kind) == Some(name)) {
            let _ = writeln!(text, "    classDef {name} {style}");
        }
    }
    for (colour, edges) in styled {
        let _ = writeln!(text, "    linkStyle {} stroke:{colour}", edges.join(","));
    }
    text
}

const CLASSES: [(&str, &str); 3] = [
    ("begins", "fill:#64748b,stroke:#64748b"),
    ("loose", "stroke-dasharray:5 4"),
    ("wrong", "stroke:#dc2626,stroke-width:2px"),
];

fn class(kind: NodeKind) -> Option<&'static str> {
    match kind {
        NodeKind::Start => Some("begins"),
        NodeKind::Open => Some("loose"),
        NodeKind::Missing | NodeKind::Failure => Some("wrong"),
        _ => None,
    }
}

fn shape(node: &DrawingNode) -> String {
    let (open, close) = match node.kind {
        NodeKind::Start => ("((", "))"),
        NodeKind::End => ("(((", ")))"),
        NodeKind::State | NodeKind::Open | NodeKind::Missing | NodeKind::Action => ("[", "]"),
        NodeKind::Graph | NodeKind::Reference | NodeKind::Document => ("[[", "]]"),
        NodeKind::Evaluator | NodeKind::Success | NodeKind::Failure => ("([", "])"),
        NodeKind::Conditional => ("{", "}"),
        NodeKind::UserPrompt => ("[/", "/]"),
        NodeKind::Join => ("[\\", "/]"),
        NodeKind::ValidationGate => ("{{", "}}"),
        NodeKind::Agent => ("(", ")"),
        NodeKind::Signal => (">", "]"),
    };
    let label = if node.label.is_empty() { " ".to_owned() } else { escaped(&node.label) };
    let class = class(node.kind).map(|class| format!(":::{class}")).unwrap_or_default();
    format!("{open}\"{label}\"{close}{class}")
}

fn arrow(edge: &DrawingEdge) -> &'static str {
    match edge.kind {
        _ if !edge.certain => "-.->",
        EdgeKind::Consults => "-.-",
        EdgeKind::Asks | EdgeKind::Answers => "-.->",
        EdgeKind::Resets | EdgeKind::FansOut => "==>",
        _ => "-->",
    }
}

fn colour(kind: EdgeKind) -> Option<&'static str> {
    match kind {
        EdgeKind::Calls | EdgeKind::Returns | EdgeKind::Asks | EdgeKind::Answers => Some("#8b5cf6"),
        EdgeKind::Forks | EdgeKind::FansOut | EdgeKind::Joins => Some("#3b82f6"),
        EdgeKind::Fails => Some("#dc2626"),
        EdgeKind::Goes | EdgeKind::Resets | EdgeKind::Ends | EdgeKind::Consults => None,
    }
}

/// Returns a text without special meaning to Mermaid.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("<br/>"),
            '"' | '#' | '&' | '<' | '>' | '`' | '%' | '|' | '\\' | '{' | '}' => {
                let _ = write!(safe, "#{};", u32::from(c));
            }
            c if c.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe
}

/// Returns a text on one line that is no directive.
fn comment(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '{' | '}' | '%'))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::picture::tests::hostile;
    use super::*;

    #[test]
    fn special_characters_in_labels_are_escaped() {
        let expected = r#"%% a "b" <c>
flowchart TD
    n0["end"]
    n1["a #34;b#34; #60;c#62; #38; #35;1; #96;d#96; #37;#37;#123;e#125; ]#125;#124;#92;n"]
    n2["zwei<br/>Zeilen"]
    n3["日本 ✓"]
    n4["�"]
    n0 -->|"end"| n0
    n0 -.->|"a #34;b#34; #60;c#62; #38; #35;1; #96;d#96; #37;#37;#123;e#125; ]#125;#124;#92;n"| n1
    n0 -->|"zwei<br/>Zeilen"| n2
    n0 -.->|"日本 ✓"| n3
    n0 -->|"�"| n4
"#;
        assert_eq!(write(&hostile()), expected);
    }
}
