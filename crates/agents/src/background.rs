//! The background tasks of a process, and the moment at which a turn is complete. Pure.
//!
//! Sub-agents and commands may continue after the result of a turn. When one ends, the program may begin a separate turn
//! to tell the model, with a separate result. So a turn is over when it has a result, no task runs, and no such turn is
//! pending.

use raymond_model::turn_options::BackgroundWork;

/// The number of tasks that a message names.
const SHOWN_TASKS: usize = 5;

/// A task that runs in the background of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundTask {
    /// The id that the program gave it.
    pub id: String,
    /// True if it is a sub-agent, not a command.
    pub is_agent: bool,
    /// The description that the model gave it.
    pub description: String,
}

/// The background tasks of a process and the state of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackgroundTasks {
    running: Vec<BackgroundTask>,
    /// All running tasks are reported at each change, so single starts add no information.
    reports_all: bool,
    /// The ids of the tasks that an earlier turn has kept: a turn waits only for its own tasks.
    inherited: Vec<String>,
    due: DueTurns,
}

/// The signs by which a further turn is known to run or to be due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DueTurns {
    /// The session says that it is running.
    session_runs: bool,
    /// A turn has begun since the last result.
    turn_runs: bool,
    /// A task has ended since the last result: a turn is due that tells the model.
    notice_is_due: bool,
    /// The turns that are queued, by the last result.
    queued: u64,
}

/// The remainder of a turn that has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnRemainder {
    /// The turn is complete.
    Nothing,
    /// A further turn is announced, but has not begun. If it does not begin soon, none will.
    Announced,
    /// A further turn runs.
    Turn,
    /// Background tasks run.
    Tasks,
}

impl BackgroundTasks {
    /// Returns the tasks that are left for the next turn of the process.
    pub fn left_running(&self) -> Self {
        let inherited = self.running.iter().map(|task| task.id.clone()).collect();
        Self {
            running: self.running.clone(),
            reports_all: self.reports_all,
            inherited,
            ..Self::default()
        }
    }

    /// Returns the tasks that run.
    pub fn running(&self) -> &[BackgroundTask] {
        &self.running
    }

    /// Returns whether the session says that it is running.
    pub fn session_runs(&self) -> bool {
        self.due.session_runs
    }

    /// Returns whether any task runs.
    pub fn has_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns the running tasks for people; `None` if there are none.
    pub fn names(&self) -> Option<String> {
        let name = |task: &BackgroundTask| {
            let kind = if task.is_agent { "sub-agent" } else { "background command" };
            format!("the {kind} \"{}\"", task.description)
        };
        let names: Vec<String> = self.running.iter().take(SHOWN_TASKS).map(name).collect();
        let more = self.running.len().saturating_sub(SHOWN_TASKS);
        match (names.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(names.join(", ")),
            (false, more) => Some(format!("{} and {more} more", names.join(", "))),
        }
    }

    /// Returns whether a task runs that the turn waits for.
    pub fn has_awaited(&self, background: BackgroundWork) -> bool {
        let is_awaited = |task: &BackgroundTask| match background {
            BackgroundWork::Wait => true,
            BackgroundWork::Keep => task.is_agent,
            BackgroundWork::End => false,
        };
        let is_of_turn = |task: &&BackgroundTask| !self.inherited.contains(&task.id);
        self.running.iter().filter(is_of_turn).any(is_awaited)
    }

    /// Returns the rest of a turn after its result.
    pub fn remainder(&self, background: BackgroundWork) -> TurnRemainder {
        if self.due.turn_runs {
            TurnRemainder::Turn
        } else if background == BackgroundWork::End && self.has_running() {
            TurnRemainder::Nothing
        } else if self.has_awaited(background) {
            TurnRemainder::Tasks
        } else if self.due.notice_is_due || self.due.queued > 0 || self.due.session_runs {
            TurnRemainder::Announced
        } else {
            TurnRemainder::Nothing
        }
    }

    /// Notes that the session says whether it runs.
    pub(crate) fn set_session_runs(&mut self, session_runs: bool) {
        self.due.session_runs = session_runs;
    }

    /// Notes that a turn begins which nobody has a result for yet.
    pub(crate) fn turn_begins(&mut self) {
        self.due.turn_runs = true;
    }

    /// Notes the result of a turn, with the number of turns that are queued after it.
    pub(crate) fn turn_ends(&mut self, queued: u64) {
        self.due = DueTurns { session_runs: self.due.session_runs, queued, ..DueTurns::default() };
    }

    /// Notes all tasks that run.
    pub(crate) fn set_running(&mut self, running: Vec<BackgroundTask>) {
        let has_ended = |task: &BackgroundTask| !running.iter().any(|other| other.id == task.id);
        self.due.notice_is_due |= self.running.iter().any(has_ended);
        self.reports_all = true;
        self.running = running;
    }

    /// Notes that a task has started, unless the program reports all tasks at each change.
    pub(crate) fn task_starts(&mut self, task: BackgroundTask) {
        if !self.reports_all {
            self.running.push(task);
        }
    }

    /// Notes that a task has ended.
    pub(crate) fn task_ends(&mut self, id: &str) {
        self.running.retain(|task| task.id != id);
        self.due.notice_is_due = true;
    }
}
