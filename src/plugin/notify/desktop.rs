//! Notifications on the desktop, through a terminal that shows them: when somebody is needed, and when the run is over.

use std::future::ready;
use std::pin::Pin;

use super::NotificationSink;
use super::notification::{Notification, NotificationKind};
use crate::domain::id::RunId;
use crate::plugin::terminal::Terminal;

/// A sink that shows notifications through a terminal.
pub struct DesktopSink {
    terminal: Terminal,
    title: String,
}

impl DesktopSink {
    /// Returns the sink for a run.
    pub fn new(terminal: Terminal, run: &RunId) -> Self {
        Self { terminal, title: format!("raymond {run}") }
    }
}

impl NotificationSink for DesktopSink {
    fn deliver(&self, notification: Notification) {
        if is_for_desktop(notification.kind) {
            self.terminal.notify(&self.title, &notification.message);
        }
    }

    fn finished(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(ready(()))
    }
}

/// Returns whether a notification should call somebody who does not look. The rest stands in the live view.
fn is_for_desktop(kind: NotificationKind) -> bool {
    match kind {
        NotificationKind::Paused
        | NotificationKind::Question
        | NotificationKind::Approval
        | NotificationKind::Signal
        | NotificationKind::AgentParked
        | NotificationKind::Ended
        | NotificationKind::Broken => true,
        NotificationKind::AgentFailed | NotificationKind::LimitReached => false,
    }
}
