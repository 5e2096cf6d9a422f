//! The mailbox of hosts.
//!
//! A request is open, answered, withdrawn or forgotten. Its row is changed under its lock, so of a withdrawal and a
//! begin at the same moment one is first, and the other sees it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use raymond_model::id::RunId;

use super::calls::Failure;
use super::engine::PostgresEngine;
use super::log::{BEGIN, FORGET, REPLIES, REPLY, REQUESTS, SEND};
use crate::EngineError;
use crate::host_mailbox::{
    HostClaim, HostMailbox, HostReply, HostRequest, MailReceiver, Withdrawal,
};
use crate::postgres::calls::{flag, number, numbers, stored, stored_limit, text, texts};
use crate::postgres::engine::Topic;
use crate::shared_log::RunLease;

const SENT: &str = concat!(
    held_run!(unflushed),
    " SELECT next.key FROM held LEFT JOIN LATERAL \
     (SELECT key FROM raymond.request \
     WHERE run = $1 AND state IN ('open', 'answered') AND key NOT LIKE '?%') AS next ON true"
);

const BEGUN: &str = "SELECT key FROM raymond.request \
    WHERE run = $1 AND state = 'open' AND begun AND key NOT LIKE '?%' ORDER BY key";

/// A key that is not there is withdrawn, too, so that a request which is still under way is not begun.
const WITHDRAW: &str = concat!(
    held_run!(),
    ", put AS (INSERT INTO raymond.request AS old (key, run, host, host_epoch, body, state, withdrawn_by) \
     SELECT $3, $1, '', 0, '', 'withdrawn', $2 FROM held \
     ON CONFLICT (key) DO UPDATE SET state = \
     CASE WHEN old.state = 'open' AND NOT old.begun THEN 'withdrawn' ELSE old.state END, \
     withdrawn_by = CASE WHEN old.state = 'open' AND NOT old.begun THEN $2 ELSE old.withdrawn_by END \
     WHERE old.run = $1 \
     RETURNING state = 'answered', begun) \
     SELECT * FROM held LEFT JOIN put ON true"
);

/// Returns the numbers of the requests that a host has not begun.
const NOT_BEGUN: &str = "SELECT sent FROM raymond.request \
    WHERE host = $1 AND host_epoch = $2 AND state = 'open' AND NOT begun";

const FORGET_ALL: &str = concat!(
    held_run!(),
    ", picked AS MATERIALIZED (SELECT key FROM raymond.request \
     WHERE run = $1 AND state <> 'forgotten' AND key NOT LIKE '?%' AND EXISTS (SELECT FROM held) \
     ORDER BY key FOR UPDATE), \
     gone AS (UPDATE raymond.request AS old \
     SET state = 'forgotten', forgotten = clock_timestamp(), body = '', reply = NULL \
     FROM picked WHERE old.key = picked.key) \
     SELECT 1 FROM held"
);

impl HostMailbox for PostgresEngine {
    fn send(&self, lease: &RunLease, requests: &[HostRequest]) -> Result<(), EngineError> {
        // One statement may not change a row twice.
        let mut seen = HashSet::new();
        let requests: Vec<&HostRequest> =
            requests.iter().filter(|request| seen.insert(request.key.as_str())).collect();
        let keys: Vec<&str> = requests.iter().map(|request| request.key.as_str()).collect();
        let hosts: Vec<&str> = requests.iter().map(|request| request.host.as_str()).collect();
        let epochs: Vec<i64> =
            requests.iter().map(|request| stored(request.host_epoch.0)).collect();
        let bodies: Vec<&str> = requests.iter().map(|request| request.body.as_str()).collect();
        let parameters = [texts(&keys), texts(&hosts), numbers(&epochs), texts(&bodies)];
        self.rows_of_run(lease, SEND.call, &parameters)?;
        self.wakes.wake(requests.iter().map(|request| Topic::Host(&request.host)));
        Ok(())
    }

    fn sent(&self, lease: &RunLease) -> Result<Vec<String>, EngineError> {
        let rows = self.rows_of_run(lease, SENT, &[])?;
        let mut keys = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(key) = self.column(row, 0)? else { break };
            keys.push(key);
        }
        Ok(keys)
    }

    fn begun(&self, run: &RunId) -> Result<Vec<String>, EngineError> {
        let rows = self.many_rows(BEGUN, &[text(&run.as_str())])?;
        rows.iter().map(|row| Ok(self.column(row, 0)?)).collect()
    }

    fn withdraw(&self, lease: &RunLease, key: &str) -> Result<Withdrawal, EngineError> {
        let rows = self.rows_of_run(lease, WITHDRAW, &[text(&key)])?;
        let Some(row) = rows.first() else { return Ok(Withdrawal::NotBegun) };
        let (is_answered, is_begun): (Option<bool>, Option<bool>) =
            (self.column(row, 1)?, self.column(row, 2)?);
        Ok(match (is_answered, is_begun) {
            (Some(true), _) => Withdrawal::Answered,
            (_, Some(true)) => Withdrawal::Begun,
            _ => Withdrawal::NotBegun,
        })
    }

    fn requests(
        &self,
        claim: &HostClaim,
        received: &[String],
        is_first: bool,
        limit: usize,
    ) -> Result<Vec<HostRequest>, EngineError> {
        self.listener.channel(&Topic::Host(&claim.host).channel()).ask();
        let (wanted, most) =
            (self.received.requests(claim, received, is_first), stored_limit(limit));
        let (known, with_begun) = (numbers(&wanted.but_for), flag(&wanted.with_begun));
        let parameters = [known, texts(&received), with_begun, number(&most)];
        let rows = self.rows_of_host(claim, REQUESTS.call, &parameters)?;
        let (mut requests, mut handed_out) = (Vec::with_capacity(rows.len()), Vec::new());
        let mut unreadable = Vec::new();
        for row in &rows {
            // One row without a key says that the claim holds, and there is none.
            let Some(key): Option<String> = self.column(row, 0)? else { break };
            let (run, number) = (self.column(row, 1)?, self.column(row, 3)?);
            let Ok(run) = RunId::parse(run) else {
                tracing::warn!("a request for the host {} is of no run: {key}", claim.host);
                unreadable.push(number);
                continue;
            };
            handed_out.push((key.clone(), number));
            let (host, body) = (claim.host.clone(), self.column(row, 2)?);
            requests.push(HostRequest { key, run, host, host_epoch: claim.epoch, body });
        }
        let is_last = handed_out.len() + unreadable.len() < limit;
        self.received.hand_out(claim, handed_out, is_last);
        self.received.skip(claim, &unreadable);
        // The requests are handed out in any case: those that were begun come only once.
        if self.received.has_many(claim)
            && let Err(error) = self.drop_begun(claim)
        {
            tracing::debug!("{error}");
        }
        Ok(requests)
    }

    fn begin(&self, claim: &HostClaim, keys: &[String]) -> Result<HashSet<String>, EngineError> {
        let rows = self.rows_of_host(claim, BEGIN.call, &[texts(&keys)])?;
        let mut begun = HashSet::with_capacity(rows.len());
        for row in &rows {
            let Some(key) = self.column(row, 0)? else { break };
            begun.insert(key);
        }
        Ok(begun)
    }

    fn reply(&self, claim: &HostClaim, replies: &[HostReply]) -> Result<(), EngineError> {
        // One statement may not change a row twice, and the first reply stays.
        let mut seen = HashSet::new();
        let replies: Vec<&HostReply> =
            replies.iter().filter(|reply| seen.insert(reply.key.as_str())).collect();
        let keys: Vec<&str> = replies.iter().map(|reply| reply.key.as_str()).collect();
        let bodies: Vec<&str> = replies.iter().map(|reply| reply.body.as_str()).collect();
        let rows = self.rows_of_host(claim, REPLY.call, &[texts(&keys), texts(&bodies)])?;
        let mut runs = Vec::with_capacity(rows.len());
        for row in &rows {
            let run: Option<&str> = self.column(row, 0)?;
            runs.extend(run.and_then(|run| RunId::parse(run).ok()));
        }
        self.wakes.wake(runs.iter().map(Topic::Run));
        Ok(())
    }

    fn replies(
        &self,
        lease: &RunLease,
        received: &[String],
        limit: usize,
    ) -> Result<Vec<HostReply>, EngineError> {
        self.listener.channel(&Topic::Run(&lease.run).channel()).ask();
        let (wanted, most) =
            (self.received.replies(lease, received, Instant::now()), stored_limit(limit));
        let parameters = [number(&wanted.from), texts(&wanted.but_for), number(&most)];
        let rows = self.rows_of_run(lease, REPLIES.call, &parameters)?;
        let (mut replies, mut handed_out) = (Vec::with_capacity(rows.len()), Vec::new());
        let (mut first_open, mut last) = (wanted.from, wanted.from);
        for row in &rows {
            first_open = self.column(row, 3)?;
            let Some(key): Option<String> = self.column(row, 0)? else { break };
            last = self.column(row, 2)?;
            handed_out.push((key.clone(), last));
            replies.push(HostReply { key, body: self.column(row, 1)? });
        }
        // A full page may have left some out.
        let end = if replies.len() >= limit { first_open.min(last) } else { first_open };
        self.received.hand_out_replies(lease, handed_out, end);
        Ok(replies)
    }

    fn forget(&self, lease: &RunLease, keys: &[String]) -> Result<(), EngineError> {
        self.rows_of_run(lease, FORGET.call, &[texts(&keys)])?;
        self.received.forget(lease, keys);
        Ok(())
    }

    fn forget_all(&self, lease: &RunLease) -> Result<(), EngineError> {
        self.rows_of_run(lease, FORGET_ALL, &[])?;
        self.received.forget_all(lease);
        Ok(())
    }

    fn wait_for_mail(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError> {
        self.wait_for_news(receiver, longest)
    }
}

impl PostgresEngine {
    /// Drops those of the received requests of a host that were begun: they are not handed out again.
    fn drop_begun(&self, claim: &HostClaim) -> Result<(), EngineError> {
        let (host, epoch) = (claim.host.as_str(), stored(claim.epoch.0));
        let rows = self.many_rows(NOT_BEGUN, &[text(&host), number(&epoch)])?;
        let numbers: Result<HashSet<i64>, Failure> =
            rows.iter().map(|row| self.column(row, 0)).collect();
        self.received.keep(claim, &numbers?);
        Ok(())
    }
}

// The mail that this process has received, which is not handed out again to the same claim or lease.
//
// A note about it in the database would change the same rows as a begin or a reply, and each would wait for the other's
// disk.
//
// The mail that waiters were notified of, so that they do not loop.

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
        // A reply that was forgotten in the meantime is not noted again.
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

/// The mail that receivers were notified of, by their channels.
#[derive(Debug, Default)]
pub(super) struct ToldMail(Mutex<HashMap<String, String>>);

impl ToldMail {
    /// Notes that a receiver is notified of its mail. Returns whether the mail differs from the last time.
    pub(super) fn is_other(&self, channel: &str, mail: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(channel.to_owned(), mail.to_owned()).is_none_or(|before| before != mail)
    }
}

#[cfg(test)]
mod received_mail_tests {
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
