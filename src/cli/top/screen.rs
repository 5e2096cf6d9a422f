//! What is on the screen: which view, which filter, which row is chosen, how far it is scrolled. Pure.
//!
//! A row is chosen by what it is, not by where it stands, so that it stays chosen when others come
//! and go; before anything is chosen, the first row is.

use super::agents::AgentEntry;
use super::rows::{AgentFilter, ExpandedFamilies};
use crate::domain::id::AgentId;
use crate::domain::tree::fold::{FamilyKey, RowSubject, TreeRow};

/// The view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ScreenView {
    /// The agents.
    #[default]
    Agents,
    /// The same, while the filter is typed.
    Typing,
    /// The same, with the question whether the run is to be stopped.
    Asking,
    /// The last messages of an agent.
    Messages {
        /// Whose.
        agent: AgentId,
        /// How many lines above the last one the view ends.
        back: usize,
    },
    /// What the keys do.
    Help,
}

/// What is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowSelection {
    /// An agent.
    Agent(AgentId),
    /// A family in one row.
    Many(FamilyKey),
}

/// The screen.
#[derive(Debug, Clone, Default)]
pub(super) struct TopScreen {
    /// The view.
    pub(super) view: ScreenView,
    /// Which agents are shown.
    pub(super) filter: AgentFilter,
    /// Whose rows are shown one by one.
    pub(super) opened: ExpandedFamilies,
    /// What is chosen.
    chosen: Option<RowSelection>,
    /// The place of the chosen row, and of the first that is seen.
    pub(super) at: usize,
    pub(super) first: usize,
    /// How many rows there is room for.
    pub(super) room: usize,
    /// Something to be told once.
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
    /// A screen that tells something at first.
    pub(super) fn telling(notice: Option<String>) -> Self {
        Self { notice, ..Self::default() }
    }

    /// Takes note of new rows: what is chosen stays so, or what stands in its place is chosen; and it
    /// is among the rows that are seen.
    pub(super) fn settle(&mut self, entries: &[AgentEntry], rows: &[TreeRow]) {
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

    /// Chooses the row that stands so many rows further down, or up.
    pub(super) fn go(&mut self, entries: &[AgentEntry], rows: &[TreeRow], by: isize) {
        let last = rows.len().saturating_sub(1);
        self.choose(entries, rows, self.at.saturating_add_signed(by).min(last));
        self.scroll(last);
    }

    /// Opens the chosen row of many, or closes it.
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

    /// Chooses the row below which the chosen one stands.
    pub(super) fn go_out(&mut self, entries: &[AgentEntry], rows: &[TreeRow]) {
        let Some(depth) = rows.get(self.at).map(|row| row.depth) else { return };
        if let Some(at) = rows[..self.at].iter().rposition(|row| row.depth < depth) {
            self.choose(entries, rows, at);
            self.scroll(rows.len().saturating_sub(1));
        }
    }

    /// Chooses the first row, whatever will stand there.
    pub(super) fn go_to_top(&mut self) {
        (self.chosen, self.at, self.first) = (None, 0, 0);
    }

    /// Shows other agents.
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
