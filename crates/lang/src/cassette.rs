//! A cassette as it is replayed: read from its two files, and asked for the turn that answers a prompt.
//!
//! A turn is found by three questions, one after another: the same agent in the same state with the same prompt; the
//! same agent in the same state, as often as it has been there; any agent in that state, as often as the one that asks
//! has been there. None of them needs to know what was replayed before, so a run that was killed replays the same.

pub mod conversation;
pub mod difference;
pub mod portable;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::portable::PortableMarks;
use super::scrub::is_scrubbed_form_of;
use raymond_model::cassette::{
    CASSETTE_FORMAT, CassetteHeader, HEADER_FILE, RecordedEnding, RecordedTurn, TURNS_FILE,
};
use raymond_model::money::Usd;
use raymond_model::turn::TurnId;
use raymond_model::usage::UsageByModel;

/// The reasons why a cassette cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CassetteError {
    /// It is of a later version.
    #[error(
        "{HEADER_FILE} has format {found}, and this raymond reads up to {CASSETTE_FORMAT}; use the raymond that recorded it, or a newer one"
    )]
    Newer {
        /// The format.
        found: u64,
    },
    /// The header cannot be read.
    #[error("{HEADER_FILE} is damaged: {why}; record the run again")]
    Header {
        /// The mistake.
        why: String,
    },
    /// A line cannot be read.
    #[error("{TURNS_FILE}:{line} is damaged: {why}; record the run again")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The mistake.
        why: String,
    },
    /// The part that is to be replayed does not end in the recording.
    #[error(
        "it was recorded up to record {last}, and has no record {until}; name one from 1 to {last}"
    )]
    TooShort {
        /// The record that was named.
        until: u64,
        /// The last record.
        last: u64,
    },
    /// The records of its turns are not known.
    #[error("an older raymond recorded it, without the records of its turns; record the run again")]
    NoRecords,
    /// There are too few or too many turns.
    #[error(
        "{TURNS_FILE} has {found} turns, and {HEADER_FILE} expects {expected}; record the run again"
    )]
    Count {
        /// The number of turns.
        found: u64,
        /// The number in the header.
        expected: u64,
    },
}

/// A cassette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cassette {
    /// The header.
    pub header: CassetteHeader,
    turns: Vec<PlayableTurn>,
    /// The places of the turns with each prompt.
    places: BTreeMap<String, Vec<usize>>,
    /// True if it has only the first part of a run, so that no turn may be taken for another.
    is_partial: bool,
}

/// A turn that can be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayableTurn {
    /// The turn.
    pub recorded: RecordedTurn,
    /// The number of the turn within its step without those that are not replayed.
    number: u32,
    /// The number of turns that the agent had had with this prompt before, without those.
    visit: u32,
    /// The cost of the turns before it that are not replayed.
    pub further_cost: Usd,
    /// The usage of those.
    pub further_usage: UsageByModel,
}

/// The turn that is to be answered.
#[derive(Debug, Clone, Copy)]
pub struct ReplayRequest<'turn> {
    /// The turn.
    pub id: &'turn TurnId,
    /// The name of the prompt, with the folder.
    pub place: &'turn str,
    /// The number of turns that the agent has had with this prompt before.
    pub visit: u32,
    /// The text of the prompt.
    pub prompt: &'turn str,
    /// The texts that the marks of recorded texts stand for.
    pub marks: &'turn PortableMarks,
}

/// The question that has found a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// The same agent, state and prompt.
    Exact,
    /// The same agent and state, as often as it has been there.
    Agent,
    /// The same state, as often as the agent has been there.
    State,
}

impl MatchKind {
    /// Returns how the turn was found, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Exact => "same agent, state and prompt",
            Self::Agent => "same agent, state and visit",
            Self::State => "same state and visit, of another agent",
        }
    }
}

impl Cassette {
    /// Reads the two files.
    ///
    /// # Errors
    /// [`CassetteError`].
    pub fn parse(header: &[u8], turns: &[u8]) -> Result<Self, CassetteError> {
        let header = parse_header(header)?;
        let mut recorded = Vec::new();
        for (line, text) in turns.split(|&byte| byte == b'\n').enumerate() {
            if text.trim_ascii().is_empty() {
                continue;
            }
            let turn: RecordedTurn = serde_json::from_slice(text)
                .map_err(|error| CassetteError::Line { line: line + 1, why: error.to_string() })?;
            recorded.push(turn);
        }
        let found = recorded.len() as u64;
        if found != header.turns {
            return Err(CassetteError::Count { found, expected: header.turns });
        }
        Ok(Self::of(header, recorded))
    }

    fn of(header: CassetteHeader, recorded: Vec<RecordedTurn>) -> Self {
        let turns = playable(recorded);
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, turn) in turns.iter().enumerate() {
            places.entry(turn.recorded.place()).or_default().push(index);
        }
        Self { header, turns, places, is_partial: false }
    }

    /// Returns the part of the cassette up to a record. Each of its turns answers only the turn in its own place.
    ///
    /// # Errors
    /// [`CassetteError`] if there is no such record, or it is not known of which each turn is.
    pub fn until(mut self, until: u64) -> Result<Self, CassetteError> {
        let last = self.header.records.ok_or(CassetteError::NoRecords)?;
        if until > last || until == 0 {
            return Err(CassetteError::TooShort { until, last });
        }
        if self.turns.iter().any(|turn| turn.recorded.record.is_none()) {
            return Err(CassetteError::NoRecords);
        }
        self.turns.retain(|turn| turn.recorded.record.is_some_and(|record| record <= until));
        self.places.clear();
        for (index, turn) in self.turns.iter().enumerate() {
            self.places.entry(turn.recorded.place()).or_default().push(index);
        }
        self.is_partial = true;
        Ok(self)
    }

    /// Returns whether it has only the first part of a run.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the turns that are replayed, in the order in which they ended.
    pub fn turns(&self) -> &[PlayableTurn] {
        &self.turns
    }

    /// Returns the index of the turn in a place: of the same agent in the same state, in the same step and turn, else as
    /// often as the agent has been there.
    pub fn recorded_at(&self, id: &TurnId, place: &str, visit: u32) -> Option<usize> {
        let own = || {
            let in_place = self.places.get(place).into_iter().flatten().copied();
            in_place.filter(|&index| self.turns[index].recorded.agent == id.agent)
        };
        let visited = |index: &usize| self.turns[*index].visit == visit;
        let due = own().find(|&index| self.turns[index].is_at(id)).filter(visited);
        // The turn that follows a failed one has the same visit: a failure is replayed once, at its own number.
        let may_answer = |&index: &usize| {
            let turn = &self.turns[index];
            turn.is_answered() || turn.number == id.turn
        };
        due.or_else(|| own().filter(visited).find(may_answer))
    }

    /// Returns the names of the recorded prompts, with their folders.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Returns the turn that answers a prompt, and the question that found it; `None` if there is none.
    pub fn find(&self, asked: &ReplayRequest<'_>) -> Option<(&PlayableTurn, MatchKind)> {
        if self.is_partial {
            let turn = &self.turns[self.recorded_at(asked.id, asked.place, asked.visit)?];
            let by = if turn.is_asked(asked) { MatchKind::Exact } else { MatchKind::Agent };
            return Some((turn, by));
        }
        let in_place =
            || self.places.get(asked.place).into_iter().flatten().map(|&at| &self.turns[at]);
        let own = || in_place().filter(|turn| turn.recorded.agent == asked.id.agent);
        let due = own().find(|turn| turn.is_at(asked.id));
        if let Some(due) = due.filter(|turn| turn.is_asked(asked)) {
            return Some((due, MatchKind::Exact));
        }
        let distance =
            |turn: &&PlayableTurn| (turn.visit.abs_diff(asked.visit), !turn.is_answered());
        let same = own().filter(|turn| turn.is_asked(asked)).min_by_key(distance);
        if let Some(same) = same {
            return Some((same, MatchKind::Exact));
        }
        let visited = |turn: &&PlayableTurn| turn.visit == asked.visit;
        let due = due.filter(|turn| visited(turn));
        if let Some(due) = due.or_else(|| own().filter(visited).min_by_key(distance)) {
            return Some((due, MatchKind::Agent));
        }
        let others = in_place().filter(visited);
        let other = others.min_by_key(|turn| (!turn.is_answered(), !turn.is_asked(asked)));
        other.map(|turn| (turn, MatchKind::State))
    }
}

impl PlayableTurn {
    fn is_at(&self, id: &TurnId) -> bool {
        (self.recorded.step, self.number) == (id.step, id.turn)
    }

    fn is_answered(&self) -> bool {
        matches!(self.recorded.outcome, RecordedEnding::Replied { .. })
    }

    /// Returns whether its prompt is the one that is asked.
    pub fn is_asked(&self, asked: &ReplayRequest<'_>) -> bool {
        let prompt = self.recorded.prompt.as_deref();
        prompt.is_some_and(|prompt| is_scrubbed_form_of(&asked.marks.filled(prompt), asked.prompt))
    }
}

/// Returns the turns that are replayed, each with the cost of those before it that are not.
fn playable(recorded: Vec<RecordedTurn>) -> Vec<PlayableTurn> {
    let mut turns: Vec<PlayableTurn> = Vec::with_capacity(recorded.len());
    let mut skipped: BTreeMap<String, SkippedTurns> = BTreeMap::new();
    for recorded in recorded {
        let skipped = skipped.entry(recorded.agent.to_string()).or_default();
        if skipped.step != recorded.step {
            (skipped.step, skipped.number) = (recorded.step, 0);
        }
        let visits = skipped.visits.entry(recorded.place()).or_default();
        if recorded.is_left_out() {
            visits.first.get_or_insert(recorded.visit);
            skipped.cost = skipped.cost.saturating_add(recorded.cost_usd);
            skipped.usage += &recorded.usage;
            continue;
        }
        if let Some(first) = visits.first.take() {
            visits.count += recorded.visit.saturating_sub(first);
        }
        // The turns of a branch or of a resumed run do not begin with 0 in each step, those of a replay do.
        let number = skipped.number;
        skipped.number += 1;
        turns.push(PlayableTurn {
            number,
            visit: recorded.visit.saturating_sub(visits.count),
            further_cost: std::mem::take(&mut skipped.cost),
            further_usage: std::mem::take(&mut skipped.usage),
            recorded,
        });
    }
    turns
}

/// The place of an agent's next turn, and its turns that are not replayed.
#[derive(Default)]
struct SkippedTurns {
    step: u64,
    /// The number of the next turn in this step.
    number: u32,
    /// Their cost since the last turn that is replayed.
    cost: Usd,
    usage: UsageByModel,
    /// Their visits of each prompt.
    visits: BTreeMap<String, SkippedVisits>,
}

/// The visits of a prompt by turns that are not replayed.
#[derive(Default)]
struct SkippedVisits {
    count: u32,
    /// The number of the first one since the last turn that is replayed.
    first: Option<u32>,
}

/// The format of a header, whatever else it has.
#[derive(Deserialize)]
struct HeaderFormat {
    format: u64,
}

fn parse_header(header: &[u8]) -> Result<CassetteHeader, CassetteError> {
    let damaged = |error: serde_json::Error| CassetteError::Header { why: error.to_string() };
    let HeaderFormat { format } = serde_json::from_slice(header).map_err(damaged)?;
    if format > u64::from(CASSETTE_FORMAT) {
        return Err(CassetteError::Newer { found: format });
    }
    serde_json::from_slice(header).map_err(damaged)
}

#[cfg(test)]
mod tests;
