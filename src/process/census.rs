//! Which processes live, and which of them have had the time to take the memory they need.
//!
//! What a process that has just been started will take is not seen in the machine's figures yet. So
//! only one that has lived for a while counts as paid for; all others are reckoned at their full size.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

/// After so long a process has taken most of what it needs.
const GROWN: Duration = Duration::from_secs(5);

/// A process's life; it lasts as long as this is held.
#[derive(Debug)]
pub struct ProcessLifetime {
    began: Instant,
    idle: Cell<bool>,
}

impl ProcessLifetime {
    /// It waits for a turn, or has one.
    pub fn set_idle(&self, idle: bool) {
        self.idle.set(idle);
    }
}

/// All lives.
#[derive(Debug, Default)]
pub struct ProcessCounts(RefCell<Vec<Weak<ProcessLifetime>>>);

impl ProcessCounts {
    /// One more.
    pub fn born(&self) -> Rc<ProcessLifetime> {
        let life = Rc::new(ProcessLifetime { began: Instant::now(), idle: Cell::new(false) });
        let mut lives = self.0.borrow_mut();
        lives.retain(|life| life.strong_count() > 0);
        lives.push(Rc::downgrade(&life));
        life
    }

    /// How many of those that have a turn are grown.
    #[must_use]
    pub fn grown_at_work(&self) -> usize {
        let lives = self.0.borrow();
        let grown = |life: &Rc<ProcessLifetime>| !life.idle.get() && life.began.elapsed() > GROWN;
        lives.iter().filter_map(Weak::upgrade).filter(grown).count()
    }
}
