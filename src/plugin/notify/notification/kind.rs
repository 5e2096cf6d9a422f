//! The kinds of notifications.

use strum::{IntoStaticStr, VariantNames};

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
