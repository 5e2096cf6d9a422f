//! The stream of an agent's conversation: its last turn, as it is written.
//!
//! The agents of a run, in pages.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::id::AgentId;
use crate::domain::turn::TurnId;
use crate::process::stream::activity::ConversationItem;
use crate::process::turn_tail::{self, TurnTail};
use crate::process::turn_transcript::TurnTranscript;
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::serve::agent_rows::{AgentRow, ToldRun};
use crate::serve::conversation::{ConversationEntry, TurnConversation};
use crate::serve::feed::FeedEvent;
use crate::serve::feed::FeedSource;
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
        let last = turn_tail::last(&self.steps, &self.agent).ok().flatten();
        let Some(last) = last.filter(|last| self.turn.as_ref().is_none_or(|(one, _)| one != last))
        else {
            return false;
        };
        let tail = TurnTail::of(&self.steps, &last, 1);
        self.turn = Some((last, tail));
        (self.conversation, self.is_due) = (TurnConversation::default(), true);
        true
    }

    /// Reads the entries anew if there may be more; returns the place of the first new one.
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

    fn seq(&self) -> u64 {
        0
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
    let _ = find().map(|stream| {
        stream.for_each_line(|line| {
            found.take(line);
            Ok(())
        })
    });
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
    let mut told = ToldRun::default();
    told.update(watch.known(), watch.expected(), None);
    let rows = told.rows();
    let is_later = |row: &&&AgentRow| after.is_none_or(|after| row.id.cmp_by_number(after).is_gt());
    let mut later: Vec<AgentRow> = rows.iter().filter(is_later).map(|row| (*row).clone()).collect();
    let more = later.len().saturating_sub(limit);
    later.truncate(limit);
    Ok(AgentsPage { seq: watch.known().run.seq, agents: later, more })
}
