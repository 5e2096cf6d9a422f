//! The word for the status of a run, as people and programs read it.

use crate::domain::views::run_standing;
use crate::plugin::styled::TextTone;
use crate::store::view::RunView;

/// Returns the status for people: a running run that no process has locked is interrupted.
pub fn word(view: &RunView) -> &'static str {
    run_standing(&view.run, view.held)
}

/// Returns the tone of such a word.
pub(super) fn tone(word: &str) -> TextTone {
    match word {
        "running" | "completed" => TextTone::Good,
        "interrupted" | "paused" => TextTone::Warning,
        "failed" | "unreadable" => TextTone::Bad,
        _ => TextTone::Plain,
    }
}
