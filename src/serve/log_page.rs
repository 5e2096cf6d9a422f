//! The records of a run as lines of the page, and pages of them.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::event::Record;
use crate::domain::id::AgentId;
use crate::domain::time::Timestamp;
use crate::domain::tool_call::beginning;
use crate::plugin::sentence::sentence;
use crate::plugin::styled::TextTone;
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::RunDir;
use crate::store::record;

/// The most bytes of a line.
const MAX_LINE_BYTES: usize = 600;

/// The most bytes of a page of records.
const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// A record as the page lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageLogLine {
    /// The number of the record.
    pub seq: u64,
    /// Its time.
    pub at: Timestamp,
    /// The tone of the line.
    pub tone: TextTone,
    /// The agent that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The sentence, as `raymond log` prints it.
    pub text: String,
    /// The texts that the reply shows to people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
}

impl PageLogLine {
    /// Returns the line of a record.
    pub fn of(record: &Record) -> Self {
        let facets = record.event.facets();
        Self {
            seq: record.seq,
            at: record.at,
            tone: facets.tone,
            agent: record.event.agent().cloned(),
            text: beginning(sentence(record), MAX_LINE_BYTES),
            shows: facets
                .shown
                .iter()
                .map(|text| beginning(text.clone(), MAX_LINE_BYTES))
                .collect(),
        }
    }
}

/// A page of the records of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogPage {
    /// The records
    pub records: Vec<LoggedRecord>,
    /// True if there are more
    pub more: bool,
}

/// A record with its line.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoggedRecord {
    /// Its line
    pub line: PageLogLine,
    /// The record, as `log --json` prints it: its schema is that of `raymond schema record`
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub record: Record,
}

/// The records that are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRange {
    /// Only records before this one.
    pub before: Option<u64>,
    /// Only records after this one.
    pub after: Option<u64>,
    /// Only records of this agent.
    pub agent: Option<AgentId>,
    /// Only records whose line has this text, in lower case.
    pub text: Option<String>,
    /// The most records.
    pub limit: usize,
}

impl LogRange {
    /// Returns whether a record is asked for.
    fn has(&self, line: &PageLogLine) -> bool {
        self.agent.is_none() || self.agent == line.agent
    }

    fn has_text(&self, line: &PageLogLine) -> bool {
        self.text.as_ref().is_none_or(|text| line.text.to_lowercase().contains(text))
    }
}

/// Reads records of a run: the first after a place, else the last ones, in order. Each is as `log --json` prints it,
/// with its line.
///
/// # Errors
/// [`store::Error`].
pub fn read(dir: &RunDir, range: &LogRange) -> Result<LogPage, store::Error> {
    let mut journal = JournalReader::open(&dir.journal())?;
    let mut found: VecDeque<(LoggedRecord, usize)> = VecDeque::new();
    let (mut bytes, mut is_cut) = (0, false);
    while let Some((seq, text)) = journal.read()? {
        if range.before.is_some_and(|before| seq >= before) {
            break;
        }
        if range.after.is_some_and(|after| seq <= after) {
            continue;
        }
        let record = record::decode(&text).map_err(|flaw| journal.damaged(seq, &flaw))?;
        let line = PageLogLine::of(&record);
        if !range.has(&line) || !range.has_text(&line) {
            continue;
        }
        bytes += text.len();
        found.push_back((LoggedRecord { line, record }, text.len()));
        while found.len() > range.limit || (bytes > MAX_PAGE_BYTES && found.len() > 1) {
            is_cut = true;
            // After a place the first ones are wanted, else the last ones.
            let left = if range.after.is_some() { found.pop_back() } else { found.pop_front() };
            bytes -= left.map_or(0, |(_, length)| length);
        }
        if is_cut && range.after.is_some() {
            break;
        }
    }
    Ok(LogPage { records: found.into_iter().map(|(record, _)| record).collect(), more: is_cut })
}
