//! The stream of an agent's conversation, and the rows of a run's agents: in pages, and what has changed in them.
//!
//! The conversation is that of the agent's last turn, as it is written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::actor::registry::item_of;
use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::tool_call::beginning;
use crate::domain::turn::TurnId;
use crate::domain::views::run_standing;
use crate::plugin::sentence::date;
use crate::process::claude::stream::activity::ConversationItem;
use crate::process::claude::turn_transcript;
use crate::process::claude::turn_transcript::{TurnTail, TurnTranscript};
use crate::runtime::observing::agent_entries::{
    AgentEntry, MonitoredRun, StatusFilter, TopAgentStatus, activity, entries,
};
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::serve::conversation::{ConversationEntry, TurnConversation};
use crate::serve::feed::{FeedEvent, FeedSource};
use crate::store;
use crate::store::layout::RunDir;

/// The interval between two looks at the stream of the turn.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The interval between two looks for another turn.
const TURN_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a read, as a multiple of the time that it took.
const PAUSE_FACTOR: u32 = 10;

/// The most entries of an event, and of a page.
const PAGE_ENTRIES: usize = 50;

/// The source of an agent's stream.
pub struct AgentFeedSource {
    steps: PathBuf,
    agent: AgentId,
    turn: Option<(TurnId, TurnTail)>,
    conversation: TurnConversation,
    writing: Option<Value>,
    looked: Instant,
    read_until: Instant,
    is_due: bool,
}

impl AgentFeedSource {
    /// Opens the conversation of an agent.
    pub fn open(dir: &RunDir, agent: AgentId) -> Self {
        let mut source = Self {
            steps: dir.steps(),
            agent,
            turn: None,
            conversation: TurnConversation::default(),
            writing: None,
            looked: Instant::now(),
            read_until: Instant::now(),
            is_due: true,
        };
        source.look_for_turn();
        source.read_entries();
        source
    }

    /// Finds the last turn that was begun; returns whether it is another one.
    fn look_for_turn(&mut self) -> bool {
        self.looked = Instant::now();
        let last = turn_transcript::last(&self.steps, &self.agent).ok().flatten();
        let Some(last) =
            last.filter(|last| self.turn.as_ref().is_none_or(|(turn, _)| turn != last))
        else {
            return false;
        };
        let tail = TurnTail::of(&self.steps, &last, 1);
        self.turn = Some((last, tail));
        (self.conversation, self.is_due) = (TurnConversation::default(), true);
        true
    }

    /// Reads the entries again if there may be more. Returns the index of the first new entry.
    fn read_entries(&mut self) -> Option<usize> {
        let (turn, tail) = self.turn.as_mut()?;
        while tail.read_new().unwrap_or(false) {
            self.is_due = true;
        }
        if !self.is_due || Instant::now() < self.read_until {
            return None;
        }
        let begin = Instant::now();
        let read = conversation(&self.steps, turn);
        self.is_due = false;
        self.read_until = Instant::now() + begin.elapsed() * PAUSE_FACTOR;
        let is_longer = read.left_out == self.conversation.left_out
            && read.entries.len() >= self.conversation.entries.len();
        let first = if is_longer { self.conversation.entries.len() } else { 0 };
        let is_new = read != self.conversation;
        self.conversation = read;
        is_new.then_some(first)
    }

    /// Returns the message that is being written, which is not an entry yet.
    fn writing_now(&self) -> Value {
        let Some((_, tail)) = &self.turn else { return Value::Null };
        let last = self.conversation.entries.last();
        let text = tail.activity.items.back().and_then(|item| match item {
            ConversationItem::Text(text) => Some(text),
            ConversationItem::Tool(_) | ConversationItem::Answer(_) | ConversationItem::Note(_) => {
                None
            }
        });
        let known =
            if let Some(ConversationEntry::Text { text, .. }) = last { text.as_str() } else { "" };
        // The end of a long one is left out here.
        let is_entry = |text: &&String| known.starts_with(text.trim_end_matches('…'));
        let text = text.filter(|text| !is_entry(text));
        json!({ "doing": tail.activity.doing, "ended": tail.activity.ended, "text": text })
    }

    fn turn_event(&self) -> FeedEvent {
        let turn = self.turn.as_ref().map(|(turn, _)| turn);
        let value =
            json!({ "step": turn.map(|turn| turn.step), "turn": turn.map(|turn| turn.turn) });
        FeedEvent::of("turn", &value)
    }

    fn entries_from(&self, first: usize) -> Vec<FeedEvent> {
        let rest = self.conversation.entries.get(first..).unwrap_or_default();
        let pages = rest.chunks(PAGE_ENTRIES).enumerate();
        pages
            .map(|(page, entries)| {
                let from = first + page * PAGE_ENTRIES;
                let value = json!({ "from": from, "left_out": self.conversation.left_out, "entries": entries });
                FeedEvent::of("entries", &value)
            })
            .collect()
    }
}

impl FeedSource for AgentFeedSource {
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error> {
        let mut events = Vec::new();
        if self.looked.elapsed() >= TURN_INTERVAL && self.look_for_turn() {
            events.push(self.turn_event());
        }
        if let Some(first) = self.read_entries() {
            events.extend(self.entries_from(first));
        }
        let writing = self.writing_now();
        if self.writing.as_ref() != Some(&writing) {
            events.push(FeedEvent::of("writing", &writing));
            self.writing = Some(writing);
        }
        Ok(events)
    }

    fn whole(&self, _after: Option<u64>) -> Vec<FeedEvent> {
        let mut events = vec![self.turn_event()];
        events.extend(self.entries_from(0));
        events.push(FeedEvent::of("writing", &self.writing_now()));
        events
    }

    fn interval(&self) -> Duration {
        POLL_INTERVAL
    }
}

/// Reads the conversation of a turn, as far as it has left a trace.
pub fn conversation(steps: &Path, turn: &TurnId) -> TurnConversation {
    let mut found = TurnConversation::default();
    let find = || TurnTranscript::find(steps, &turn.stem());
    // What can be read of a file that has an error is shown.
    let _ = find().map(|stream| stream.for_each_event(|event| found.take(event)));
    if !found.has_prompt()
        && let Some(Ok(texts)) = find().map(TurnTranscript::prompt_and_reply)
        && let Some(prompt) = texts.prompt
    {
        found.begin_with(prompt);
    }
    found
}

/// A page of a turn's conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationPage {
    /// The place of its first entry
    from: usize,
    /// The number of all entries
    all: usize,
    /// The number of entries that were left out before the first one
    left_out: usize,
    /// The entries
    entries: Vec<ConversationEntry>,
}

/// Returns a page of a turn's conversation.
pub fn page(steps: &Path, turn: &TurnId, from: usize) -> ConversationPage {
    let found = conversation(steps, turn);
    let all = found.entries.len();
    let entries: Vec<ConversationEntry> =
        found.entries.into_iter().skip(from).take(PAGE_ENTRIES).collect();
    ConversationPage { from, all, left_out: found.left_out, entries }
}

/// A page of the agents of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentsPage {
    /// The number of the last record
    seq: u64,
    /// The agents, parents before their children
    agents: Vec<AgentRow>,
    /// The number of further agents
    more: usize,
}

/// Returns the agents after one of them, parents before their children.
///
/// # Errors
/// [`store::Error`].
pub fn agents(
    dir: &RunDir,
    after: Option<&AgentId>,
    limit: usize,
) -> Result<AgentsPage, store::Error> {
    let watch = RunWatcher::open(dir.clone())?;
    let mut sent = SentRun::default();
    sent.update(watch.known(), watch.expected(), None);
    let rows = sent.rows();
    let is_later = |row: &&&AgentRow| after.is_none_or(|after| row.id.cmp_by_number(after).is_gt());
    let mut later: Vec<AgentRow> = rows.iter().filter(is_later).map(|row| (*row).clone()).collect();
    let more = later.len().saturating_sub(limit);
    later.truncate(limit);
    Ok(AgentsPage { seq: watch.known().run.seq, agents: later, more })
}

// The rows of a run's agents and its headline, and what has changed in them. Pure.

/// The most bytes of an agent's activity.
const MAX_ACTIVITY_BYTES: usize = 240;

/// The kind of an agent's status, as the page counts and colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// It needs a person, or is silent.
    Stuck,
    /// A turn runs.
    Running,
    /// Its turn waits for a process, a time or money.
    Queued,
    /// It waits for something else.
    Waiting,
    /// It ended with an error.
    Failed,
    /// It ended with a result, or was no longer needed.
    Finished,
}

/// An agent in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentRow {
    /// The id by which commands name it, such as `main.2`.
    pub id: AgentId,
    /// The state it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The state it began in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<StateName>,
    /// The kind of its status.
    pub kind: RowKind,
    /// Its activity, the reason for which it waits, or its end.
    pub text: String,
    /// The time of its last progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The cost of its turns.
    pub cost_usd: Usd,
    /// The tokens of the turn that runs.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// The item it was forked with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The headline of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunHeadline {
    run: RunId,
    status: &'static str,
    held: bool,
    seq: u64,
    started_at: Option<Timestamp>,
    counts: KindCounts,
    total_cost_usd: Usd,
    budget_usd: Option<Usd>,
    pause: Option<String>,
    limited_until: Option<Timestamp>,
    refused_tools: u32,
    questions: usize,
    parked: usize,
    scope_dir: String,
}

/// The number of agents of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct KindCounts {
    stuck: usize,
    running: usize,
    queued: usize,
    waiting: usize,
    failed: usize,
    finished: usize,
}

/// The rows of a run and its headline, as they were sent last.
#[derive(Debug, Default)]
pub struct SentRun {
    rows: HashMap<AgentId, AgentRow>,
    headline: Option<RunHeadline>,
}

/// The parts of a run that have changed.
#[derive(Debug, Default, PartialEq)]
pub struct RunChanges {
    /// The rows of the agents that are new or different, parents before their children.
    pub rows: Vec<AgentRow>,
    /// The headline, if it is different.
    pub headline: Option<RunHeadline>,
}

impl SentRun {
    /// Takes in a run as it is now, and as it is `expected` to be once it has taken the commands in its inbox; returns
    /// what has changed.
    pub fn update(
        &mut self,
        known: MonitoredRun<'_>,
        expected: &Run,
        started: Option<Timestamp>,
    ) -> RunChanges {
        let all = entries(known);
        let mut counts = [0; 6];
        let mut changes = RunChanges::default();
        for entry in &all {
            let row = row(known, entry);
            counts[row.kind as usize] += 1;
            if self.rows.get(&row.id) != Some(&row) {
                self.rows.insert(row.id.clone(), row.clone());
                changes.rows.push(row);
            }
        }
        changes.rows.sort_by(|row, other| row.id.cmp_by_number(&other.id));
        let headline = headline(known, expected, counts, started);
        if self.headline.as_ref() != Some(&headline) {
            self.headline = Some(headline.clone());
            changes.headline = Some(headline);
        }
        changes
    }

    /// Returns all rows, parents before their children.
    pub fn rows(&self) -> Vec<&AgentRow> {
        let mut rows: Vec<&AgentRow> = self.rows.values().collect();
        rows.sort_by(|row, other| row.id.cmp_by_number(&other.id));
        rows
    }

    /// Returns the headline.
    pub fn headline(&self) -> Option<&RunHeadline> {
        self.headline.as_ref()
    }
}

fn row(known: MonitoredRun<'_>, entry: &AgentEntry) -> AgentRow {
    let text = activity(known, entry, |until| format!("until {}", date(until)));
    AgentRow {
        id: entry.id.clone(),
        state: entry.state.clone(),
        began: entry.began.clone(),
        kind: kind(known, &entry.status),
        text: beginning(text, MAX_ACTIVITY_BYTES),
        since: entry.since,
        cost_usd: entry.spent,
        tokens: known.seen.get(&entry.id).map_or(0, |seen| seen.tokens),
        item: known.run.agents.get(&entry.id).and_then(item_of),
    }
}

fn kind(known: MonitoredRun<'_>, status: &TopAgentStatus) -> RowKind {
    match status.kind() {
        StatusFilter::Running => RowKind::Running,
        StatusFilter::Waiting if known.held && status.is_queued() => RowKind::Queued,
        StatusFilter::Waiting => RowKind::Waiting,
        StatusFilter::Stuck => RowKind::Stuck,
        StatusFilter::Failed => RowKind::Failed,
        StatusFilter::Finished => RowKind::Finished,
    }
}

fn headline(
    known: MonitoredRun<'_>,
    expected: &Run,
    counts: [usize; 6],
    started: Option<Timestamp>,
) -> RunHeadline {
    let run = known.run;
    let [stuck, running, queued, waiting, failed, finished] = counts;
    let questions =
        |agent: &Agent| usize::from(agent.question().is_some()) + agent.open_approvals().count();
    RunHeadline {
        run: run.workflow_id.clone(),
        status: run_standing(run, known.held),
        held: known.held,
        seq: run.seq,
        started_at: started,
        counts: KindCounts { stuck, running, queued, waiting, failed, finished },
        total_cost_usd: run.total_cost_usd,
        budget_usd: run.settings.budget_usd,
        pause: run.pause.as_ref().map(ToString::to_string),
        limited_until: run.limited(known.now),
        refused_tools: run.refused_tools.count(),
        questions: expected.agents.unordered().map(questions).sum(),
        parked: run.agents.unordered().filter(|agent| agent.parked_reason().is_some()).count(),
        scope_dir: run.scope_dir.clone(),
    }
}

#[cfg(test)]
mod agent_rows_tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;
    use crate::runtime::observing::agent_entries::MonitoredTurn;

    fn known<'run>(
        scene: &'run Scene,
        seen: &'run HashMap<AgentId, MonitoredTurn>,
    ) -> MonitoredRun<'run> {
        let now = Timestamp(1_000_000);
        MonitoredRun { run: &scene.run, held: true, is_shared: false, seen, now }
    }

    #[test]
    fn only_what_has_changed_is_sent() {
        let (seen, mut sent) = (HashMap::new(), SentRun::default());
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        let first = sent.update(known(&scene, &seen), &scene.run, None);
        let ids: Vec<&str> = first.rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["main", "main.1"]);
        assert!(first.headline.is_some());
        assert_eq!(sent.update(known(&scene, &seen), &scene.run, None), RunChanges::default());
        scene.take("main.1", result("<b>done</b>"));
        let next = sent.update(known(&scene, &seen), &scene.run, None);
        let [row] = next.rows.as_slice() else { panic!("one row: {next:?}") };
        assert_eq!((row.kind, row.text.as_str()), (RowKind::Finished, "<b>done</b>"));
        assert_eq!(next.headline.map(|headline| headline.counts.finished), Some(1));
        assert_eq!(sent.rows().len(), 2);
    }
}
