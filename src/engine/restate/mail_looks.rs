//! The last looks for mail: whoever has found some a moment ago looks again, and whoever waits in vain looks seldom.
//!
//! To be woken costs the server more than a look, and a look that goes with other calls costs it little.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::id::RunId;

/// The time after which whoever has found mail looks again, if no other call has taken its look along before.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(15);

/// The time after mail was found for which the receiver looks instead of waiting.
const LOOKING_TIME: Duration = Duration::from_millis(60);

/// The time for which the runs of a host need not be asked for. While there is mail all the time, a new run is found up to so
/// much later.
const KNOWN_RUNS: Duration = Duration::from_millis(200);

/// The time for which a look that found nothing need not be made again while a wait brings no news.
const EMPTY_LOOK_TIME: Duration = Duration::from_secs(3);

/// Somebody who has mail: the name of the service, and the key of the object.
pub(super) type ReceiverName = (&'static str, String);

/// The runs that a host asks when it looks again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunsToAsk {
    Known(Vec<RunId>),
    Unknown,
}

/// The last look of a receiver.
#[derive(Debug, Default)]
struct MailLook {
    /// The time at which mail was found last, and whether the receiver has been told to look since.
    found: Option<(Instant, bool)>,
    /// The receiver was told to look again, and has not done so.
    looks_again: bool,
    /// The time of the last look if it found nothing, and whether a wait has brought no news since.
    empty: Option<(Instant, bool)>,
    /// The runs that a host was told last, and when.
    runs: Option<(Vec<RunId>, Instant)>,
}

/// The last looks of all receivers.
#[derive(Debug, Default)]
pub(super) struct MailLooks(Mutex<HashMap<ReceiverName, MailLook>>);

impl MailLooks {
    /// Notes a look, and whether it has found mail.
    pub(super) fn note(&self, receiver: ReceiverName, has_found: bool, now: Instant) {
        let mut looks = self.lock();
        let look = looks.entry(receiver).or_default();
        if has_found {
            (look.found, look.empty) = (Some((now, false)), None);
        } else {
            look.empty = Some((now, false));
        }
    }

    /// Notes that a wait has brought no news.
    pub(super) fn note_empty_wait(&self, receiver: ReceiverName) {
        if let Some((_, has_waited)) = &mut self.lock().entry(receiver).or_default().empty {
            *has_waited = true;
        }
    }

    /// Returns whether a receiver may skip its next look: the last one has found nothing, a moment ago, and a wait has brought no
    /// news since.
    pub(super) fn take_empty_wait(&self, receiver: &ReceiverName, now: Instant) -> bool {
        let mut looks = self.lock();
        let empty = looks.get_mut(receiver).and_then(|look| look.empty.as_mut());
        empty.is_some_and(|(at, has_waited)| {
            std::mem::take(has_waited) && now.duration_since(*at) < EMPTY_LOOK_TIME
        })
    }

    /// Returns whether a receiver is to look again instead of waiting: once at least, however long it took to read what it
    /// found. Whoever sends something meanwhile relies on that.
    pub(super) fn tell_to_look_again(&self, receiver: &ReceiverName, now: Instant) -> bool {
        let mut looks = self.lock();
        let Some(look) = looks.get_mut(receiver) else { return false };
        let Some((found, was_told)) = &mut look.found else { return false };
        let is_first = !std::mem::replace(was_told, true);
        look.looks_again = is_first || now.duration_since(*found) < LOOKING_TIME;
        look.looks_again
    }

    /// Notes the runs of a host.
    pub(super) fn note_runs(&self, host: ReceiverName, runs: Vec<RunId>, now: Instant) {
        self.lock().entry(host).or_default().runs = Some((runs, now));
    }

    /// Returns whom a receiver asks if it was told to look again and has not done so; the runs of a host are known if it
    /// learned them a moment ago.
    pub(super) fn take_look_again(
        &self,
        receiver: &ReceiverName,
        now: Instant,
    ) -> Option<RunsToAsk> {
        let mut looks = self.lock();
        let look = looks.get_mut(receiver)?;
        if !std::mem::take(&mut look.looks_again) {
            return None;
        }
        let known = look.runs.as_ref().filter(|(_, told)| now.duration_since(*told) < KNOWN_RUNS);
        Some(known.map_or(RunsToAsk::Unknown, |(runs, _)| RunsToAsk::Known(runs.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReceiverName, MailLook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of the last news that waiters were told of.
#[derive(Debug, Default)]
pub(super) struct SeenNews(Mutex<HashMap<ReceiverName, u64>>);

impl SeenNews {
    /// Returns the number that a waiter was told of last.
    pub(super) fn of(&self, receiver: &ReceiverName) -> u64 {
        self.lock().get(receiver).copied().unwrap_or_default()
    }

    /// Notes what a waiter was told of.
    pub(super) fn see(&self, receiver: ReceiverName, news: u64) {
        self.lock().insert(receiver, news);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReceiverName, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_found_mail_looks_again_for_a_while() {
        let (looks, host) = (MailLooks::default(), ("host", "a".to_owned()));
        let (now, run) = (Instant::now(), RunId::parse("r").expect("an id"));
        assert!(!looks.tell_to_look_again(&host, now));
        looks.note_runs(host.clone(), vec![run.clone()], now);
        assert_eq!(looks.take_look_again(&host, now), None, "it was told of news");
        looks.note(host.clone(), true, now);
        assert!(looks.tell_to_look_again(&host, now));
        assert_eq!(looks.take_look_again(&host, now), Some(RunsToAsk::Known(vec![run])));
        assert_eq!(looks.take_look_again(&host, now), None);
        assert!(looks.tell_to_look_again(&host, now + LOOKING_TIME / 2));
        assert_eq!(looks.take_look_again(&host, now + KNOWN_RUNS), Some(RunsToAsk::Unknown));
        assert!(!looks.tell_to_look_again(&host, now + LOOKING_TIME));
        assert_eq!(looks.take_look_again(&host, now + LOOKING_TIME), None);
        looks.note(host.clone(), true, now);
        assert!(looks.tell_to_look_again(&host, now + LOOKING_TIME), "it has not looked since");
        assert!(!looks.tell_to_look_again(&host, now + LOOKING_TIME));
    }

    #[test]
    fn whoever_has_found_nothing_looks_after_news_or_a_while() {
        let (looks, run) = (MailLooks::default(), ("run", "r".to_owned()));
        let now = Instant::now();
        looks.note_empty_wait(run.clone());
        assert!(!looks.take_empty_wait(&run, now), "it has never looked");
        looks.note(run.clone(), false, now);
        assert!(!looks.take_empty_wait(&run, now), "it has not waited since");
        looks.note_empty_wait(run.clone());
        assert!(looks.take_empty_wait(&run, now));
        assert!(!looks.take_empty_wait(&run, now), "it has not waited again");
        looks.note_empty_wait(run.clone());
        assert!(!looks.take_empty_wait(&run, now + EMPTY_LOOK_TIME));
        looks.note(run.clone(), true, now);
        looks.note_empty_wait(run.clone());
        assert!(!looks.take_empty_wait(&run, now), "it has found something");
    }
}
