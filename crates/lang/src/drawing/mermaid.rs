//! A flow as Mermaid, which GitHub and many editors draw by themselves.
//!
//! Nodes are called `n0`, `n1`, …, so that no name can be one of Mermaid's words, such as `end`. In labels every
//! character with a meaning to Mermaid is written as its number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::flow::{EdgeLine, Flow, FlowPlace, PlaceKind};

/// Writes a flow as a flowchart.
pub fn write(flow: &Flow) -> String {
    let mut text = format!("%% {}\nflowchart TD\n", comment(&flow.title));
    for (index, node) in flow.places.iter().enumerate() {
        let _ = writeln!(text, "    n{index}{}", shape(node));
    }
    let mut styled: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, edge) in flow.edges.iter().enumerate() {
        let label = if edge.label.is_empty() {
            String::new()
        } else {
            format!("|\"{}\"|", escaped(&edge.label))
        };
        let arrow = match edge.line() {
            EdgeLine::Plain => "-->",
            EdgeLine::Dashed => "-.->",
            EdgeLine::Dotted => "-.-",
            EdgeLine::Bold => "==>",
        };
        let _ = writeln!(text, "    n{} {arrow}{label} n{}", edge.from, edge.to);
        if let Some(colour) = edge.colour() {
            styled.entry(colour.number).or_default().push(index.to_string());
        }
    }
    for (name, style) in CLASSES {
        if flow.places.iter().any(|node| class(node.kind) == Some(name)) {
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

fn class(kind: PlaceKind) -> Option<&'static str> {
    match kind {
        PlaceKind::Start => Some("begins"),
        PlaceKind::Open => Some("loose"),
        PlaceKind::Missing | PlaceKind::Failure => Some("wrong"),
        _ => None,
    }
}

fn shape(node: &FlowPlace) -> String {
    let (open, close) = match node.kind {
        PlaceKind::Start => ("((", "))"),
        PlaceKind::End => ("(((", ")))"),
        PlaceKind::State | PlaceKind::Open | PlaceKind::Missing | PlaceKind::Action => ("[", "]"),
        PlaceKind::Graph | PlaceKind::Reference | PlaceKind::Document => ("[[", "]]"),
        PlaceKind::Evaluator | PlaceKind::Success | PlaceKind::Failure => ("([", "])"),
        PlaceKind::Conditional => ("{", "}"),
        PlaceKind::UserPrompt => ("[/", "/]"),
        PlaceKind::Join => ("[\\", "/]"),
        PlaceKind::ValidationGate => ("{{", "}}"),
        PlaceKind::Agent => ("(", ")"),
        PlaceKind::Signal => (">", "]"),
    };
    let label = if node.label.is_empty() { " ".to_owned() } else { escaped(&node.label) };
    let class = class(node.kind).map(|class| format!(":::{class}")).unwrap_or_default();
    format!("{open}\"{label}\"{close}{class}")
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

/// Returns a text on one line that is not a directive.
fn comment(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '{' | '}' | '%'))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tests::hostile;

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
