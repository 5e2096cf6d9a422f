//! Decides whether a run in which everything waits stays up or pauses (`--on-wait`).
//!
//! Staying up for questions needs somebody who answers, so it can be switched off while the run continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The waits for which a run stays up: by default those for signals and times, not those for questions.
#[derive(Debug, Clone)]
pub struct StayUp {
    questions: Arc<AtomicBool>,
    signals: bool,
}

impl Default for StayUp {
    fn default() -> Self {
        Self { questions: Arc::default(), signals: true }
    }
}

impl StayUp {
    /// Stays up for questions too, until [`no_longer`](Self::no_longer).
    pub fn for_all() -> Self {
        Self { questions: Arc::new(AtomicBool::new(true)), signals: true }
    }

    /// Never stays up.
    pub fn never() -> Self {
        Self { questions: Arc::default(), signals: false }
    }

    /// Stops staying up for questions.
    pub fn no_longer(&self) {
        self.questions.store(false, Ordering::Relaxed);
    }

    /// Returns whether it stays up for questions.
    pub fn is_for_questions(&self) -> bool {
        self.questions.load(Ordering::Relaxed)
    }

    /// Returns whether it stays up for signals and times.
    pub fn is_for_signals(&self) -> bool {
        self.signals
    }
}
