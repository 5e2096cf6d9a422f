//! The first step of a supervisor: a run begins, or is resumed.

use crate::domain::event::Record;
use crate::domain::retry::RetrySelection;
use crate::domain::run::Run;
use crate::domain::settings::Settings;

/// The first step of a supervisor.
#[derive(Debug)]
pub enum SupervisorStart {
    /// A run whose first record is in its journal already.
    FirstRecord(Box<Record>),
    /// An existing run, the settings under which it is resumed, and the failed agents that live again.
    Resume(Box<Settings>, Option<RetrySelection>),
    /// No first step: the run has begun.
    Done,
}

impl SupervisorStart {
    /// Returns the start of a resumed run under these settings: from its first record, if no turn of it has begun
    /// and the settings are the same.
    pub fn on_resume(
        untouched: Option<Record>,
        settings: Settings,
        retry: Option<RetrySelection>,
        run: &Run,
    ) -> Self {
        match untouched {
            Some(first) if settings == run.settings => Self::FirstRecord(Box::new(first)),
            _ => Self::Resume(Box::new(settings), retry),
        }
    }

    /// Returns the settings under which a run is resumed.
    pub fn settings<'start>(&'start self, run: &'start Run) -> &'start Settings {
        match self {
            Self::Resume(settings, _) => settings,
            Self::FirstRecord(_) | Self::Done => &run.settings,
        }
    }
}
