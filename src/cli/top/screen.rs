//! What is on the screen: which view, which filter, which row is chosen, how far it is scrolled. Pure.
//!
//! A row is chosen by what it is, not by where it stands, so that it stays chosen when others come
//! and go; before anything is chosen, the first row is.

use super::agents::Entry;
use super::rows::{Filter, Opened};
use crate::domain::id::AgentId;
use crate::domain::tree::fold::{Family, Of, Row};

/// The view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum View {
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
pub(super) enum Chosen {
    /// An agent.
    Agent(AgentId),
    /// A family in one row.
    Many(Family),
}

/// The screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Screen {
    /// The view.
    pub(super) view: View,
    /// Which agents are shown.
    pub(super) filter: Filter,
    /// Whose rows are shown one by one.
    pub(super) opened: Opened,
    /// What is chosen.
    chosen: Option<Chosen>,
    /// The place of the chosen row, and of the first that is seen.
    pub(super) at: usize,
    pub(super) first: usize,
    /// How many rows there is room for.
    pub(super) room: usize,
    /// Something to be told once.
    pub(super) notice: Option<String>,
}

impl Chosen {
    fn of(entries: &[Entry], row: &Row) -> Self {
        match &row.of {
            Of::One(entry) => Self::Agent(entries[*entry].id.clone()),
            Of::Many { family, .. } => Self::Many(family.clone()),
        }
    }

    fn is(&self, entries: &[Entry], row: &Row) -> bool {
        match (self, &row.of) {
            (Self::Agent(id), Of::One(entry)) => entries[*entry].id == *id,
            (Self::Many(one), Of::Many { family, .. }) => one == family,
            _ => false,
        }
    }
}

impl Screen {
    /// A screen that tells something at first.
    pub(super) fn telling(notice: Option<String>) -> Self {
        Self { notice, ..Self::default() }
    }

    /// Takes note of new rows: what is chosen stays so, or what stands in its place is chosen; and it
    /// is among the rows that are seen.
    pub(super) fn settle(&mut self, entries: &[Entry], rows: &[Row]) {
        let last = rows.len().saturating_sub(1);
        if let Some(chosen) = &self.chosen {
            let here = |row: &Row| chosen.is(entries, row);
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
    pub(super) fn go(&mut self, entries: &[Entry], rows: &[Row], by: isize) {
        let last = rows.len().saturating_sub(1);
        self.choose(entries, rows, self.at.saturating_add_signed(by).min(last));
        self.scroll(last);
    }

    /// Opens the chosen row of many, or closes it.
    pub(super) fn open(&mut self, rows: &[Row], open: bool) {
        if let Some(Row { of: Of::Many { family, .. }, .. }) = rows.get(self.at) {
            if open {
                self.opened.families.insert(family.clone());
            } else {
                self.opened.families.remove(family);
            }
            self.chosen = Some(Chosen::Many(family.clone()));
        }
    }

    /// Chooses the row below which the chosen one stands.
    pub(super) fn go_out(&mut self, entries: &[Entry], rows: &[Row]) {
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
    pub(super) fn show(&mut self, filter: Filter) {
        if self.filter != filter {
            self.filter = filter;
            self.go_to_top();
        }
    }

    fn choose(&mut self, entries: &[Entry], rows: &[Row], at: usize) {
        self.at = at;
        self.chosen = rows.get(at).map(|row| Chosen::of(entries, row));
    }

    fn scroll(&mut self, last: usize) {
        let room = self.room.max(1);
        self.first = self.first.min((last + 1).saturating_sub(room)).min(self.at);
        self.first = self.first.max((self.at + 1).saturating_sub(room));
    }
}
