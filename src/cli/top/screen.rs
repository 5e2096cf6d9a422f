//! The state of the screen: view, filter, selected row and scroll position. Pure.
//!
//! The selection is an agent or a family, not a place, so it stays when other rows come and go. Before the first
//! selection, the first row is selected.

use super::draw::{AgentFilter, ExpandedFamilies};
use crate::domain::id::AgentId;
use crate::domain::tree::{FamilyKey, RowSubject, TreeRow};
use crate::runtime::observing::agent_entries::AgentEntry;

/// The view of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ScreenView {
    /// The agents.
    #[default]
    Agents,
    /// The agents, while the filter is typed.
    Typing,
    /// The agents, with the question whether to stop the run.
    Asking,
    /// The last messages of an agent.
    Messages {
        agent: AgentId,
        /// The number of lines between the end of the view and the last line.
        back: usize,
    },
    /// The help about the keys.
    Help,
}

/// The selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowSelection {
    /// An agent.
    Agent(AgentId),
    /// A family in one row.
    Many(FamilyKey),
}

/// The state of the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct TopScreen {
    /// The view.
    pub(super) view: ScreenView,
    /// The filter for the agents.
    pub(super) filter: AgentFilter,
    /// The families whose agents have separate rows.
    pub(super) opened: ExpandedFamilies,
    /// The selection.
    chosen: Option<RowSelection>,
    /// The place of the selected row, and of the first visible one.
    pub(super) at: usize,
    pub(super) first: usize,
    /// The number of rows that fit on the screen.
    pub(super) room: usize,
    /// A message that is shown once.
    pub(super) notice: Option<String>,
}

impl RowSelection {
    fn of(entries: &[AgentEntry], row: &TreeRow) -> Self {
        match &row.of {
            RowSubject::One(entry) => Self::Agent(entries[*entry].id.clone()),
            RowSubject::Many { family, .. } => Self::Many(family.clone()),
        }
    }

    fn is(&self, entries: &[AgentEntry], row: &TreeRow) -> bool {
        match (self, &row.of) {
            (Self::Agent(id), RowSubject::One(entry)) => entries[*entry].id == *id,
            (Self::Many(one), RowSubject::Many { family, .. }) => one == family,
            _ => false,
        }
    }
}

impl TopScreen {
    /// Makes a screen that shows a message at first.
    pub(super) fn telling(notice: Option<String>) -> Self {
        Self { notice, ..Self::default() }
    }

    /// Follows new rows: keeps the selection, or selects the row in its place, and scrolls to it.
    pub(super) fn follow_rows(&mut self, entries: &[AgentEntry], rows: &[TreeRow]) {
        let last = rows.len().saturating_sub(1);
        if let Some(chosen) = &self.chosen {
            let here = |row: &TreeRow| chosen.is(entries, row);
            let still = rows.get(self.at).is_some_and(here);
            let place = if still { Some(self.at) } else { rows.iter().position(here) };
            match place {
                Some(place) => self.at = place,
                None => self.choose(entries, rows, self.at.min(last)),
            }
        } else {
            self.at = 0;
        }
        self.scroll(last);
    }

    /// Selects the row that is `by` rows further down, or up.
    pub(super) fn go(&mut self, entries: &[AgentEntry], rows: &[TreeRow], by: isize) {
        let last = rows.len().saturating_sub(1);
        self.choose(entries, rows, self.at.saturating_add_signed(by).min(last));
        self.scroll(last);
    }

    /// Opens or closes the selected folded row.
    pub(super) fn open(&mut self, rows: &[TreeRow], open: bool) {
        if let Some(TreeRow { of: RowSubject::Many { family, .. }, .. }) = rows.get(self.at) {
            if open {
                self.opened.families.insert(family.clone());
            } else {
                self.opened.families.remove(family);
            }
            self.chosen = Some(RowSelection::Many(family.clone()));
        }
    }

    /// Selects the parent of the selected row.
    pub(super) fn go_out(&mut self, entries: &[AgentEntry], rows: &[TreeRow]) {
        let Some(depth) = rows.get(self.at).map(|row| row.depth) else { return };
        if let Some(at) = rows[..self.at].iter().rposition(|row| row.depth < depth) {
            self.choose(entries, rows, at);
            self.scroll(rows.len().saturating_sub(1));
        }
    }

    /// Selects the first row, even if another row becomes the first.
    pub(super) fn go_to_top(&mut self) {
        (self.chosen, self.at, self.first) = (None, 0, 0);
    }

    /// Changes the filter.
    pub(super) fn show(&mut self, filter: AgentFilter) {
        if self.filter != filter {
            self.filter = filter;
            self.go_to_top();
        }
    }

    fn choose(&mut self, entries: &[AgentEntry], rows: &[TreeRow], at: usize) {
        self.at = at;
        self.chosen = rows.get(at).map(|row| RowSelection::of(entries, row));
    }

    fn scroll(&mut self, last: usize) {
        let room = self.room.max(1);
        self.first = self.first.min((last + 1).saturating_sub(room)).min(self.at);
        self.first = self.first.max((self.at + 1).saturating_sub(room));
    }
}
