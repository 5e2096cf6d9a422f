//! The message that a run is paused.
//!
//! The kinds of notifications.
//!
//! The signals that programs wait for, and the commands that assert them.

use strum::{IntoStaticStr, VariantNames};

use crate::domain::event::{NextAction, ProgramAdvanced};
use crate::domain::id::RunId;
use crate::domain::person_wait::AwaitedSignal;
use crate::domain::run::PauseReason;
use crate::plugin::sentence::date;

/// Returns the message that a run has stopped, and the way to resume it.
pub(super) fn paused(run: &RunId, pause: &PauseReason) -> String {
    match pause {
        PauseReason::Budget { .. } => {
            format!(
                "run {run} paused: {pause}; resume with more: raymond resume {run} --budget USD"
            )
        }
        PauseReason::Agents { .. } => format!(
            "run {run} paused: {pause}; if so many are intended, resume with more: raymond resume {run} --max-agents N"
        ),
        PauseReason::UsageLimit { resets: Some(resets), .. } => format!(
            "run {run} paused: {pause}; it resets {}; resume: raymond resume {run}",
            date(*resets)
        ),
        PauseReason::Asking { .. } => format!(
            "run {run} paused: {pause}; answer it: raymond answer {run}, then resume: raymond resume {run}"
        ),
        PauseReason::Waiting { .. } => {
            format!("run {run} paused: {pause}; resume when it is there: raymond resume {run}")
        }
        PauseReason::Interrupted
        | PauseReason::Plugin { .. }
        | PauseReason::Stopped
        | PauseReason::UsageLimit { .. }
        | PauseReason::Parked { .. }
        | PauseReason::Storage { .. }
        | PauseReason::Authentication { .. }
        | PauseReason::Unavailable { .. } => {
            format!("run {run} paused: {pause}; resume: raymond resume {run}")
        }
    }
}

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NotificationKind {
    /// The run holds still until someone resumes it.
    Paused,
    /// An agent waits for an answer; the others continue.
    Question,
    /// A tool call needs approval; the others continue.
    Approval,
    /// A program waits for a signal; the others continue.
    Signal,
    /// An agent waits for a person; the others continue.
    AgentParked,
    /// An agent has failed.
    AgentFailed,
    /// No turn starts before the usage limit resets.
    LimitReached,
    /// All agents have ended.
    Ended,
    /// The run has stopped without a record, because its journal could not be kept any longer.
    Broken,
}

impl NotificationKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Returns the awaited thing of a program that begins to wait for a signal.
pub(super) fn awaited_signal(advanced: &ProgramAdvanced) -> Option<&str> {
    let progress = &advanced.progress;
    let awaiting = progress.awaiting.as_deref()?;
    let is_waiting = *advanced.next_action() == NextAction::Wait
        && progress.position.wait.as_ref().is_some_and(|wait| wait.outside);
    let is_for_people = || AwaitedSignal::all_in(awaiting).iter().any(AwaitedSignal::is_for_people);
    (is_waiting && is_for_people()).then_some(awaiting)
}

/// Returns the command that asserts the first signal that people assert.
pub(super) fn signal_command(awaited: &str) -> String {
    let all = AwaitedSignal::all_in(awaited);
    let first = all.into_iter().find(AwaitedSignal::is_for_people).unwrap_or_default();
    let is_plain = |key: &str| !key.contains(|c: char| c.is_whitespace() || "\"'$`\\".contains(c));
    let key = first.key.map(|key| {
        if is_plain(&key) && !key.is_empty() {
            format!(" --key {key}")
        } else {
            format!(" --key {key:?}")
        }
    });
    format!("raymond signal {}{}", first.label, key.unwrap_or_default())
}

#[cfg(test)]
mod signal_tests {
    use super::*;

    #[test]
    fn command_asserts_the_first_awaited_signal() {
        let table = [
            ("(signal go)", "raymond signal go"),
            ("(and (signal a/b :key t :equals yes) (signal c))", "raymond signal a/b --key t"),
            ("(signal go :key \"a b\")", "raymond signal go --key \"a b\""),
            ("(or (signal workflow/state :key t) (signal go))", "raymond signal go"),
        ];
        for (awaited, command) in table {
            assert_eq!(signal_command(awaited), command);
        }
    }
}
