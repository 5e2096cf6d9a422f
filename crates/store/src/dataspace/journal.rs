//! The journal of the facts: one writer at a time appends changes, and each process folds what it has not read yet.
//!
//! A line is framed like a record of a run's journal, with the number of its change. A last line without its end is
//! torn and was never acknowledged: readers leave it, and the next writer cuts it off. Any other line that is not a
//! change, or has no proof, is ignored with a warning until its fact is changed. When the changes have outgrown the
//! facts that the file begins with, a new file takes its place.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use raymond_model::id::{AgentId, RunId};
use raymond_model::json_mistake::placed_mistake;
use serde::{Deserialize, Serialize};

use super::fact::{QueuedFact, UNPROVEN};
use super::{Dataspace, damaged, fact};
use crate::fault::FaultPoint;
use crate::plain_file::if_there;
use crate::proof::ProofKey;
use crate::record::{FORMAT, RecordError};
use crate::{Error, files, plain_file, record};

/// The most that is read at once, in bytes.
const MAX_READ: u64 = 1024 * 1024 * 1024;

/// The poll interval of the lock for a caller that may be asked to end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The journal as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct FactJournal {
    file: Option<File>,
    /// The end of the last whole line, in bytes.
    end: u64,
    /// The end of the changes that the file begins with, in bytes.
    start: u64,
    /// Their number.
    first: Option<u64>,
    lines: u64,
    pub(super) state: FactState,
    pub(super) ignored: Vec<IgnoredLine>,
    /// True if a change is missing in front of another one, or cannot be read.
    has_gap: bool,
    /// Another number for each content.
    pub(super) version: u64,
}

/// A line that is not believed.
#[derive(Debug, Default)]
pub(super) struct IgnoredLine {
    pub(super) warning: String,
    name: LineName,
    /// The line, if it is a whole one: another user may have written it.
    text: Option<String>,
}

/// The names in a line that nobody has proven.
#[derive(Debug, Default, Deserialize)]
struct LineName {
    #[serde(default)]
    label: String,
    #[serde(default)]
    key: String,
}

impl IgnoredLine {
    /// Returns what is known of something that cannot be changed here.
    pub(super) fn of(warning: String) -> Self {
        Self { warning, ..Self::default() }
    }

    pub(super) fn is_about(&self, label: &str, key: &str) -> bool {
        (&*self.name.label, &*self.name.key) == (label, key)
    }
}

impl FactJournal {
    /// Reads the lines that were appended since, or the whole file if it is another one.
    fn advance(&mut self, path: &Path, key: Option<&ProofKey>) -> Result<(), Error> {
        let failed = || Error::io("read", path);
        let Some(there) = if_there(path.symlink_metadata()).map_err(failed())? else {
            self.replace(FactState::default(), Vec::new());
            return Ok(());
        };
        let id = |found: &std::fs::Metadata| (found.dev(), found.ino());
        let opened = self.file.as_ref().map(File::metadata).transpose().map_err(failed())?;
        if opened.is_none_or(|opened| id(&opened) != id(&there) || opened.len() < self.end) {
            let file = plain_file::open(path).map_err(Error::io("open", path))?;
            self.replace(FactState::default(), Vec::new());
            self.file = Some(file);
        }
        let Some(file) = &self.file else { return Ok(()) };
        let length = file.metadata().map_err(failed())?.len();
        if length == self.end {
            return Ok(());
        }
        let bytes = read(file, self.end, length).map_err(failed())?;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let whole = line.strip_suffix(b"\n");
            if let Some(found) = record::newer_format(line) {
                return Err(Error::Newer { path: path.to_owned(), found, known: FORMAT });
            }
            let Some(whole) = whole else { break };
            self.end += line.len() as u64;
            self.add(whole, key, path);
        }
        self.version += 1;
        Ok(())
    }

    fn add(&mut self, line: &[u8], key: Option<&ProofKey>, path: &Path) {
        self.lines += 1;
        let framed = record::framed(line).map_err(|flaw| flaw.to_string());
        let change = framed.and_then(|(seq, text)| {
            if key.is_some_and(|key| !record::is_proven(text, key)) {
                return Err(UNPROVEN.to_owned());
            }
            if seq < self.state.last {
                return Err(RecordError::Order { found: seq }.to_string());
            }
            let change: NamedChange =
                serde_json::from_str(text).map_err(|error| placed_mistake(&error))?;
            if change.is_sound(seq) { Ok((seq, change)) } else { Err("it is not sound".to_owned()) }
        });
        match change {
            Ok((seq, change)) => {
                self.has_gap |= self.first.is_some() && seq > self.state.last.saturating_add(1);
                self.first.get_or_insert(seq);
                self.ignored.retain(|line| !line.is_about(&change.label, &change.key));
                self.state.apply(seq, change);
            }
            Err(why) => {
                self.has_gap = true;
                let text = String::from_utf8_lossy(line);
                let name = serde_json::from_str(&text).unwrap_or_default();
                let text = record::framed(line).is_ok().then(|| text.into_owned());
                let place = format!("{}:{}", path.display(), self.lines);
                self.ignored.push(IgnoredLine { warning: damaged(&place, &why), name, text });
            }
        }
        if self.first.is_none_or(|first| first == self.state.last) {
            self.start = self.end;
        }
    }

    /// Takes a state that no journal has.
    pub(super) fn replace(&mut self, state: FactState, ignored: Vec<IgnoredLine>) {
        let is_other = self.file.is_some() || self.state != state;
        let version = self.version + u64::from(is_other);
        *self = Self { state, ignored, version, ..Self::default() };
    }

    /// Returns the number of the last change; 0 if an earlier change is missing.
    pub(super) fn last_whole(&self) -> u64 {
        if self.has_gap { 0 } else { self.state.last }
    }
}

/// Returns the text of changes, each a line with the number of its change.
pub(super) fn text<'change>(
    changes: impl IntoIterator<Item = (u64, &'change NamedChange)>,
    key: Option<&ProofKey>,
    path: &Path,
) -> Result<String, Error> {
    let mut text = String::new();
    for (seq, change) in changes {
        let line = record::frame(seq, change, key).map_err(std::io::Error::other);
        text.push_str(&line.map_err(Error::io("write", path))?);
        text.push('\n');
    }
    Ok(text)
}

fn read(file: &File, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
    let length = to - from;
    if length > MAX_READ {
        return Err(std::io::Error::other(format!("it is longer than {MAX_READ} bytes")));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    match file.read_exact_at(&mut bytes, from) {
        // It has been cut off meanwhile.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Vec::new()),
        read => read.map(|()| bytes),
    }
}

/// Opens the journal to append to it.
fn open_end(path: &Path) -> Result<File, Error> {
    let file = plain_file::open_with(path, files::private().append(true));
    file.map_err(Error::io("open", path))
}

/// The journal in the hands of its one writer.
pub(super) struct FactWriter<'space> {
    pub(super) space: &'space Dataspace,
    _lock: File,
}

impl Dataspace {
    /// Returns the journal, read up to its present end.
    pub(super) fn advanced(&self) -> Result<MutexGuard<'_, FactJournal>, Error> {
        let mut journal = self.unread();
        journal.advance(&self.path_of_journal(), self.key.as_ref())?;
        Ok(journal)
    }

    /// Returns the journal as far as it was read.
    pub(super) fn unread(&self) -> MutexGuard<'_, FactJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other process writes, and cuts off a torn line that the last writer left.
    pub(super) fn write(&self) -> Result<FactWriter<'_>, Error> {
        let written = self.write_within(None)?;
        written.ok_or_else(|| Error::io("lock", &self.lock())(ErrorKind::TimedOut.into()))
    }

    /// Waits until no other process writes, like [`write`](Self::write), but with a time limit; `None` if it passes.
    pub(super) fn write_within(
        &self,
        longest: Option<Duration>,
    ) -> Result<Option<FactWriter<'_>>, Error> {
        files::make_dir(&self.path)?;
        let path = self.lock();
        let lock = files::open_lock(&path)?;
        if !self.wait_for(&lock, longest).map_err(Error::io("lock", &path))? {
            return Ok(None);
        }
        self.migrate()?;
        let writer = FactWriter { space: self, _lock: lock };
        writer.recover()?;
        Ok(Some(writer))
    }

    /// Waits until the lock is free or the caller has to end. Returns false if it takes longer.
    fn wait_for(&self, lock: &File, longest: Option<Duration>) -> std::io::Result<bool> {
        if self.ends.is_none() && longest.is_none() {
            return lock.lock().map(|()| true);
        }
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock)
                    if longest.is_some_and(|time| start.elapsed() > time) =>
                {
                    return Ok(false);
                }
                Err(TryLockError::WouldBlock) => self.pause(POLL_INTERVAL)?,
            }
        }
    }

    /// Waits for a moment.
    ///
    /// # Errors
    /// An error of the kind `Interrupted` if the caller has to end.
    pub(super) fn pause(&self, time: Duration) -> std::io::Result<()> {
        let start = Instant::now();
        loop {
            if self.ends.as_ref().is_some_and(|ends| ends.load(Ordering::Relaxed)) {
                return Err(ErrorKind::Interrupted.into());
            }
            if start.elapsed() >= time {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Begins a journal in place of any other, with changes that make this state, all of them durable.
    pub(super) fn begin(&self, state: &FactState, kept: &[IgnoredLine]) -> Result<(), Error> {
        let path = self.path_of_journal();
        let changes: Vec<NamedChange> = state.changes().collect();
        let changes = changes.iter().map(|change| (state.last, change));
        let mut text = text(changes, self.key.as_ref(), &path)?;
        for line in kept.iter().filter_map(|line| line.text.as_ref()) {
            text.extend([line, "\n"]);
        }
        files::replace(&path, text.as_bytes())
    }
}

impl FactWriter<'_> {
    /// Cuts off a torn line, and rewrites a journal that has grown long.
    pub(super) fn recover(&self) -> Result<(), Error> {
        let path = self.space.path_of_journal();
        let journal = self.space.advanced()?;
        let Some(file) = &journal.file else { return self.space.begin(&FactState::default(), &[]) };
        let failed = || Error::io("write", &path);
        if file.metadata().map_err(failed())?.len() > journal.end {
            open_end(&path)?.set_len(journal.end).map_err(failed())?;
        }
        if journal.end - journal.start > self.space.room.max(journal.start) {
            self.space.begin(&journal.state, &journal.ignored)?;
        }
        Ok(())
    }

    /// Makes what others have appended durable, too: one of them may have been killed before it did.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let path = self.space.path_of_journal();
        open_end(&path)?.sync_data().map_err(Error::io("sync", &path))
    }

    /// Appends the next change, which is durable when this returns.
    pub(super) fn append(&self, change: &NamedChange) -> Result<(), Error> {
        let last = self.space.advanced()?.state.last;
        self.write(&[(last.saturating_add(1), change)], true)?;
        FaultPoint::DataspaceApplied.reach();
        Ok(())
    }

    /// Appends changes; those that are durable elsewhere need not be durable here.
    pub(super) fn write(
        &self,
        changes: &[(u64, &NamedChange)],
        durable: bool,
    ) -> Result<(), Error> {
        let path = self.space.path_of_journal();
        let text = text(changes.iter().copied(), self.space.key.as_ref(), &path)?;
        let mut file = open_end(&path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| {
            if !durable {
                return Ok(());
            }
            FaultPoint::DataspaceWritten.reach();
            file.sync_data()?;
            FaultPoint::DataspaceNoted.reach();
            Ok(())
        });
        written.map_err(Error::io("append to", &path))?;
        self.space.advanced().map(drop)
    }
}

// The facts as a fold over their changes, and the steps of programs that change facts.
//
// A step that runs again after a crash changes no fact a second time: the change and the mark of its step are one
// record. An agent has one mark, of its last step that changed a fact, and the facts that its last steps have taken.
// Both are dropped when its run ends. Pure.

/// A step of an agent: it may assert, retract or take one fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataspaceStep {
    pub run: RunId,
    pub agent: AgentId,
    /// The agent's step, counted from 1.
    pub step: u64,
}

impl DataspaceStep {
    /// Returns the name of a step's agent. A run's id has no `~`, an agent's no `-`.
    fn agent_name(&self) -> String {
        format!("{}~{}", self.run, self.agent.file_name())
    }
}

/// The operation of a step on a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FactOperation {
    Assert,
    Retract,
}

/// The mark of a step that changes a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IdempotencyKey {
    pub(super) step: u64,
    #[serde(rename = "deed")]
    pub(super) operation: FactOperation,
    pub(super) label: String,
    pub(super) key: String,
    /// The number of the fact: of its first assertion, or of the fact that is removed.
    pub(super) seq: u64,
}

/// A change of the facts, as the journal has it and machines share it; `F` is a fact in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", bound(deserialize = "F: Deserialize<'de>"))]
pub(super) enum LoggedChange<F = QueuedFact> {
    /// The fact is asserted, by a step or by somebody else.
    Asserted {
        fact: F,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<DataspaceStep>,
    },
    /// The fact with this number is retracted.
    Retracted {
        seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<DataspaceStep>,
    },
    /// The fact is taken by a step. The next value holds then, if there is one.
    Claimed {
        fact: F,
        step: DataspaceStep,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<F>,
    },
    /// The run has ended: its marks and claims are removed. The change has no label and no key.
    RunEnded { run: RunId },
    /// Nothing.
    Reread {},
    /// The mark of an agent, where a journal begins again. It is not shared.
    Marked { agent: String, mark: IdempotencyKey },
    /// A fact that a step of an agent has taken, where a journal begins again. It is not shared.
    Taken { agent: String, step: u64, fact: F },
}

/// A change, with the label and the key of its fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedChange {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) change: LoggedChange,
}

impl NamedChange {
    pub(super) fn new(label: &str, key: &str, change: LoggedChange) -> Self {
        Self { label: label.to_owned(), key: key.to_owned(), change }
    }

    /// Returns the step that makes the change.
    fn step(&self) -> Option<&DataspaceStep> {
        match &self.change {
            LoggedChange::Asserted { step, .. } | LoggedChange::Retracted { step, .. } => {
                step.as_ref()
            }
            LoggedChange::Claimed { step, .. } => Some(step),
            _ => None,
        }
    }

    /// Returns the mark that the change of a step leaves.
    fn mark(&self, step: u64) -> Option<IdempotencyKey> {
        let (operation, seq) = match &self.change {
            LoggedChange::Asserted { fact, .. } => (FactOperation::Assert, fact.seq),
            LoggedChange::Retracted { seq, .. } => (FactOperation::Retract, *seq),
            _ => return None,
        };
        let (label, key) = (self.label.clone(), self.key.clone());
        Some(IdempotencyKey { step, operation, label, key, seq })
    }

    /// Returns whether the change with this number may be applied: its fact has the label and key that the change
    /// names, and is valid.
    pub(super) fn is_sound(&self, seq: u64) -> bool {
        let Self { label, key, change } = self;
        let is_named = || fact::of_label(label).is_ok() && fact::of_key(key).is_ok();
        let is_fact = |fact: &QueuedFact| {
            (&fact.label, &fact.key) == (label, key)
                && fact::check_value(label, key, &fact.value).is_ok()
                && fact.last_seq() <= seq
        };
        match change {
            LoggedChange::Asserted { fact, .. } | LoggedChange::Taken { fact, .. } => {
                is_named() && is_fact(fact)
            }
            LoggedChange::Retracted { .. } => is_named(),
            LoggedChange::Claimed { fact, next, .. } => {
                is_named() && is_fact(fact) && next.as_ref().is_none_or(is_fact)
            }
            LoggedChange::RunEnded { .. }
            | LoggedChange::Reread {}
            | LoggedChange::Marked { .. } => true,
        }
    }
}

/// What the steps of an agent have done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AgentSteps {
    pub(super) mark: Option<IdempotencyKey>,
    /// The taken facts, by step.
    pub(super) claims: BTreeMap<u64, QueuedFact>,
}

/// What all changes together make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FactState {
    /// The facts that hold, by label and key.
    pub(super) facts: BTreeMap<String, BTreeMap<String, QueuedFact>>,
    /// The steps of programs, by the name of their agent.
    pub(super) agents: BTreeMap<String, AgentSteps>,
    /// The number of the last change.
    pub(super) last: u64,
}

impl FactState {
    /// Returns the fact that holds.
    pub(super) fn held(&self, label: &str, key: &str) -> Option<&QueuedFact> {
        self.facts.get(label)?.get(key)
    }

    /// Iterates over all facts that hold, by label and key.
    pub(super) fn all(&self) -> impl Iterator<Item = &QueuedFact> {
        self.facts.values().flat_map(BTreeMap::values)
    }

    /// Returns the mark of a step if it was about the same operation.
    pub(super) fn marked(
        &self,
        step: Option<&DataspaceStep>,
        operation: FactOperation,
        label: &str,
        key: &str,
    ) -> Option<&IdempotencyKey> {
        let step = step?;
        let mark = self.agents.get(&step.agent_name())?.mark.as_ref()?;
        let wanted = (step.step, operation, label, key);
        ((mark.step, mark.operation, &*mark.label, &*mark.key) == wanted).then_some(mark)
    }

    /// Returns the fact that a step has taken.
    pub(super) fn claimed(&self, step: &DataspaceStep) -> Option<&QueuedFact> {
        self.agents.get(&step.agent_name())?.claims.get(&step.step)
    }

    /// Returns whether a run has left marks or claims.
    pub(super) fn has_steps_of(&self, run: &RunId) -> bool {
        self.agents.keys().any(|agent| is_of(agent, run))
    }

    pub(super) fn put(&mut self, fact: QueuedFact) {
        self.facts.entry(fact.label.clone()).or_default().insert(fact.key.clone(), fact);
    }

    fn remove(&mut self, label: &str, key: &str) {
        if let Some(facts) = self.facts.get_mut(label) {
            facts.remove(key);
            if facts.is_empty() {
                self.facts.remove(label);
            }
        }
    }

    /// Applies the next change. A later step of an agent settles the earlier ones.
    pub(super) fn apply(&mut self, seq: u64, named: NamedChange) {
        if let Some(step) = named.step() {
            let agent = self.agents.entry(step.agent_name()).or_default();
            agent.claims = agent.claims.split_off(&step.step);
            agent.mark = named.mark(step.step).or_else(|| agent.mark.take());
        }
        let NamedChange { label, key, change } = named;
        match change {
            LoggedChange::Asserted { fact, .. } => self.put(fact),
            LoggedChange::Retracted { .. } => self.remove(&label, &key),
            LoggedChange::Claimed { fact, step, next } => {
                match next {
                    Some(next) => self.put(next),
                    None => self.remove(&label, &key),
                }
                self.steps_of(step.agent_name()).claims.insert(step.step, fact);
            }
            LoggedChange::RunEnded { run } => self.agents.retain(|agent, _| !is_of(agent, &run)),
            LoggedChange::Reread {} => {}
            LoggedChange::Marked { agent, mark } => self.steps_of(agent).mark = Some(mark),
            LoggedChange::Taken { agent, step, fact } => {
                self.steps_of(agent).claims.insert(step, fact);
            }
        }
        self.last = seq;
    }

    pub(super) fn steps_of(&mut self, agent: String) -> &mut AgentSteps {
        self.agents.entry(agent).or_default()
    }

    /// Returns changes that make all of this, to begin a journal with.
    pub(super) fn changes(&self) -> impl Iterator<Item = NamedChange> {
        let steps = self.agents.iter().flat_map(|(agent, AgentSteps { mark, claims })| {
            let mark = mark.iter().map(|mark| {
                let change = LoggedChange::Marked { agent: agent.clone(), mark: mark.clone() };
                NamedChange::new("", "", change)
            });
            let claims = claims.iter().map(|(step, fact)| {
                let (agent, step) = (agent.clone(), *step);
                let change = LoggedChange::Taken { agent, step, fact: fact.clone() };
                NamedChange::new(&fact.label, &fact.key, change)
            });
            mark.chain(claims)
        });
        let facts = self.all().map(|fact| {
            let change = LoggedChange::Asserted { fact: fact.clone(), step: None };
            NamedChange::new(&fact.label, &fact.key, change)
        });
        std::iter::once(NamedChange::new("", "", LoggedChange::Reread {})).chain(steps).chain(facts)
    }
}

fn is_of(agent: &str, run: &RunId) -> bool {
    agent.strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('~'))
}
