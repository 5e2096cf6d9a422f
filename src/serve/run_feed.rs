//! The stream of one run: its headline, its agents, its log.
//!
//! The records of a run as lines of the page, and pages of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::domain::event::Record;
use crate::domain::id::AgentId;
use crate::domain::printable::beginning;
use crate::domain::time::Timestamp;
use crate::plugin::line_choice::tone;
use crate::plugin::sentence::{sentence, shown_texts};
use crate::plugin::styled::TextTone;
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::serve::agent_rows::{RunChanges, ToldRun};
use crate::serve::backend::{CommandBackend, FollowedRun};
use crate::serve::feed::{FeedEvent, FeedSource};
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::RunDir;
use crate::store::record;

/// The interval between two checks for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The pause after telling changes, as a multiple of the time that it took: many agents are told less often.
const PAUSE_FACTOR: u32 = 20;

/// The interval at which statuses are looked at that change with time alone.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// The most rows of an event.
const ROWS: usize = 500;

/// The most lines of the log that are kept and told to who comes.
const MAX_LINES: usize = 300;

/// The source of a run's stream.
pub struct RunFeedSource {
    backend: Arc<dyn CommandBackend>,
    watch: RunWatcher,
    told: ToldRun,
    started: Option<Timestamp>,
    lines: VecDeque<PageLogLine>,
    /// True if something has changed that is not told yet.
    is_due: bool,
    told_at: Instant,
    pause: Duration,
}

impl RunFeedSource {
    /// Opens a run.
    ///
    /// # Errors
    /// An error in its directory.
    pub fn open(dir: &RunDir, backend: Arc<dyn CommandBackend>) -> Result<Self, store::Error> {
        let mut watch = RunWatcher::open(dir.clone())?;
        watch.take_records();
        let seq = watch.known().run.seq;
        let (started, lines) = earlier(dir, seq)?;
        let mut source = Self {
            backend,
            watch,
            told: ToldRun::default(),
            started,
            lines,
            is_due: false,
            told_at: Instant::now(),
            pause: Duration::ZERO,
        };
        source.tell();
        Ok(source)
    }

    /// Takes in the run as it is now, and returns what has changed.
    fn tell(&mut self) -> RunChanges {
        let begin = Instant::now();
        let (known, expected) = (self.watch.known(), self.watch.expected());
        let changes = self.told.update(known, expected, self.started);
        let (run, held, started) = (known.run, known.held, self.started.unwrap_or_default());
        self.backend.follow(&FollowedRun { run, expected, held, started });
        self.pause = begin.elapsed() * PAUSE_FACTOR;
        (self.told_at, self.is_due) = (Instant::now(), false);
        changes
    }

    fn events_of(changes: RunChanges) -> Vec<FeedEvent> {
        let mut events: Vec<FeedEvent> =
            changes.rows.chunks(ROWS).map(|rows| FeedEvent::of("agents", &rows)).collect();
        events.extend(changes.headline.map(|headline| FeedEvent::of("run", &headline)));
        events
    }
}

impl Drop for RunFeedSource {
    fn drop(&mut self) {
        self.backend.unfollow(&self.watch.known().run.workflow_id);
    }
}

impl FeedSource for RunFeedSource {
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error> {
        self.is_due |= self.watch.refresh()?;
        let records = self.watch.take_records();
        let mut events = Vec::new();
        if !records.is_empty() {
            let lines: Vec<PageLogLine> = records.iter().map(PageLogLine::of).collect();
            events.extend(lines.chunks(MAX_LINES).map(|lines| FeedEvent::of("log", &lines)));
            self.lines.extend(lines);
            let surplus = self.lines.len().saturating_sub(MAX_LINES);
            self.lines.drain(..surplus);
        }
        let quiet = self.told_at.elapsed();
        if (self.is_due && quiet >= self.pause) || quiet >= STATUS_INTERVAL.max(self.pause) {
            let changes = self.tell();
            events.extend(Self::events_of(changes));
        }
        Ok(events)
    }

    fn whole(&self, after: Option<u64>) -> Vec<FeedEvent> {
        let headline = self.told.headline();
        let mut events: Vec<FeedEvent> =
            headline.map(|headline| FeedEvent::of("run", headline)).into_iter().collect();
        let rows = self.told.rows();
        events.extend(rows.chunks(ROWS).map(|rows| FeedEvent::of("agents", &rows)));
        let after = after.unwrap_or(0);
        let first = self.lines.front().map_or(after + 1, |line| line.seq);
        if after > 0 && first > after + 1 {
            // The reader asks for these by their numbers.
            events.push(FeedEvent::of("log_gap", &json!({ "after": after, "before": first })));
        }
        let lines: Vec<&PageLogLine> = self.lines.iter().filter(|line| line.seq > after).collect();
        events.push(FeedEvent::of("log", &lines));
        events
    }

    fn seq(&self) -> u64 {
        self.watch.known().run.seq
    }

    fn interval(&self) -> Duration {
        POLL_INTERVAL
    }
}

/// Returns the time of a run's first record, and the lines of the last ones up to this record.
fn earlier(
    dir: &RunDir,
    seq: u64,
) -> Result<(Option<Timestamp>, VecDeque<PageLogLine>), store::Error> {
    let mut journal = JournalReader::open(&dir.journal())?;
    let (mut started, mut last) = (None, VecDeque::new());
    while let Some((number, line)) = journal.read()? {
        if number > seq {
            break;
        }
        started = started.or_else(|| record::time(line.as_bytes()));
        last.push_back((number, line));
        if last.len() > MAX_LINES {
            last.pop_front();
        }
        if number == seq {
            break;
        }
    }
    let decoded = |(number, line): (u64, String)| {
        let record = record::decode(&line).map_err(|flaw| journal.damaged(number, &flaw))?;
        Ok(PageLogLine::of(&record))
    };
    Ok((started, last.into_iter().map(decoded).collect::<Result<_, store::Error>>()?))
}

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
        let shows = shown_texts(&record.event);
        Self {
            seq: record.seq,
            at: record.at,
            tone: tone(&record.event),
            agent: record.event.agent().cloned(),
            text: beginning(sentence(record), MAX_LINE_BYTES),
            shows: shows.iter().map(|text| beginning(text.clone(), MAX_LINE_BYTES)).collect(),
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

/// Reads records of a run: the first after a place, else the last ones, in order. Each is as `log --json` prints it, with its
/// line.
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
