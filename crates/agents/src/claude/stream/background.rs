//! The background tasks of a process, read from its stream. Pure.
//!
//! Newer versions report all running tasks at each change, older versions only each start and end.
//! In every version, a session that was asked to report its state is `running` while turns are
//! pending, and each turn begins with an `init`.

use serde::Deserialize;

use crate::background::{BackgroundTask, BackgroundTasks};
use crate::claude::stream::line::{RawField, StreamLine, get, text};

/// The task kind of a sub-agent.
const AGENT: &str = "local_agent";

#[derive(Deserialize)]
struct ReportedTask<'line> {
    #[serde(borrow)]
    task_id: RawField<'line>,
    task_type: RawField<'line>,
    description: RawField<'line>,
    ambient: RawField<'line>,
}

impl BackgroundTask {
    fn read(id: RawField<'_>, kind: RawField<'_>, description: RawField<'_>) -> Option<Self> {
        Some(Self {
            id: text(id)?,
            is_agent: text(kind).as_deref() == Some(AGENT),
            description: text(description).unwrap_or_default(),
        })
    }
}

impl BackgroundTasks {
    /// Takes a system event.
    pub(super) fn system(&mut self, subtype: &str, event: &StreamLine<'_>) {
        match subtype {
            "init" => self.turn_begins(),
            "background_tasks_changed" => self.changed(event),
            "task_started" => self.started(event),
            "task_notification" => {
                if let Some(id) = text(event.task_id) {
                    self.task_ends(&id);
                }
            }
            "session_state_changed" => {
                self.set_session_runs(text(event.state).is_some_and(|state| state != "idle"));
            }
            _ => {}
        }
    }

    /// Takes the result of a turn.
    pub(super) fn result(&mut self, event: &StreamLine<'_>) {
        self.turn_ends(get(event.queued_turn_count).unwrap_or(0));
    }

    fn changed(&mut self, event: &StreamLine<'_>) {
        let Some(reported) = get::<Vec<ReportedTask<'_>>>(event.tasks) else { return };
        let is_waited_for = |task: &&ReportedTask<'_>| !get(task.ambient).unwrap_or(false);
        let running = reported.iter().filter(is_waited_for);
        let read = |task: &ReportedTask<'_>| {
            BackgroundTask::read(task.task_id, task.task_type, task.description)
        };
        self.set_running(running.filter_map(read).collect());
    }

    /// Adds a task. Older versions do not say whether a task is in the background; then its end is awaited in
    /// any case, and that of a foreground task comes before the result.
    fn started(&mut self, event: &StreamLine<'_>) {
        let task = BackgroundTask::read(event.task_id, event.task_type, event.description);
        if get(event.is_backgrounded).unwrap_or(true)
            && let Some(task) = task
        {
            self.task_starts(task);
        }
    }
}

#[cfg(test)]
mod tests;
