//! A running process of an agent program: its life, its files, writing to it, reading its stream, and stopping its turns.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raymond_model::id::{AgentId, SessionId};
use raymond_model::settings::{ProcessOptions, ProcessSwitch};
use raymond_model::usage::ProcessSpending;
use raymond_store::fault::FaultPoint;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::background::BackgroundTasks;
use crate::captured_output;
use crate::child::cgroup::ProcessCgroup;
use crate::child::orphans::OrphanProcess;
use crate::child::subreaper::ProcessPurpose;
use crate::child::{
    ChildEnvironment, ChildProcess, ChildProcessSpec, ProcessExit, ProcessGroup, orphans, subreaper,
};
use crate::claude::partial_message_removal;
use crate::command::EnvironmentMarker;
use crate::config_files::remove_configs;
use crate::dialogue::Dialogue;
use crate::plugin_process::{ENGINE, FACTS_ENGINE};
use crate::transcript::{OpenProcessFiles, ProcessFiles, StreamFollower};
use crate::worker_slot::WorkerSlot;
use crate::working_dirs::REPOSITORY;

/// Lifetime up to which a process that used no tools has had no time to leave another one behind.
const BRIEF_LIFETIME: Duration = Duration::from_secs(1);

/// Poll interval while waiting for something in the stream of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A process and its state.
#[derive(Debug)]
pub struct Worker {
    pub process: WorkerProcess,
    pub files: ProcessFiles,
    /// The follower of its stream.
    pub follower: StreamFollower,
    /// The files of its configurations; not known of a process that an earlier runtime started.
    pub configs: Vec<PathBuf>,
    /// The control group of it and of all its descendants, if there could be one.
    pub cgroup: Option<ProcessCgroup>,
    /// Byte of the stream at which its last turn begins.
    pub turn_from: u64,
    /// The options that it was started with, or last switched to.
    pub options: ProcessOptions,
    /// True if it may have been given further rules with an answer, which hold to its end: it serves no further turn.
    pub is_widened: bool,
    /// True if it may read the results of joins.
    pub reads_results: bool,
    /// The schema that it checks its answers against: it was started with it, and has it for all its turns.
    pub output: Option<Arc<str>>,
    /// Its spending so far.
    pub spent: ProcessSpending,
    /// The background tasks that live on in it between its turns.
    pub background: BackgroundTasks,
    /// True if it may have left processes behind that are out of reach of a signal to its group.
    pub may_leave_others: bool,
    pub session: SessionId,
    /// The pipe to its stdin.
    pub stdin: Option<ChildStdin>,
    /// Its lifetime, for counting; it ends before the slot is free.
    pub life: Option<Rc<ProcessLifetime>>,
    /// Its slot in the pool.
    pub(super) slot: Option<WorkerSlot>,
    /// The time at which it was started, or found.
    pub began: Instant,
}

/// The longest time that a process may take to read its input.
#[derive(Debug, Clone, Copy)]
pub struct WriteTimeouts {
    /// The maximum time.
    pub longest: Duration,
    /// The time from the moment that the run is asked to stop.
    pub grace: Duration,
}

impl WriteTimeouts {
    async fn wait_until_expired(self, stop: &mut watch::Receiver<StopLevel>) {
        let mut patient = stop.clone();
        let grace = async {
            match patient.wait_for(|&level| level > StopLevel::None).await.map(drop) {
                Ok(()) => sleep(self.grace).await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep(self.longest) => {}
            () = grace => {}
            () = stopped(stop) => {}
        }
    }
}

impl Worker {
    /// Creates a process whose stream is read from `position` on.
    ///
    /// # Errors
    /// The system's error for its stream.
    pub fn new(
        mut process: WorkerProcess,
        files: ProcessFiles,
        session: SessionId,
        position: u64,
    ) -> std::io::Result<Self> {
        let follower = StreamFollower::open(&files.stream, position)?;
        let follower = follower.with_stderr(files.stderr.clone());
        Ok(Self {
            session,
            stdin: process.take_stdin(),
            process,
            files,
            follower,
            configs: Vec::new(),
            cgroup: None,
            turn_from: position,
            options: ProcessOptions::default(),
            is_widened: false,
            reads_results: false,
            output: None,
            spent: ProcessSpending::default(),
            background: BackgroundTasks::default(),
            may_leave_others: false,
            slot: None,
            life: None,
            began: Instant::now(),
        })
    }

    /// Writes to its stdin. Returns false if that fails because it has ended or does not read.
    /// Returns early if the run is asked to stop.
    pub async fn write(
        &mut self,
        text: &str,
        stop: &mut watch::Receiver<StopLevel>,
        timeouts: WriteTimeouts,
    ) -> bool {
        let Some(mut stdin) = self.stdin.take() else { return false };
        let written = tokio::select! {
            // A finished write counts, even if the process ends right after it.
            biased;
            written = write_to(&mut stdin, text) => written.is_ok(),
            _ = self.process.exited() => false,
            () = timeouts.wait_until_expired(stop) => false,
        };
        if written {
            self.stdin = Some(stdin);
        }
        written
    }

    /// Asks it for changes, and returns whether it has made all of them before the time is up.
    pub async fn switch(
        &mut self,
        switches: &[ProcessSwitch],
        dialogue: &mut dyn Dialogue,
        stop: &mut watch::Receiver<StopLevel>,
        timeouts: WriteTimeouts,
    ) -> bool {
        if switches.is_empty() {
            return true;
        }
        let lines = dialogue.switch_lines(switches, self.turn_from);
        if !self.write(&lines, stop, timeouts).await {
            return false;
        }
        // The prompt is not sent yet, so that a stop need not wait.
        let level = stop.clone();
        let is_done = |dialogue: &dyn Dialogue| {
            dialogue.is_switched().is_some() || *level.borrow() != StopLevel::None
        };
        self.read_until(dialogue, stop, timeouts.longest, is_done).await;
        // They do not prove that the program has read the prompt.
        dialogue.progress_mut().events = 0;
        dialogue.is_switched() == Some(true)
    }

    /// Reads its stream until a condition holds, it has ended, or it has taken too long.
    pub async fn read_until(
        &mut self,
        dialogue: &mut dyn Dialogue,
        stop: &watch::Receiver<StopLevel>,
        longest: Duration,
        is_done: impl Fn(&dyn Dialogue) -> bool,
    ) {
        let deadline = Instant::now() + longest;
        while Instant::now() < deadline && *stop.borrow() != StopLevel::Now {
            let has_ended = self.process.has_ended();
            if self.follower.read(dialogue).is_err() || is_done(dialogue) || has_ended {
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Drops the partial messages of its last turn from the stream. A process that is alive and not known to be idle
    /// may still write, so its stream is left as it is. A stream that cannot be changed is left as well.
    pub fn compact(&mut self) {
        let is_alive = self.process.group().is_some_and(ProcessGroup::is_alive);
        if is_alive && self.stdin.is_none() {
            return;
        }
        let read = self.follower.position();
        if let Ok(moved) =
            partial_message_removal::compact(&self.files.stream, self.turn_from, read)
        {
            // If the position cannot be set, it stays behind the end of the stream, so nothing is read twice.
            let _ = self.follower.move_to(moved);
        }
    }

    /// Keeps only the end of its stderr.
    pub fn cut_back_stderr(&self) {
        if let Some(stderr) = &self.files.stderr {
            captured_output::cut_back_at_end(stderr);
        }
    }

    /// Notes whether it waits for a turn.
    pub(super) fn set_idle(&self, idle: bool) {
        if let Some(life) = &self.life {
            life.idle.set(idle);
        }
    }

    /// Notes that it is being ended: its slot is about to be free, and it does not count as at work.
    pub fn note_ending(&mut self) {
        self.set_idle(true);
        if let Some(slot) = &mut self.slot {
            slot.note_ending();
        }
    }

    /// Ends it with all its processes.
    pub async fn shut_down(
        mut self,
        marker: &EnvironmentMarker,
        stop: &watch::Receiver<StopLevel>,
        how: ShutdownMode,
    ) {
        self.end(marker, stop, how).await;
    }

    /// Ends it with all its processes, for a caller that still reads its output. It keeps its slot: the next process in
    /// that replaces its stderr.
    pub async fn end(
        &mut self,
        marker: &EnvironmentMarker,
        stop: &watch::Receiver<StopLevel>,
        how: ShutdownMode,
    ) {
        let how = if self.background.has_running() { ShutdownMode::Now } else { how };
        self.note_ending();
        if let Some(tasks) = self.background.names() {
            tracing::warn!(
                "{tasks} was still running, and is ended with the process {} that ran it",
                self.files.name
            );
        }
        drop(self.stdin.take());
        self.process.end(stop, how).await;
        self.cut_back_stderr();
        FaultPoint::RestGroup.reach();
        if let Some(group) = self.cgroup.take() {
            group.end(self.may_leave_others).await;
        }
        if self.may_leave_others || self.began.elapsed() > BRIEF_LIFETIME {
            orphans::sweep(marker, |process| process == self.files.name).await;
            subreaper::end_unclaimed(marker).await;
        }
        remove_configs(&self.configs);
        FaultPoint::RestAfter.reach();
    }

    /// Gives up its slot, and with it the file that has its stderr.
    pub fn free_slot(&mut self) {
        drop(self.life.take());
        drop(self.slot.take());
    }
}

async fn write_to(stdin: &mut ChildStdin, text: &str) -> std::io::Result<()> {
    stdin.write_all(text.as_bytes()).await?;
    stdin.flush().await
}

/// Writes to the stdin of a process. Returns false if there is none, or if that fails or takes too long; then nothing
/// more is written to it.
pub async fn write_within(stdin: &mut Option<ChildStdin>, text: &str, longest: Duration) -> bool {
    let Some(pipe) = stdin else { return false };
    let written = timeout(longest, write_to(pipe, text)).await.is_ok_and(|written| written.is_ok());
    if !written {
        *stdin = None;
    }
    written
}

// Counts the living processes, and those that have had time to take the memory they need.
//
// The machine's figures do not yet show what a process that has just been started will take. So only a process that
// has lived for a while counts as grown; all others are reckoned at their full size.

/// Age after which a process has taken most of its memory.
const GROWN_AGE: Duration = Duration::from_secs(5);

/// A process's lifetime, as long as this is held.
#[derive(Debug)]
pub struct ProcessLifetime {
    began: Instant,
    /// True while the process waits for a turn, and once it is being ended.
    pub(super) idle: Cell<bool>,
}

/// The lifetimes of all processes.
#[derive(Debug, Default)]
pub struct ProcessCounts(RefCell<Vec<Weak<ProcessLifetime>>>);

impl ProcessCounts {
    /// Adds a process.
    pub fn add(&self) -> Rc<ProcessLifetime> {
        let life = Rc::new(ProcessLifetime { began: Instant::now(), idle: Cell::new(false) });
        let mut lives = self.0.borrow_mut();
        lives.retain(|life| life.strong_count() > 0);
        lives.push(Rc::downgrade(&life));
        life
    }

    /// Returns the number of grown processes that have a turn.
    pub fn grown_at_work(&self) -> usize {
        let lives = self.0.borrow();
        let grown =
            |life: &Rc<ProcessLifetime>| !life.idle.get() && life.began.elapsed() > GROWN_AGE;
        lives.iter().filter_map(Weak::upgrade).filter(grown).count()
    }
}

// A running process of a turn: one this runtime started, or one an earlier runtime left running.

/// Poll interval of an adopted process: the system reports an end only to the parent.
const ADOPTED_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The longest time for a process to end by itself after its result.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time for a group to end after it is asked to.
pub(super) const TERM_GRACE: Duration = Duration::from_secs(2);

/// A process that runs, or has run, a turn.
#[derive(Debug)]
pub enum WorkerProcess {
    /// It was started by this runtime.
    Child(Box<ChildProcess>),
    /// It was found running.
    Adopted(OrphanProcess),
    /// It does not run; only its files are left.
    Gone,
}

/// The parameters of a process that is started.
#[derive(Debug)]
pub struct WorkerSpec {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// True if the working directory is in a worktree of an agent.
    pub in_tree: bool,
    /// The variables that are added to the caller's environment.
    pub environment: Vec<(String, String)>,
}

/// The way in which a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownMode {
    /// It may end by itself first.
    Patiently,
    /// It is asked to end.
    Soon,
    /// It is killed at once, because it would otherwise continue.
    Now,
}

impl WorkerProcess {
    /// Starts a process that continues if this runtime dies.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(start: WorkerSpec, files: OpenProcessFiles) -> std::io::Result<Self> {
        let mut added = Vec::new();
        if start.in_tree {
            added.push(("PWD".into(), start.cwd.clone().into_os_string()));
        }
        let added_variables = start.environment.into_iter();
        added.extend(added_variables.map(|(name, value)| (name.into(), value.into())));
        let mut removed = vec![ENGINE, FACTS_ENGINE];
        if start.in_tree {
            removed.extend(REPOSITORY);
        }
        let child = ChildProcess::start(ChildProcessSpec {
            program: start.program,
            arguments: start.arguments.into_iter().map(Into::into).collect(),
            cwd: Some(start.cwd),
            environment: ChildEnvironment::Inherited { removed, added },
            stdin: files.stdin.map_or_else(Stdio::piped, Stdio::from),
            stdout: Stdio::from(files.stdout),
            stderr: Stdio::from(files.stderr),
            purpose: ProcessPurpose::Turn,
            outlives_handle: true,
        })?;
        Ok(Self::Child(Box::new(child)))
    }

    /// Returns its stdin, if that is a pipe; it can be taken once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        match self {
            Self::Child(child) => child.take_stdin(),
            Self::Adopted(_) | Self::Gone => None,
        }
    }

    /// Returns whether it is known to have ended.
    pub fn has_ended(&mut self) -> bool {
        match self {
            Self::Child(child) => child.has_ended(),
            Self::Adopted(orphan) => !orphans::is_alive(orphan),
            Self::Gone => true,
        }
    }

    /// Returns its process group.
    pub fn group(&self) -> Option<ProcessGroup> {
        match self {
            Self::Child(child) => Some(child.group()),
            Self::Adopted(orphan) => Some(ProcessGroup::of(orphan.pid)),
            Self::Gone => None,
        }
    }

    /// Waits for its end. May be dropped and called again.
    pub async fn exited(&mut self) -> ProcessExit {
        match self {
            Self::Child(child) => child.exited().await,
            Self::Adopted(orphan) => {
                while orphans::is_alive(orphan) {
                    tokio::time::sleep(ADOPTED_POLL_INTERVAL).await;
                }
                ProcessExit::Unseen
            }
            Self::Gone => ProcessExit::Unseen,
        }
    }

    /// Ends its whole group: waits until it ends by itself if there is time, then asks, then kills. The waits are cut
    /// short when the run is asked to stop now.
    pub async fn end(&mut self, stop: &watch::Receiver<StopLevel>, how: ShutdownMode) {
        let Some(group) = self.group() else { return };
        let has_ended = how == ShutdownMode::Patiently && self.ends_within(END_TIMEOUT, stop).await;
        if !has_ended && how != ShutdownMode::Now && *stop.borrow() != StopLevel::Now {
            group.terminate();
            self.ends_within(TERM_GRACE, stop).await;
        }
        if group.is_alive() {
            group.kill();
            let _ = timeout(TERM_GRACE, self.exited()).await;
        }
    }

    /// Returns whether it ends within some time; does not wait if it has to end at once.
    async fn ends_within(&mut self, time: Duration, stop: &watch::Receiver<StopLevel>) -> bool {
        let mut stop = stop.clone();
        tokio::select! {
            ended = timeout(time, self.exited()) => ended.is_ok(),
            Ok(_) = stop.wait_for(|&level| level == StopLevel::Now) => false,
        }
    }
}

// Stops turns: all of a run, or that of one agent.

/// The urgency with which a running turn is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// The turn is not asked to stop.
    None,
    /// The turn may come to an end by itself, for as long as its supervision grants.
    Patiently,
    /// The turn ends, with a grace period.
    Soon,
    /// The turn ends at once.
    Now,
}

/// The stop levels of the turns of a run.
#[derive(Debug)]
pub struct CancellationTokens {
    all: watch::Sender<StopLevel>,
    turns: RefCell<HashMap<AgentId, watch::Sender<StopLevel>>>,
}

impl Default for CancellationTokens {
    fn default() -> Self {
        Self { all: watch::Sender::new(StopLevel::None), turns: RefCell::default() }
    }
}

impl CancellationTokens {
    /// Returns the stop level of an agent's turn, until [`forget`](Self::forget).
    pub fn of_turn(&self, agent: &AgentId) -> watch::Receiver<StopLevel> {
        self.turns.borrow_mut().entry(agent.clone()).or_insert_with(|| self.new_turn()).subscribe()
    }

    fn new_turn(&self) -> watch::Sender<StopLevel> {
        watch::Sender::new(*self.all.borrow())
    }

    /// Returns the stop level of the whole run.
    pub fn of_run(&self) -> watch::Receiver<StopLevel> {
        self.all.subscribe()
    }

    /// Returns the current stop level of the whole run.
    pub fn run_level(&self) -> StopLevel {
        *self.all.borrow()
    }

    /// Forgets the turn of an agent, which is over.
    pub fn forget(&self, agent: &AgentId) {
        self.turns.borrow_mut().remove(agent);
    }

    /// Tells the turn of one agent to end, with a grace period; a turn that is about to begin, too.
    pub fn stop(&self, agent: &AgentId) {
        let mut turns = self.turns.borrow_mut();
        raise(turns.entry(agent.clone()).or_insert_with(|| self.new_turn()), StopLevel::Soon);
    }

    /// Raises the stop level of all turns; never lowers it.
    pub fn stop_all(&self, how: StopLevel) {
        raise(&self.all, how);
        for turn in self.turns.borrow().values() {
            raise(turn, how);
        }
    }
}

/// Waits until the turn is asked to stop now or soon; forever, if the sender is gone.
pub async fn stopped(stop: &mut watch::Receiver<StopLevel>) {
    if stop.wait_for(|&level| level > StopLevel::Patiently).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Raises a stop level; never lowers it.
fn raise(level: &watch::Sender<StopLevel>, how: StopLevel) {
    level.send_if_modified(|now| {
        let more = *now < how;
        *now = how.max(*now);
        more
    });
}

#[cfg(test)]
mod cancellation_tests {
    use super::*;

    #[test]
    fn stop_affects_single_turn_and_stop_all_affects_every_turn() {
        let stops = CancellationTokens::default();
        let (first, second) = (AgentId::main().child(1), AgentId::main().child(2));
        let (level_first, level_second) = (stops.of_turn(&first), stops.of_turn(&second));
        stops.stop(&first);
        assert_eq!(
            (*level_first.borrow(), *level_second.borrow()),
            (StopLevel::Soon, StopLevel::None)
        );
        assert_eq!(stops.run_level(), StopLevel::None);
        stops.stop_all(StopLevel::Patiently);
        assert_eq!(
            (*level_first.borrow(), *level_second.borrow()),
            (StopLevel::Soon, StopLevel::Patiently)
        );
        stops.forget(&second);
        assert_eq!(*stops.of_turn(&second).borrow(), StopLevel::Patiently);
        let three = AgentId::main().child(3);
        stops.stop(&three);
        assert_eq!(*stops.of_turn(&three).borrow(), StopLevel::Soon, "it was to begin just then");
    }
}
