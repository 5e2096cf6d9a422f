//! The stream of one run: its headline, its agents, its log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::domain::time::Timestamp;
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::serve::agent_feed::{RunChanges, SentRun};
use crate::serve::backend::{CommandBackend, FollowedRun};
use crate::serve::feed::{FeedEvent, FeedSource};
use crate::serve::log_page::PageLogLine;
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::RunDir;
use crate::store::record;

/// The interval between two checks for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The pause after sending changes, as a multiple of the time that it took: the changes of many agents are sent less
/// often.
pub(super) const PAUSE_FACTOR: u32 = 20;

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
    sent: SentRun,
    started: Option<Timestamp>,
    lines: VecDeque<PageLogLine>,
    /// True if something has changed that is not told yet.
    is_due: bool,
    sent_at: Instant,
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
            sent: SentRun::default(),
            started,
            lines,
            is_due: false,
            sent_at: Instant::now(),
            pause: Duration::ZERO,
        };
        source.send();
        Ok(source)
    }

    /// Takes in the run as it is now, and returns what has changed.
    fn send(&mut self) -> RunChanges {
        let begin = Instant::now();
        let (known, expected) = (self.watch.known(), self.watch.expected());
        let changes = self.sent.update(known, expected, self.started);
        let (run, held, started) = (known.run, known.held, self.started.unwrap_or_default());
        self.backend.follow(&FollowedRun { run, expected, held, started });
        self.pause = begin.elapsed() * PAUSE_FACTOR;
        (self.sent_at, self.is_due) = (Instant::now(), false);
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
        let quiet = self.sent_at.elapsed();
        if (self.is_due && quiet >= self.pause) || quiet >= STATUS_INTERVAL.max(self.pause) {
            let changes = self.send();
            events.extend(Self::events_of(changes));
        }
        Ok(events)
    }

    fn whole(&self, after: Option<u64>) -> Vec<FeedEvent> {
        let headline = self.sent.headline();
        let mut events: Vec<FeedEvent> =
            headline.map(|headline| FeedEvent::of("run", headline)).into_iter().collect();
        let rows = self.sent.rows();
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
