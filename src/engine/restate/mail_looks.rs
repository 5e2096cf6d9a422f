//! The last looks for mail: whoever has found some looks again soon instead of waiting.
//!
//! To be woken costs the server more than a look.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::id::RunId;

/// The time after which whoever has found mail looks again.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(15);

/// The time for which the runs of a host need not be asked for. While there is mail all the time, a new run is found up to so
/// much later.
const KNOWN_RUNS: Duration = Duration::from_millis(200);

/// Somebody who has mail: the name of the service, and the key of the object.
pub(super) type ReceiverName = (&'static str, String);

/// The last look of a receiver.
#[derive(Debug, Default)]
struct MailLook {
    /// It has found mail, so the receiver looks once more before it waits.
    has_found: bool,
    /// The receiver was told to look once more, and has not done so.
    looks_again: bool,
    /// The runs that a host was told last, and when.
    runs: Option<(Vec<RunId>, Instant)>,
}

/// The last looks of all receivers.
#[derive(Debug, Default)]
pub(super) struct MailLooks(Mutex<HashMap<ReceiverName, MailLook>>);

impl MailLooks {
    /// Notes whether a look has found mail.
    pub(super) fn note(&self, receiver: ReceiverName, has_found: bool) {
        self.lock().entry(receiver).or_default().has_found = has_found;
    }

    /// Returns whether a receiver is to look again instead of waiting; it is told so once.
    pub(super) fn tell_to_look_again(&self, receiver: &ReceiverName) -> bool {
        let mut looks = self.lock();
        let Some(look) = looks.get_mut(receiver) else { return false };
        look.looks_again = std::mem::take(&mut look.has_found);
        look.looks_again
    }

    /// Notes the runs of a host.
    pub(super) fn note_runs(&self, host: ReceiverName, runs: Vec<RunId>, now: Instant) {
        self.lock().entry(host).or_default().runs = Some((runs, now));
    }

    /// Returns the runs of a host that was told to look again, if it learned them a moment ago.
    pub(super) fn runs(&self, host: &ReceiverName, now: Instant) -> Option<Vec<RunId>> {
        let mut looks = self.lock();
        let look = looks.get_mut(host)?;
        let (runs, told) = look.runs.as_ref().filter(|_| std::mem::take(&mut look.looks_again))?;
        (now.duration_since(*told) < KNOWN_RUNS).then(|| runs.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReceiverName, MailLook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_found_mail_looks_once_more_before_the_next_wait() {
        let (looks, host) = (MailLooks::default(), ("host", "a".to_owned()));
        let (now, run) = (Instant::now(), RunId::parse("r").expect("an id"));
        assert!(!looks.tell_to_look_again(&host));
        looks.note_runs(host.clone(), vec![run.clone()], now);
        assert_eq!(looks.runs(&host, now), None, "it was told of news");
        looks.note(host.clone(), true);
        assert!(looks.tell_to_look_again(&host));
        assert_eq!(looks.runs(&host, now), Some(vec![run]));
        assert_eq!(looks.runs(&host, now), None);
        assert!(!looks.tell_to_look_again(&host), "it has not looked since");
        looks.note(host.clone(), true);
        assert!(looks.tell_to_look_again(&host));
        assert_eq!(looks.runs(&host, now + KNOWN_RUNS), None);
        looks.note(host.clone(), false);
        assert!(!looks.tell_to_look_again(&host));
    }
}
