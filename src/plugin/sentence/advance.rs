//! The records of states that raymond executes, a line each for people.

use crate::domain::event::{LanguageAdvanced, NextAction};
use crate::domain::id::Folder;
use crate::domain::printable::one_line;

/// Returns the file of a state and the next action in it.
pub(super) fn advanced(event: &LanguageAdvanced, folder: Option<&Folder>) -> String {
    let agent = &event.turn.agent;
    let next = next_place(event.file.shown_in(folder).as_str(), &event.next_action);
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    format!("{agent}  {next}{paid}")
}

/// Returns a place and the next action there.
pub(super) fn next_place(place: &str, next: &NextAction) -> String {
    match next {
        NextAction::Walk | NextAction::Wait | NextAction::Nothing => place.to_owned(),
        NextAction::Operation(kind) => format!("{place}: {kind}"),
        NextAction::Task(_) => format!("{place}: a turn of Claude Code"),
        NextAction::Question(question) => format!("{place}: asks: {}", one_line(&question.text)),
        NextAction::Join(join) => format!("{place}: waits for {} of its agents", join.need),
        NextAction::Agent { spec, background, joined } => {
            let waits = if *background || *joined { "" } else { ", and waits for it" };
            format!("{place}: starts an agent at {}{waits}", spec.shown_state())
        }
    }
}
