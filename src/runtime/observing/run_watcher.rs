//! Keeps the observation of a run up to date.
//!
//! It reads the run's journal, its lock, and the files of the running turns, and writes nothing.
//!
//! Cheap checks are frequent. The directory of the turns has a file for each turn ever made, so it is searched
//! only after a change, at most once a second, and for at most a twentieth of the time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::agent_entries::{MonitoredRun, MonitoredTurn, with_inbox};
use crate::actor::context::now;
use crate::domain::agent::Agent;
use crate::domain::event::Record;
use crate::domain::id::AgentId;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::turn::TurnId;
use crate::process::claude::stream::activity::ConversationItem;
use crate::process::claude::turn_transcript;
use crate::process::claude::turn_transcript::TurnTail;
use crate::store::engine_note::EngineNote;
use crate::store::follow::RunFollower;
use crate::store::layout::RunDir;
use crate::store::{Error, lock};

/// The shortest poll interval of the lock and of the directory of the turns.
const MIN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a poll, as a multiple of the time that the poll took.
const PAUSE_FACTOR: u32 = 20;

/// The time in milliseconds after which a further change of the directory has a new file time.
const TICK_MS: u64 = 1000;

/// The number of last messages that are kept of the selected agent.
const MESSAGES: usize = 200;

/// The observer of a run.
pub struct RunWatcher {
    dir: RunDir,
    follow: RunFollower,
    held: bool,
    /// The note of a run that an engine has.
    note: Option<EngineNote>,
    next_look: Instant,
    /// The change time of the directory of the turns at the last search; `None` if another search is due.
    steps: Option<Timestamp>,
    turns: HashMap<AgentId, (TurnId, TurnTail)>,
    seen: HashMap<AgentId, MonitoredTurn>,
    reading: Option<MessageTail>,
    /// The run once it has taken the commands in its inbox; `None` if that changes nothing.
    expected: Option<Run>,
    /// The last record and the change time of the inbox when that was found out; `None` if it is to be found out again.
    inbox: Option<(u64, Option<Timestamp>)>,
    /// The records that were read since they were taken last; `None` if nobody takes them.
    records: Option<Vec<Record>>,
}

/// The reader of an agent's messages.
struct MessageTail {
    agent: AgentId,
    turn: Option<TurnId>,
    tail: Option<TurnTail>,
}

impl RunWatcher {
    /// Starts to observe a run.
    ///
    /// # Errors
    /// An error in its directory.
    pub fn open(dir: RunDir) -> Result<Self, Error> {
        let follow = RunFollower::open(&dir)?;
        let mut watch = Self {
            dir,
            follow,
            held: false,
            note: None,
            next_look: Instant::now(),
            steps: None,
            turns: HashMap::new(),
            seen: HashMap::new(),
            reading: None,
            expected: None,
            inbox: None,
            records: None,
        };
        watch.refresh()?;
        Ok(watch)
    }

    /// Returns the current observation.
    pub fn known(&self) -> MonitoredRun<'_> {
        let is_shared = self.note.is_some();
        let (run, held, seen) = (self.follow.run(), self.held, &self.seen);
        MonitoredRun { run, held, is_shared, seen, now: now() }
    }

    /// Returns the run once it has taken the commands in its inbox.
    pub fn expected(&self) -> &Run {
        self.expected.as_ref().unwrap_or(self.follow.run())
    }

    /// Returns the run's directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the records that were read since the last call, and keeps those that come from now on.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.replace(Vec::new()).unwrap_or_default()
    }

    /// Checks everything that may have changed; returns whether anything has.
    ///
    /// # Errors
    /// An error in the run's directory.
    pub fn refresh(&mut self) -> Result<bool, Error> {
        let mut changed = false;
        let records = self.follow.advance()?;
        if !records.is_empty() {
            if let Some(kept) = &mut self.records {
                kept.extend(records);
            }
            let run = self.follow.run();
            let still_due = |turn: &TurnId| is_due(run, turn);
            self.turns.retain(|_, (turn, _)| still_due(turn));
            (self.steps, changed) = (None, true);
        }
        if self.next_look <= Instant::now() {
            let begin = Instant::now();
            let held = lock::is_held(&self.dir.lock())?.is_some();
            let note = EngineNote::of(self.dir.path())?;
            changed |= held != self.held || note != self.note;
            (self.held, self.note) = (held, note);
            changed |= self.look_at_inbox();
            changed |= self.look_for_turns().map_err(Error::io("read", &self.dir.steps()))?;
            self.next_look = Instant::now() + MIN_POLL_INTERVAL.max(begin.elapsed() * PAUSE_FACTOR);
        }
        changed |= self.look_at_turns();
        changed |= self.read();
        Ok(changed)
    }

    /// Looks at the inbox if it or the run has changed; returns whether the run will be another than it was expected to
    /// be.
    fn look_at_inbox(&mut self) -> bool {
        let (run, changed) = (self.follow.run(), turn_transcript::changed(&self.dir.inbox()));
        if self.held {
            self.inbox = None;
            return self.expected.take().is_some();
        }
        if self.inbox == Some((run.seq, changed)) {
            return false;
        }
        let is_settled = changed.is_none_or(|changed| now().since(changed) > TICK_MS);
        self.inbox = is_settled.then_some((run.seq, changed));
        let expected = match with_inbox(&self.dir, run, self.held) {
            Cow::Borrowed(_) => None,
            Cow::Owned(expected) => Some(expected),
        };
        let has_changed = expected.is_some() || self.expected.is_some();
        self.expected = expected;
        has_changed
    }

    /// Finds the due turns that have been begun; returns whether there are new ones.
    fn look_for_turns(&mut self) -> std::io::Result<bool> {
        let steps = self.dir.steps();
        let changed = turn_transcript::changed(&steps);
        if changed.is_some() && changed == self.steps {
            return Ok(false);
        }
        let settled = changed.filter(|changed| now().since(*changed) > TICK_MS);
        let run = self.follow.run();
        let due: HashMap<String, TurnId> = run
            .agents
            .values()
            .filter(|agent| !self.turns.contains_key(&agent.id))
            .map(|agent| (agent.turn_id().stem(), agent.turn_id()))
            .collect();
        let turns = &mut self.turns;
        let before = turns.len();
        turn_transcript::for_each_started(&steps, |stem| {
            if let Some(turn) = due.get(stem) {
                let look_on = || (turn.clone(), TurnTail::of(&steps, turn, 0));
                turns.entry(turn.agent.clone()).or_insert_with(look_on);
            }
        })?;
        self.steps = settled;
        Ok(self.turns.len() != before)
    }

    /// Reads the progress of the begun turns. An unreadable file shows nothing new.
    fn look_at_turns(&mut self) -> bool {
        let mut changed = false;
        self.seen.retain(|agent, _| self.turns.contains_key(agent));
        if let Some(note) = &self.note {
            let agents = self.follow.run().agents.values();
            let hosted = agents.filter(|agent| note.has_started(&agent.turn_id()));
            self.seen.extend(hosted.map(|agent| (agent.id.clone(), hosted_turn(agent))));
        }
        for (agent, (_, tail)) in &mut self.turns {
            changed |= tail.read_new().unwrap_or(false);
            let seen = MonitoredTurn {
                doing: tail.activity.doing.clone(),
                tokens: tail.activity.tokens,
                at_work: tail.activity.is_at_work(),
                progressed: tail.progressed,
            };
            self.seen.insert(agent.clone(), seen);
        }
        changed
    }

    /// Reads the messages of an agent from now on, or of none.
    pub fn read_messages_of(&mut self, agent: Option<&AgentId>) {
        if self.reading.as_ref().map(|reading| &reading.agent) == agent {
            return;
        }
        self.reading = agent.map(|agent| {
            let turn = turn_transcript::last(&self.dir.steps(), agent).ok().flatten();
            self.reading_of(agent, turn)
        });
        while self.read() {}
    }

    /// Returns the last messages of the selected agent.
    pub fn messages(&self) -> impl Iterator<Item = &ConversationItem> {
        let tail = self.reading.as_ref().and_then(|reading| reading.tail.as_ref());
        tail.into_iter().flat_map(|tail| &tail.activity.items)
    }

    fn reading_of(&self, agent: &AgentId, turn: Option<TurnId>) -> MessageTail {
        let steps = self.dir.steps();
        let tail = turn.as_ref().map(|turn| TurnTail::of(&steps, turn, MESSAGES));
        MessageTail { agent: agent.clone(), turn, tail }
    }

    /// Reads further, in the agent's next turn once that has begun.
    fn read(&mut self) -> bool {
        let Some(reading) = &self.reading else { return false };
        let started = self.turns.get(&reading.agent).map(|(turn, _)| turn);
        if started.is_some() && started != reading.turn.as_ref() {
            self.reading = Some(self.reading_of(&reading.agent, started.cloned()));
        }
        let tail = self.reading.as_mut().and_then(|reading| reading.tail.as_mut());
        tail.is_some_and(|tail| tail.read_new().unwrap_or(false))
    }
}

/// Returns what is known of a turn at a host: where it runs.
fn hosted_turn(agent: &Agent) -> MonitoredTurn {
    let host = agent.spec.working_dir.home.host.as_ref();
    MonitoredTurn {
        doing: host.map(|host| format!("runs on {host}")),
        tokens: 0,
        // Its progress is not seen from here, so it does not count as silent.
        at_work: true,
        progressed: agent.since,
    }
}

fn is_due(run: &Run, turn: &TurnId) -> bool {
    run.agents.get(&turn.agent).is_some_and(|agent| agent.turn_id() == *turn)
}
