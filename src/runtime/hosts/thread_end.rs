//! The end of threads that pause between two looks: it wakes them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The end of some threads, which all share.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadEnd(Arc<(Mutex<bool>, Condvar)>);

impl ThreadEnd {
    /// Tells the threads to end.
    pub(super) fn tell(&self) {
        let (is_told, wake) = &*self.0;
        *is_told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
    }

    /// Returns whether the threads are told to end.
    pub(super) fn is_told(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses this thread, at most until it is told to end.
    pub(super) fn pause(&self, longest: Duration) {
        let (is_told, wake) = &*self.0;
        let told = is_told.lock().unwrap_or_else(PoisonError::into_inner);
        drop(wake.wait_timeout_while(told, longest, |told| !*told));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_ends_with_the_threads() {
        let end = ThreadEnd::default();
        let other = end.clone();
        let thread = std::thread::spawn(move || other.pause(Duration::from_hours(1)));
        assert!(!end.is_told());
        end.tell();
        thread.join().expect("it is woken");
        end.pause(Duration::from_hours(1));
        assert!(end.is_told());
    }
}
