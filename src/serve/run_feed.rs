//! The streams of one run (its headline, its agents, its log) and of all runs; pages of records, and turns over time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::backend::CommandQuery;
use crate::domain::event::Record;
use crate::domain::id::{AgentId, StateName};
use crate::domain::ledger::{ChargeKind, LedgerCharge, cost_of};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;
use crate::domain::tool_call::beginning;
use crate::domain::turn::TurnId;
use crate::plugin::sentence::sentence;
use crate::plugin::styled::TextTone;
use crate::process::{tool_calls, turn_transcript};
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::serve::agent_feed::{RunChanges, SentRun};
use crate::serve::backend::{CommandBackend, FollowedRun};
use crate::serve::feed::{FeedEvent, FeedSource};
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::RunDir;
use crate::store::record;

/// The interval between two checks for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The pause after sending changes, as a multiple of the time that it took: the changes of many agents are sent less
/// often.
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

// The records of a run as lines of the page, and pages of them.

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

// The stream of all runs: each as `list --json` has it, with its open questions.

/// The shortest interval between two looks.
const LIST_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The most runs that are followed; older ones are asked for.
const MAX_RUNS: usize = 100;

/// The source of the stream of all runs.
pub struct RunsFeedSource {
    backend: Arc<dyn CommandBackend>,
    runs: Vec<Value>,
    failure: Option<String>,
    pause: Duration,
}

impl RunsFeedSource {
    /// Returns a source that has not looked yet.
    pub fn new(backend: Arc<dyn CommandBackend>) -> Self {
        let mut source =
            Self { backend, runs: Vec::new(), failure: None, pause: LIST_POLL_INTERVAL };
        source.look();
        source
    }

    fn look(&mut self) -> Vec<FeedEvent> {
        let begin = Instant::now();
        let query = CommandQuery::Runs { offset: 0, limit: MAX_RUNS };
        let found = self.backend.document(&query).map_err(|refusal| refusal.message);
        self.pause = LIST_POLL_INTERVAL.max(begin.elapsed() * PAUSE_FACTOR);
        match found.and_then(runs_of) {
            Ok(runs) => {
                self.failure = None;
                let events = changes(&self.runs, &runs);
                self.runs = runs;
                events
            }
            Err(failure) if self.failure.as_ref() != Some(&failure) => {
                let event = FeedEvent::of("failure", &failure);
                self.failure = Some(failure);
                vec![event]
            }
            Err(_) => Vec::new(),
        }
    }
}

/// Returns the runs of a document; one without them does not say that there are none.
fn runs_of(mut document: Value) -> Result<Vec<Value>, String> {
    match document.get_mut("runs").map(Value::take) {
        Some(Value::Array(runs)) => Ok(runs),
        _ => Err("the document of the runs has no list `runs`".to_owned()),
    }
}

impl FeedSource for RunsFeedSource {
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error> {
        Ok(self.look())
    }

    fn whole(&self, _after: Option<u64>) -> Vec<FeedEvent> {
        let failure = self.failure.as_ref().map(|failure| FeedEvent::of("failure", failure));
        let runs = self.runs.iter().map(|run| FeedEvent::of("run", run));
        runs.chain(failure).collect()
    }

    fn interval(&self) -> Duration {
        self.pause
    }
}

/// Returns the events for the runs that are new, different or gone.
fn changes(before: &[Value], now: &[Value]) -> Vec<FeedEvent> {
    let name = |run: &Value| run["run"].as_str().unwrap_or_default().to_owned();
    let mut old: BTreeMap<String, &Value> = before.iter().map(|run| (name(run), run)).collect();
    let mut events = Vec::new();
    for run in now {
        if old.remove(&name(run)) != Some(run) {
            events.push(FeedEvent::of("run", run));
        }
    }
    events.extend(old.keys().map(|gone| FeedEvent::of("gone", gone)));
    events
}

// The turns of a run over time: when each could begin, when it began, and when it ended.

/// The maximum number of turns that are sent. The last turns are sent.
const MAX_TURNS: usize = 3000;

/// A turn over time. It waits until it has begun, then its process starts, then the model and its tools work, in turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TurnBar {
    /// The agent whose turn it is.
    pub agent: AgentId,
    /// The number of the agent's step that it belongs to.
    pub step: u64,
    /// Its number in the step, from 0.
    pub turn: u32,
    /// The state whose prompt it answers, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The time from which it was due.
    pub due: Timestamp,
    /// The time at which it began; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<Timestamp>,
    /// The time at which the model was asked; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Timestamp>,
    /// The time that the model took of the rest, in milliseconds; absent if that is not known. The tools took what remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_ms: Option<u64>,
    /// The time at which it ended.
    pub ended: Timestamp,
    /// True if it failed or its reply was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The cost.
    pub cost_usd: Usd,
}

/// The turns of a run over time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunTimeline {
    /// The beginning of the run
    began: Timestamp,
    /// The number of turns that are left out
    left_out: usize,
    /// The turns
    turns: VecDeque<TurnBar>,
}

/// The fold over the records.
#[derive(Debug, Default)]
struct TimelineFold {
    /// The time of the last record of each agent.
    last: HashMap<AgentId, Timestamp>,
    began: Timestamp,
    bars: VecDeque<TurnBar>,
    left_out: usize,
}

impl TimelineFold {
    fn see(&mut self, record: &Record) {
        if record.seq == 1 {
            self.began = record.at;
        }
        let charge = cost_of(&record.event).filter(|charge| charge.on != ChargeKind::Nothing);
        if let Some(charge) = charge {
            self.add(record, &charge);
        }
        if let Some(agent) = record.event.agent() {
            self.last.insert(agent.clone(), record.at);
        }
    }

    fn add(&mut self, record: &Record, charge: &LedgerCharge<'_>) {
        let TurnId { agent, step, turn } = charge.turn;
        // The first turn of a forked agent is due from the record that forked it.
        let own = self.last.get(agent).or_else(|| self.last.get(agent.parent()?));
        let (due, ended) = (own.copied().unwrap_or(self.began), record.at);
        let took = charge.cost.duration_ms;
        self.bars.push_back(TurnBar {
            agent: agent.clone(),
            step: *step,
            turn: *turn,
            state: charge.prompt.cloned(),
            due,
            begun: None,
            asked: took.map(|took| Timestamp(ended.0.saturating_sub(took)).max(due)),
            model_ms: None,
            ended,
            failed: match charge.on {
                ChargeKind::Answer | ChargeKind::Nothing | ChargeKind::Late => false,
                ChargeKind::Rejected | ChargeKind::Failed(_) => true,
            },
            cost_usd: charge.cost.amount,
        });
        if self.bars.len() > MAX_TURNS {
            self.bars.pop_front();
            self.left_out += 1;
        }
    }
}

/// Reads the turns of a run that have ended.
///
/// # Errors
/// [`store::Error`].
pub fn read_timeline(dir: &RunDir) -> Result<RunTimeline, store::Error> {
    let mut fold = TimelineFold::default();
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        fold.see(&record::decode(line)?);
        Ok(())
    })?;
    let steps = dir.steps();
    let turns: Vec<TurnId> = fold.bars.iter().map(turn_of).collect();
    for ((bar, turn), model) in
        fold.bars.iter_mut().zip(&turns).zip(tool_calls::read(&steps, &turns))
    {
        (bar.begun, bar.model_ms) = (begun(&steps, bar, turn), model);
    }
    Ok(RunTimeline { began: fold.began, left_out: fold.left_out, turns: fold.bars })
}

fn turn_of(bar: &TurnBar) -> TurnId {
    TurnId { agent: bar.agent.clone(), step: bar.step, turn: bar.turn }
}

/// Returns the time at which a turn began: its first file is written then.
fn begun(steps: &Path, bar: &TurnBar, turn: &TurnId) -> Option<Timestamp> {
    let file =
        |ending: &str| turn_transcript::changed(&steps.join(format!("{}.{ending}", turn.stem())));
    let begun = file("turn").or_else(|| file("started"))?;
    Some(begun).filter(|begun| (bar.due..=bar.ended).contains(begun))
}

#[cfg(test)]
mod runs_feed_tests {
    use std::sync::Mutex;

    use super::*;
    use crate::domain::id::RunId;
    use crate::serve::backend::CommandRefusal;

    #[test]
    fn only_changed_runs_are_told() {
        let run = |id: &str, cost: u32| json!({ "run": id, "cost": cost });
        let told = |before: &[Value], now: &[Value]| -> Vec<(&'static str, String)> {
            changes(before, now).into_iter().map(|event| (event.name, event.data)).collect()
        };
        assert_eq!(told(&[], &[run("a", 1)]), [("run", r#"{"run":"a","cost":1}"#.to_owned())]);
        assert_eq!(told(&[run("a", 1)], &[run("a", 1)]), []);
        let both = told(&[run("a", 1), run("b", 1)], &[run("b", 2)]);
        assert_eq!(both, [("run", r#"{"run":"b","cost":2}"#.to_owned()), ("gone", "\"a\"".into())]);
    }

    /// Answers with one document after another.
    struct Documents(Mutex<VecDeque<Value>>);

    impl CommandBackend for Documents {
        fn document(&self, _query: &CommandQuery) -> Result<Value, CommandRefusal> {
            Ok(self.0.lock().expect("documents").pop_front().expect("a document"))
        }

        fn follow(&self, _run: &FollowedRun<'_>) {}

        fn unfollow(&self, _run: &RunId) {}

        fn act(&self, _action: &str, _body: &Value) -> Result<Value, CommandRefusal> {
            Ok(Value::Null)
        }
    }

    #[test]
    fn document_without_runs_removes_no_run() {
        let runs = json!({ "runs": [{ "run": "a" }] });
        for flawed in
            [json!({}), json!({ "runs": null }), json!({ "runs": {} }), json!([]), json!(1)]
        {
            let documents =
                [&runs, &flawed, &flawed, &runs, &json!({ "runs": [] })].map(Clone::clone);
            let mut source = RunsFeedSource::new(Arc::new(Documents(Mutex::new(documents.into()))));
            let mut names = || -> Vec<&'static str> {
                source.look().into_iter().map(|event| event.name).collect()
            };
            assert_eq!(names(), ["failure"], "{flawed}");
            assert!(names().is_empty(), "the same failure is told once");
            assert!(names().is_empty(), "the run is still there");
            assert_eq!(names(), ["gone"]);
        }
    }
}

#[cfg(test)]
mod timeline_tests {
    use super::*;
    use crate::domain::event::Event;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;

    #[test]
    fn turns_of_a_forked_agent_are_due_from_the_fork_on() {
        let mut scene = Scene::begin();
        let mut fold = TimelineFold::default();
        let mut take = |agent: &str, transition| {
            let event = Event::StepFinished(scene.step(agent, transition));
            let at = Timestamp(scene.next() * 1000);
            fold.see(&Record::next(&scene.run, at, event.clone()));
            scene.happens(event);
        };
        take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        take("main.1", result("done"));
        let bars: Vec<_> = fold.bars.iter().map(|bar| (bar.agent.as_str(), bar.step)).collect();
        assert_eq!(bars, [("main", 1), ("main.1", 1)]);
        assert_eq!(fold.bars[1].due, fold.bars[0].ended);
    }
}
