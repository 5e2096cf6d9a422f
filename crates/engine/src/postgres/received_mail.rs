//! The mail that this process has received: it is not handed out again to the same claim or lease.
//!
//! A note of that in the database would change the same rows as a begin or a reply, and each would wait for the other's disk.
//!
//! The mail that waiters were told of, so that they do not wait in circles.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::host_registry::HostClaim;
use crate::shared_log::RunLease;
use raymond_model::id::RunId;

/// The number of received requests from which on those are dropped that were begun.
const MANY: usize = 512;

/// The time between two calls that ask for all replies. A server that crashed may count its transactions from an earlier
/// one on.
const LOOK_AT_ALL: Duration = Duration::from_secs(5);

/// The requests of a host. A request that is sent again after it was withdrawn has another number.
#[derive(Debug, Default)]
struct ReceivedRequests {
    epoch: u64,
    /// True until all have been handed out that an earlier worker had begun.
    wants_begun: bool,
    /// The numbers of those that were handed out, and not named as received yet.
    handed_out: HashMap<String, i64>,
    /// The numbers of those that were received, and may not be begun yet.
    received: HashSet<i64>,
}

/// The replies of a run, each with the transaction that made it.
#[derive(Debug, Default)]
struct ReceivedReplies {
    epoch: u64,
    /// The first transaction whose replies may not all have been handed out.
    first_open: i64,
    /// The time of the last call that asked for all.
    asked_for_all: Option<Instant>,
    /// Those that were handed out, and not named as received yet.
    handed_out: HashMap<String, i64>,
    /// Those that were received, and not forgotten yet.
    received: HashMap<String, i64>,
}

impl ReceivedReplies {
    /// Returns which replies are to be asked for.
    fn wanted(&mut self, now: Instant) -> WantedReplies {
        let is_due = |last: Instant| now.duration_since(last) >= LOOK_AT_ALL;
        let from = if self.asked_for_all.is_none_or(is_due) {
            self.asked_for_all = Some(now);
            0
        } else {
            let left = self.handed_out.values().copied().min();
            left.map_or(self.first_open, |left| left.min(self.first_open))
        };
        let known = self.received.iter().filter(|(_, transaction)| **transaction >= from);
        WantedReplies { from, but_for: known.map(|(key, _)| key.clone()).collect() }
    }
}

/// The requests that are to be asked for.
#[derive(Debug, PartialEq)]
pub(super) struct WantedRequests {
    /// The numbers of those that have been received.
    pub(super) but_for: Vec<i64>,
    /// True if those are wanted, too, that were begun.
    pub(super) with_begun: bool,
}

/// The replies that are to be asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WantedReplies {
    /// The first transaction.
    pub(super) from: i64,
    /// The keys of those that have been received from then on, and of those that the caller knows besides.
    pub(super) but_for: Vec<String>,
}

/// The mail that was received, of all hosts and runs that this process acts for.
#[derive(Debug, Default)]
pub(super) struct ReceivedMail {
    requests: Mutex<HashMap<String, ReceivedRequests>>,
    replies: Mutex<HashMap<RunId, ReceivedReplies>>,
}

impl ReceivedMail {
    /// Notes that a host has received requests, and returns which ones it wants next.
    pub(super) fn requests(
        &self,
        claim: &HostClaim,
        keys: &[String],
        is_first: bool,
    ) -> WantedRequests {
        let mut all = lock(&self.requests);
        let own = all.entry(claim.host.as_str().to_owned()).or_default();
        if is_first || own.epoch != claim.epoch.0 {
            let epoch = claim.epoch.0;
            *own = ReceivedRequests { epoch, wants_begun: is_first, ..ReceivedRequests::default() };
        }
        let numbers = keys.iter().filter_map(|key| own.handed_out.remove(key));
        own.received.extend(numbers);
        WantedRequests {
            but_for: own.received.iter().copied().collect(),
            with_begun: own.wants_begun,
        }
    }

    /// Notes that requests cannot be handed out to a host, so that they are not looked at again.
    pub(super) fn skip(&self, claim: &HostClaim, numbers: &[i64]) {
        if let Some(own) = lock(&self.requests).get_mut(claim.host.as_str()) {
            own.received.extend(numbers);
        }
    }

    /// Notes that requests are handed out to a host. They are the last ones that there are, or others may follow.
    pub(super) fn hand_out(&self, claim: &HostClaim, requests: Vec<(String, i64)>, is_last: bool) {
        let mut all = lock(&self.requests);
        if let Some(own) = all.get_mut(claim.host.as_str()) {
            own.handed_out.extend(requests);
            own.wants_begun &= !is_last;
        }
    }

    /// Returns whether so many requests of a host are noted that those should be dropped which were begun. While those are
    /// wanted, they would be handed out again.
    pub(super) fn has_many(&self, claim: &HostClaim) -> bool {
        let all = lock(&self.requests);
        let own = all.get(claim.host.as_str());
        own.is_some_and(|own| own.received.len() >= MANY && !own.wants_begun)
    }

    /// Keeps of the received requests of a host only those that are not begun yet.
    pub(super) fn keep(&self, claim: &HostClaim, not_begun: &HashSet<i64>) {
        if let Some(own) = lock(&self.requests).get_mut(claim.host.as_str()) {
            own.received.retain(|number| not_begun.contains(number));
        }
    }

    /// Notes that a run has received replies, and returns which ones it wants next.
    pub(super) fn replies(&self, lease: &RunLease, keys: &[String], now: Instant) -> WantedReplies {
        let mut all = lock(&self.replies);
        let own = all.entry(lease.run.clone()).or_default();
        if own.epoch != lease.epoch {
            *own = ReceivedReplies { epoch: lease.epoch, ..ReceivedReplies::default() };
        }
        // One that was forgotten meanwhile is not noted again.
        let received = keys.iter().filter_map(|key| own.handed_out.remove_entry(key));
        own.received.extend(received);
        let mut wanted = own.wanted(now);
        let unknown = keys.iter().filter(|key| !own.received.contains_key(*key));
        wanted.but_for.extend(unknown.cloned());
        wanted
    }

    /// Notes that replies are handed out to a run: all that there are before the transaction `first_open`.
    pub(super) fn hand_out_replies(
        &self,
        lease: &RunLease,
        replies: Vec<(String, i64)>,
        first_open: i64,
    ) {
        if let Some(own) = lock(&self.replies).get_mut(&lease.run) {
            own.handed_out.extend(replies);
            own.first_open = first_open;
        }
    }

    /// Notes that requests are forgotten with their replies.
    pub(super) fn forget(&self, lease: &RunLease, keys: &[String]) {
        if let Some(own) = lock(&self.replies).get_mut(&lease.run) {
            for key in keys {
                own.received.remove(key);
                own.handed_out.remove(key);
            }
        }
    }

    /// Notes that all requests of a run are forgotten.
    pub(super) fn forget_all(&self, lease: &RunLease) {
        lock(&self.replies).remove(&lease.run);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole at any time, so a panic elsewhere does not matter.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mail that receivers were told of, by their channels.
#[derive(Debug, Default)]
pub(super) struct ToldMail(Mutex<HashMap<String, String>>);

impl ToldMail {
    /// Notes that a receiver is told of its mail; returns whether that is other mail than the last time.
    pub(super) fn is_other(&self, channel: &str, mail: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(channel.to_owned(), mail.to_owned()).is_none_or(|before| before != mail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: WantedReplies = WantedReplies { from: 0, but_for: Vec::new() };

    fn key(name: &str) -> String {
        name.to_owned()
    }

    fn lease(epoch: u64) -> RunLease {
        RunLease { run: RunId::parse("r").expect("an id"), epoch }
    }

    #[test]
    fn replies_are_asked_for_from_the_first_open_transaction() {
        let (mail, own, now) = (ReceivedMail::default(), lease(1), Instant::now());
        let wanted = |keys: &[String]| mail.replies(&own, keys, now);
        assert_eq!(wanted(&[]), ALL);
        mail.hand_out_replies(&own, vec![(key("a"), 4), (key("b"), 8)], 6);
        // Only one was received: the other one is handed out again, also if it is older.
        assert_eq!(wanted(&[key("b")]), WantedReplies { from: 4, but_for: vec![key("b")] });
        mail.hand_out_replies(&own, vec![(key("a"), 4)], 7);
        assert_eq!(wanted(&[key("a")]), WantedReplies { from: 7, but_for: vec![key("b")] });
        mail.hand_out_replies(&own, Vec::new(), 9);
        assert_eq!(wanted(&[]), WantedReplies { from: 9, but_for: Vec::new() });
        let other = mail.replies(&lease(2), &[], now);
        assert_eq!(other, ALL, "another supervisor has received none");
    }

    #[test]
    fn all_replies_are_asked_for_now_and_then() {
        let (mail, own, now) = (ReceivedMail::default(), lease(1), Instant::now());
        mail.replies(&own, &[], now);
        mail.hand_out_replies(&own, vec![(key("a"), 70)], 90);
        assert_eq!(mail.replies(&own, &[key("a")], now).from, 90);
        let wanted = mail.replies(&own, &[], now + LOOK_AT_ALL);
        assert_eq!(wanted, WantedReplies { from: 0, but_for: vec![key("a")] });
        assert_eq!(mail.replies(&own, &[], now + LOOK_AT_ALL).from, 90);
    }
}
