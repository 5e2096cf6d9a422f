//! Whether a run stays up while all that it could do is wait. Who keeps it up for questions, because they are
//! there to answer, may go away while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// For what a run stays up: for signals and times if nothing is said, not for questions.
#[derive(Debug, Clone)]
pub struct KeepAlive {
    questions: Arc<AtomicBool>,
    signals: bool,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { questions: Arc::default(), signals: true }
    }
}

impl KeepAlive {
    /// For questions too, until this is taken back.
    #[must_use]
    pub fn up() -> Self {
        Self { questions: Arc::new(AtomicBool::new(true)), signals: true }
    }

    /// For nothing.
    #[must_use]
    pub fn never() -> Self {
        Self { questions: Arc::default(), signals: false }
    }

    /// For questions no longer.
    pub fn no_longer(&self) {
        self.questions.store(false, Ordering::Relaxed);
    }

    /// Whether it does for questions.
    #[must_use]
    pub fn for_questions(&self) -> bool {
        self.questions.load(Ordering::Relaxed)
    }

    /// Whether it does for signals and times.
    #[must_use]
    pub fn for_signals(&self) -> bool {
        self.signals
    }
}
