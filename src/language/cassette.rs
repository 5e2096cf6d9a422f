//! A cassette as it is replayed: read from its two files, and asked for the turn that answers a prompt.
//!
//! A turn is found by three questions, one after another: the same agent in the same state with the same prompt; the
//! same agent in the same state, as often as it has been there; any agent in that state, as often as the one that asks
//! has been there. None of them needs to know what was replayed before, so a run that was killed replays the same.

pub mod difference;
pub mod portable;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::portable::PortableMarks;
use super::scrub::is_scrubbed_form_of;
use crate::domain::cassette::{
    CASSETTE_FORMAT, CassetteHeader, HEADER_FILE, RecordedEnding, RecordedTurn, TURNS_FILE,
};
use crate::domain::money::Usd;
use crate::domain::turn::TurnId;
use crate::domain::usage::UsageByModel;

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
    /// There are too few or too many turns.
    #[error(
        "{TURNS_FILE} has {found} turns, and {HEADER_FILE} tells of {expected}; record the run again"
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
}

/// A turn that can be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayableTurn {
    /// The turn.
    pub recorded: RecordedTurn,
    /// The number of the turn within its step without those that are not replayed.
    number: u32,
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
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Exact => "by its prompt",
            Self::Agent => "by agent, state and visit",
            Self::State => "by state and visit, of another agent",
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
        Self { header, turns, places }
    }

    /// Returns the names of the recorded prompts, with their folders.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Returns the turn that answers a prompt, and the question that found it; `None` if there is none.
    #[must_use]
    pub fn find(&self, asked: &ReplayRequest<'_>) -> Option<(&PlayableTurn, MatchKind)> {
        let in_place =
            || self.places.get(asked.place).into_iter().flatten().map(|&at| &self.turns[at]);
        let own = || in_place().filter(|turn| turn.recorded.agent == asked.id.agent);
        let due = own().find(|turn| turn.is_at(asked.id));
        if let Some(due) = due.filter(|turn| turn.is_asked(asked)) {
            return Some((due, MatchKind::Exact));
        }
        let distance =
            |turn: &&PlayableTurn| (turn.recorded.visit.abs_diff(asked.visit), !turn.is_answered());
        let same = own().filter(|turn| turn.is_asked(asked)).min_by_key(distance);
        if let Some(same) = same {
            return Some((same, MatchKind::Exact));
        }
        let visited = |turn: &&PlayableTurn| turn.recorded.visit == asked.visit;
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
    #[must_use]
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
            (skipped.step, skipped.count) = (recorded.step, 0);
        }
        if recorded.is_of_the_machine() {
            skipped.count += 1;
            skipped.cost = skipped.cost.saturating_add(recorded.cost_usd);
            skipped.usage += &recorded.usage;
            continue;
        }
        turns.push(PlayableTurn {
            number: recorded.turn.saturating_sub(skipped.count),
            further_cost: std::mem::take(&mut skipped.cost),
            further_usage: std::mem::take(&mut skipped.usage),
            recorded,
        });
    }
    turns
}

/// The turns of an agent that are not replayed.
#[derive(Default)]
struct SkippedTurns {
    step: u64,
    /// Their number in this step.
    count: u32,
    /// Their cost since the last turn that is replayed.
    cost: Usd,
    usage: UsageByModel,
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
