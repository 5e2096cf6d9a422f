//! The effect of a key: the screen afterwards, and a command beyond it. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::rows::AgentFilter;
use super::screen::{ScreenView, TopScreen};
use crate::domain::tree::fold::{RowSubject, TreeRow};
use crate::runtime::observing::agent_entries::{AgentEntry, StatusFilter};

/// The command of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyCommand {
    /// Leave the screen; the run continues.
    Leave,
    /// Ask the run to stop.
    Stop,
}

/// The keys with their explanations.
pub(super) const HELP: &[(&str, &str)] = &[
    ("↑ ↓  j k", "choose a row; PgUp PgDn: by a page; g Home: the first; G End: the last"),
    ("Enter", "the last messages of an agent; opens or closes a folded row"),
    ("→ ←  l h", "opens a folded row; closes it, or selects its parent"),
    ("o", "opens all folded rows, and closes them again"),
    ("/", "shows only agents with a part of an id or a state; Esc shows all again"),
    ("r w u f", "only those that run, wait, are stuck, have failed"),
    ("a", "all agents again"),
    ("s p", "stop the run, after a question; running turns may finish"),
    ("?", "this help"),
    ("q  Ctrl-C", "leave; the run keeps running"),
    ("", ""),
    ("!", "stuck: waits for a person, or has been silent for half of its time"),
    ("▶ ·", "its turn runs; it waits"),
    ("✗ ✓ –", "failed; finished; unneeded: no agent waits for it any longer"),
    (
        "▸ ▾",
        "agents that began in the same state, folded and opened; those of them that are stuck, run or have failed follow, up to twelve of each",
    ),
];

/// Handles a key, and returns its command, if any.
pub(super) fn press(
    screen: &mut TopScreen,
    key: KeyEvent,
    entries: &[AgentEntry],
    rows: &[TreeRow],
) -> Option<KeyCommand> {
    screen.notice = None;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(KeyCommand::Leave);
    }
    match &mut screen.view {
        ScreenView::Agents => return in_agents(screen, key.code, entries, rows),
        ScreenView::Typing => typing(screen, key.code),
        ScreenView::Asking => {
            screen.view = ScreenView::Agents;
            return matches!(key.code, KeyCode::Char('y' | 'Y')).then_some(KeyCommand::Stop);
        }
        ScreenView::Messages { back, .. } => {
            let page = screen.room.max(1);
            match key.code {
                KeyCode::Up | KeyCode::Char('k') => *back += 1,
                KeyCode::Down | KeyCode::Char('j') => *back = back.saturating_sub(1),
                KeyCode::PageUp => *back += page,
                KeyCode::PageDown => *back = back.saturating_sub(page),
                KeyCode::End | KeyCode::Char('G') => *back = 0,
                KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter => {
                    screen.view = ScreenView::Agents;
                }
                _ => {}
            }
        }
        ScreenView::Help => screen.view = ScreenView::Agents,
    }
    None
}

fn in_agents(
    screen: &mut TopScreen,
    key: KeyCode,
    entries: &[AgentEntry],
    rows: &[TreeRow],
) -> Option<KeyCommand> {
    let page = isize::try_from(screen.room.max(1)).unwrap_or(1);
    match key {
        KeyCode::Char('q') => return Some(KeyCommand::Leave),
        KeyCode::Up | KeyCode::Char('k') => screen.go(entries, rows, -1),
        KeyCode::Down | KeyCode::Char('j') => screen.go(entries, rows, 1),
        KeyCode::PageUp => screen.go(entries, rows, -page),
        KeyCode::PageDown => screen.go(entries, rows, page),
        KeyCode::Home | KeyCode::Char('g') => screen.go_to_top(),
        KeyCode::End | KeyCode::Char('G') => screen.go(entries, rows, isize::MAX),
        KeyCode::Enter => enter(screen, entries, rows),
        KeyCode::Right | KeyCode::Char('l') => screen.open(rows, true),
        KeyCode::Left | KeyCode::Char('h') => out(screen, entries, rows),
        KeyCode::Char('o') => screen.opened.all = !screen.opened.all,
        KeyCode::Char('/') => screen.view = ScreenView::Typing,
        KeyCode::Char('?') => screen.view = ScreenView::Help,
        KeyCode::Char('s' | 'p') => screen.view = ScreenView::Asking,
        KeyCode::Char('r') => only(screen, Some(StatusFilter::Running)),
        KeyCode::Char('w') => only(screen, Some(StatusFilter::Waiting)),
        KeyCode::Char('u') => only(screen, Some(StatusFilter::Stuck)),
        KeyCode::Char('f') => only(screen, Some(StatusFilter::Failed)),
        KeyCode::Char('a') | KeyCode::Esc => screen.show(AgentFilter::default()),
        _ => {}
    }
    None
}

fn only(screen: &mut TopScreen, kind: Option<StatusFilter>) {
    screen.show(AgentFilter { kind, ..screen.filter.clone() });
}

fn enter(screen: &mut TopScreen, entries: &[AgentEntry], rows: &[TreeRow]) {
    match rows.get(screen.at).map(|row| &row.of) {
        Some(RowSubject::One(entry)) => {
            screen.view = ScreenView::Messages { agent: entries[*entry].id.clone(), back: 0 };
        }
        Some(RowSubject::Many { open, .. }) => screen.open(rows, !open),
        None => {}
    }
}

fn out(screen: &mut TopScreen, entries: &[AgentEntry], rows: &[TreeRow]) {
    match rows.get(screen.at).map(|row| &row.of) {
        Some(RowSubject::Many { open: true, .. }) => screen.open(rows, false),
        _ => screen.go_out(entries, rows),
    }
}

fn typing(screen: &mut TopScreen, key: KeyCode) {
    let mut text = screen.filter.text.clone();
    match key {
        KeyCode::Enter => screen.view = ScreenView::Agents,
        KeyCode::Esc => {
            screen.view = ScreenView::Agents;
            text.clear();
        }
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(typed) => text.extend(typed.to_lowercase()),
        _ => {}
    }
    screen.show(AgentFilter { text, kind: screen.filter.kind });
}

#[cfg(test)]
mod tests;
