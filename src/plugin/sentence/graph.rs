//! The records of graphs, a line each for people.

use super::advance::next_place;
use crate::domain::event::GraphAdvanced;
use crate::domain::id::Folder;

/// Returns the executed nodes and the next action.
pub(super) fn advanced(event: &GraphAdvanced, folder: Option<&Folder>) -> String {
    const MAX_SHOWN_NODES: usize = 4;
    let agent = &event.turn.agent;
    let nodes: Vec<String> =
        event.visits.iter().map(|visit| format!("{} ({})", visit.node, visit.outcome)).collect();
    let skipped = nodes.len().saturating_sub(MAX_SHOWN_NODES);
    let dots = if skipped > 0 { format!("{skipped} nodes … ") } else { String::new() };
    let way = nodes[skipped..].join(" → ");
    let arrow = if way.is_empty() { "" } else { " → " };
    let next = next_place(&event.node, &event.next_action);
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    let file = event.file.shown_in(folder);
    format!("{agent}  {file}: {dots}{way}{arrow}{next}{paid}")
}
