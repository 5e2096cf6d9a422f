//! Whether a run stays up while all that it could do is wait for answers. Who keeps it up, because they are
//! there to answer, may go away while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a run stays up for its questions.
#[derive(Debug, Clone, Default)]
pub struct Stay(Arc<AtomicBool>);

impl Stay {
    /// It does, until this is taken back.
    #[must_use]
    pub fn up() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// It does so no longer.
    pub fn no_longer(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it does.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
