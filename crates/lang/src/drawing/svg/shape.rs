//! The shapes of nodes, and how large they are. Writing is measured by counting its columns.

use std::fmt::Write as _;

use super::super::picture::{DrawingNode, NodeKind};
use super::escaped;

/// The height of a line in a node, and how wide one of its columns is.
const LINE: (f64, f64) = (17.0, 7.4);
/// The maximum number of lines shown in a node, and of columns in each line.
const MAX_LABEL_LINES: usize = 4;
const MAX_LINE_CHARS: usize = 48;

/// Returns the width of a text in columns; an East Asian wide character takes two.
pub(in super::super) fn columns(text: &str) -> f64 {
    let wide = |c: char| matches!(u32::from(c), 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    text.chars().map(|c| if wide(c) { 2.0 } else { 1.0 }).sum()
}

/// Returns a text cut to a number of characters.
pub(in super::super) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

pub(in super::super) fn lines(node: &DrawingNode) -> Vec<String> {
    node.label.lines().take(MAX_LABEL_LINES).map(|line| shortened(line, MAX_LINE_CHARS)).collect()
}

/// Returns the width and the height of a node.
pub(in super::super) fn size(node: &DrawingNode) -> (f64, f64) {
    let lines = lines(node);
    let count: f64 = lines.iter().map(|_| 1.0).sum();
    let widest = lines.iter().map(|line| columns(line)).fold(1.0, f64::max);
    let (width, height) = (widest * LINE.1, count.max(1.0) * LINE.0);
    match node.kind {
        NodeKind::Start => (14.0, 14.0),
        NodeKind::Conditional => (width * 1.25 + 56.0, height * 1.7 + 22.0),
        NodeKind::UserPrompt | NodeKind::ValidationGate | NodeKind::Signal | NodeKind::Join => {
            (width + 52.0, height + 16.0)
        }
        _ => (width + 28.0, height + 14.0),
    }
}

/// Draws a node around its middle.
pub(super) fn draw(
    text: &mut String,
    node: &DrawingNode,
    (width, height): (f64, f64),
    (x, y): (f64, f64),
) {
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
    let shape = match node.kind {
        NodeKind::Start => {
            format!("<circle class=\"begins\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\"/>")
        }
        NodeKind::State => box_of(0.0, 7.0, ""),
        NodeKind::Open => box_of(0.0, 7.0, " loose"),
        NodeKind::Missing => box_of(0.0, 7.0, " loose wrong"),
        NodeKind::Agent => box_of(0.0, 14.0, " dots"),
        NodeKind::Action => box_of(0.0, 0.0, ""),
        NodeKind::Graph | NodeKind::Reference => box_of(0.0, 0.0, "") + &box_of(3.0, 0.0, ""),
        NodeKind::Evaluator | NodeKind::Document => box_of(0.0, height / 2.0, " dots"),
        NodeKind::End => box_of(0.0, height / 2.0, "") + &box_of(3.0, height / 2.0 - 3.0, ""),
        NodeKind::Success => box_of(0.0, height / 2.0, " well"),
        NodeKind::Failure => box_of(0.0, height / 2.0, " wrong"),
        NodeKind::Conditional => polygon(&[(x, top), (right, y), (x, bottom), (left, y)]),
        NodeKind::UserPrompt => {
            polygon(&[(left + 14.0, top), (right, top), (right - 14.0, bottom), (left, bottom)])
        }
        NodeKind::Join => {
            polygon(&[(left, top), (right, top), (right - 14.0, bottom), (left + 14.0, bottom)])
        }
        NodeKind::Signal => polygon(&[
            (left, top),
            (right - 14.0, top),
            (right, y),
            (right - 14.0, bottom),
            (left, bottom),
        ]),
        NodeKind::ValidationGate => polygon(&[
            (left + 14.0, top),
            (right - 14.0, top),
            (right, y),
            (right - 14.0, bottom),
            (left + 14.0, bottom),
            (left, y),
        ]),
    };
    let _ = writeln!(text, "{shape}");
    write_name(text, &lines(node), (x, y));
}

fn write_name(text: &mut String, lines: &[String], (x, y): (f64, f64)) {
    let above: f64 = lines.iter().skip(1).map(|_| LINE.0 / 2.0).sum();
    let mut baseline = y - above + 4.5;
    for line in lines {
        let name = escaped(line);
        let _ =
            writeln!(text, "<text class=\"name\" x=\"{x:.1}\" y=\"{baseline:.1}\">{name}</text>");
        baseline += LINE.0;
    }
}
