//! The records of graphs, a line each for people.

use crate::domain::event::{Advanced, GraphProgress, NextAction};
use crate::domain::id::Folder;
use crate::domain::printable::one_line;

/// Returns the executed nodes and the next action.
pub(super) fn advanced(
    event: &Advanced,
    progress: &GraphProgress,
    folder: Option<&Folder>,
) -> String {
    const MAX_SHOWN_NODES: usize = 4;
    let agent = &event.turn.agent;
    let nodes: Vec<String> =
        progress.visits.iter().map(|visit| format!("{} ({})", visit.node, visit.outcome)).collect();
    let skipped = nodes.len().saturating_sub(MAX_SHOWN_NODES);
    let dots = if skipped > 0 { format!("{skipped} nodes … ") } else { String::new() };
    let way = nodes[skipped..].join(" → ");
    let arrow = if way.is_empty() { "" } else { " → " };
    let next = match &event.next_action {
        NextAction::Walk | NextAction::Wait | NextAction::Nothing => progress.node.to_string(),
        NextAction::Operation(kind) => format!("{}: {kind}", progress.node),
        NextAction::Task(_) => format!("{}: a turn of Claude Code", progress.node),
        NextAction::Question(question) => {
            format!("{}: asks: {}", progress.node, one_line(&question.text))
        }
        NextAction::Join(join) => {
            format!("{}: waits for {} of its agents", progress.node, join.need)
        }
        NextAction::Agent { spec, background, joined } => {
            let waits = if *background || *joined { "" } else { ", and waits for it" };
            format!("{}: starts an agent at {}{waits}", progress.node, spec.shown_state())
        }
    };
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    let file = event.file.shown_in(folder);
    format!("{agent}  {file}: {dots}{way}{arrow}{next}{paid}")
}
