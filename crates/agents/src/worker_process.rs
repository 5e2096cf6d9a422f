//! A running process of a turn: one this runtime started, or one an earlier runtime left running.
//!
//! Stops turns: all of a run, or that of one agent.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::child::group::{ProcessExit, ProcessGroup};
use crate::child::orphans::{self, OrphanProcess};
use crate::child::subreaper::ProcessPurpose;
use crate::child::{ChildEnvironment, ChildProcess, ChildProcessSpec};
use crate::helper_environment::{ENGINE, FACTS_ENGINE};
use crate::transcript::OpenProcessFiles;
use crate::working_dirs::REPOSITORY;
use raymond_model::id::AgentId;

/// Poll interval of an adopted process: the system reports an end only to the parent.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The longest time for a process to end by itself after its result.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time for a group to end after it is asked to.
pub(super) const TERM_GRACE: Duration = Duration::from_secs(2);

/// A process that runs, or has run, a turn.
#[derive(Debug)]
pub enum WorkerProcess {
    /// It was started by this runtime.
    Own(Box<ChildProcess>),
    /// It was found running.
    Adopted(OrphanProcess),
    /// It does not run; only its files are left.
    Gone,
}

/// The parameters of a process that is started.
#[derive(Debug)]
pub struct WorkerSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
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
        let own = start.environment.into_iter();
        added.extend(own.map(|(name, value)| (name.into(), value.into())));
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
        Ok(Self::Own(Box::new(child)))
    }

    /// Returns its stdin, if that is a pipe; it can be taken once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        match self {
            Self::Own(child) => child.take_stdin(),
            Self::Adopted(_) | Self::Gone => None,
        }
    }

    /// Returns whether it is known to have ended.
    pub fn has_ended(&mut self) -> bool {
        match self {
            Self::Own(child) => child.has_ended(),
            Self::Adopted(orphan) => !orphans::is_alive(orphan),
            Self::Gone => true,
        }
    }

    /// Returns its process group.
    pub fn group(&self) -> Option<ProcessGroup> {
        match self {
            Self::Own(child) => Some(child.group()),
            Self::Adopted(orphan) => Some(ProcessGroup::of(orphan.pid)),
            Self::Gone => None,
        }
    }

    /// Waits for its end. May be dropped and called again.
    pub async fn exited(&mut self) -> ProcessExit {
        match self {
            Self::Own(child) => child.exited().await,
            Self::Adopted(orphan) => {
                while orphans::is_alive(orphan) {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                ProcessExit::Unseen
            }
            Self::Gone => ProcessExit::Unseen,
        }
    }

    /// Ends its whole group: waits for its own end if there is time, then asks, then kills. The waits are cut short
    /// when the run is told to stop now.
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

    /// Returns whether it ends within some time; does not wait if it is told to end at once.
    async fn ends_within(&mut self, time: Duration, stop: &watch::Receiver<StopLevel>) -> bool {
        let mut stop = stop.clone();
        tokio::select! {
            ended = timeout(time, self.exited()) => ended.is_ok(),
            Ok(_) = stop.wait_for(|&level| level == StopLevel::Now) => false,
        }
    }
}

/// The urgency with which a running turn is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// The turn is not told to stop.
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

/// Waits until the turn is told to stop now or soon; for ever, if the sender is gone.
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
        let (one, two) = (AgentId::main().child(1), AgentId::main().child(2));
        let (level_one, level_two) = (stops.of_turn(&one), stops.of_turn(&two));
        stops.stop(&one);
        assert_eq!((*level_one.borrow(), *level_two.borrow()), (StopLevel::Soon, StopLevel::None));
        assert_eq!(stops.run_level(), StopLevel::None);
        stops.stop_all(StopLevel::Patiently);
        assert_eq!(
            (*level_one.borrow(), *level_two.borrow()),
            (StopLevel::Soon, StopLevel::Patiently)
        );
        stops.forget(&two);
        assert_eq!(*stops.of_turn(&two).borrow(), StopLevel::Patiently);
        let three = AgentId::main().child(3);
        stops.stop(&three);
        assert_eq!(*stops.of_turn(&three).borrow(), StopLevel::Soon, "it was to begin just then");
    }
}
