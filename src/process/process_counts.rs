//! Counts the living processes, and those that have had time to take the memory they need.
//!
//! The machine's figures do not yet show what a process that has just been started will take. So only
//! a process that has lived for a while counts as grown; all others are reckoned at their full size.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

/// Age after which a process has taken most of its memory.
const GROWN_AGE: Duration = Duration::from_secs(5);

/// A process's lifetime, as long as this is held.
#[derive(Debug)]
pub struct ProcessLifetime {
    began: Instant,
    idle: Cell<bool>,
}

impl ProcessLifetime {
    /// Notes that the process waits for a turn, or has one.
    pub fn set_idle(&self, idle: bool) {
        self.idle.set(idle);
    }
}

/// The lifetimes of all processes.
#[derive(Debug, Default)]
pub struct ProcessCounts(RefCell<Vec<Weak<ProcessLifetime>>>);

impl ProcessCounts {
    /// Adds a process.
    pub fn add(&self) -> Rc<ProcessLifetime> {
        let life = Rc::new(ProcessLifetime { began: Instant::now(), idle: Cell::new(false) });
        let mut lives = self.0.borrow_mut();
        lives.retain(|life| life.strong_count() > 0);
        lives.push(Rc::downgrade(&life));
        life
    }

    /// Returns the number of grown processes that have a turn.
    pub fn grown_at_work(&self) -> usize {
        let lives = self.0.borrow();
        let grown =
            |life: &Rc<ProcessLifetime>| !life.idle.get() && life.began.elapsed() > GROWN_AGE;
        lives.iter().filter_map(Weak::upgrade).filter(grown).count()
    }
}
