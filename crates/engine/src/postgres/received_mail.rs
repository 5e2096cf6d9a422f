//! The mail that this process has received, and the statements of each step as functions of the database.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use raymond_model::id::RunId;
use raymond_model::mutex::lock;

use crate::shared_log::{HostClaim, RunLease};

// The mail that this process has received, which is not handed out again to the same claim or lease.
//
// A note about it in the database would change the same rows as a begin or a reply, and each would wait for the other's
// disk.

/// Above this number of received requests, those that were begun are dropped.
const MANY: usize = 512;

/// The time between two calls that ask for all replies. A server that crashed may count its transactions from an
/// earlier one on.
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
        WantedReplies { from, except: known.map(|(key, _)| key.clone()).collect() }
    }
}

/// The requests that are to be asked for.
#[derive(Debug, PartialEq)]
pub(super) struct WantedRequests {
    /// The numbers of those that have been received.
    pub(super) except: Vec<i64>,
    /// True if begun requests are wanted, too.
    pub(super) with_begun: bool,
}

/// The replies that are to be asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WantedReplies {
    /// The first transaction.
    pub(super) from: i64,
    /// The keys of those that have been received from then on, and of those that the caller knows besides.
    pub(super) except: Vec<String>,
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
        let known = all.entry(claim.host.as_str().to_owned()).or_default();
        if is_first || known.epoch != claim.epoch.0 {
            let epoch = claim.epoch.0;
            *known =
                ReceivedRequests { epoch, wants_begun: is_first, ..ReceivedRequests::default() };
        }
        let numbers = keys.iter().filter_map(|key| known.handed_out.remove(key));
        known.received.extend(numbers);
        WantedRequests {
            except: known.received.iter().copied().collect(),
            with_begun: known.wants_begun,
        }
    }

    /// Notes that requests cannot be handed out to a host, so that they are not looked at again.
    pub(super) fn skip(&self, claim: &HostClaim, numbers: &[i64]) {
        if let Some(known) = lock(&self.requests).get_mut(claim.host.as_str()) {
            known.received.extend(numbers);
        }
    }

    /// Notes that requests are handed out to a host. They are the last ones that there are, or others may follow.
    pub(super) fn hand_out(&self, claim: &HostClaim, requests: Vec<(String, i64)>, is_last: bool) {
        let mut all = lock(&self.requests);
        if let Some(known) = all.get_mut(claim.host.as_str()) {
            known.handed_out.extend(requests);
            known.wants_begun &= !is_last;
        }
    }

    /// Returns whether so many requests of a host are noted that those should be dropped which were begun. While those
    /// are wanted, they would be handed out again.
    pub(super) fn has_many(&self, claim: &HostClaim) -> bool {
        let all = lock(&self.requests);
        let known = all.get(claim.host.as_str());
        known.is_some_and(|known| known.received.len() >= MANY && !known.wants_begun)
    }

    /// Keeps of the received requests of a host only those that are not begun yet.
    pub(super) fn keep(&self, claim: &HostClaim, not_begun: &HashSet<i64>) {
        if let Some(known) = lock(&self.requests).get_mut(claim.host.as_str()) {
            known.received.retain(|number| not_begun.contains(number));
        }
    }

    /// Notes that a run has received replies, and returns which ones it wants next.
    pub(super) fn replies(&self, lease: &RunLease, keys: &[String], now: Instant) -> WantedReplies {
        let mut all = lock(&self.replies);
        let known = all.entry(lease.run.clone()).or_default();
        if known.epoch != lease.epoch {
            *known = ReceivedReplies { epoch: lease.epoch, ..ReceivedReplies::default() };
        }
        // A reply that was forgotten in the meantime is not noted again.
        let received = keys.iter().filter_map(|key| known.handed_out.remove_entry(key));
        known.received.extend(received);
        let mut wanted = known.wanted(now);
        let unknown = keys.iter().filter(|key| !known.received.contains_key(*key));
        wanted.except.extend(unknown.cloned());
        wanted
    }

    /// Notes that replies are handed out to a run: all that there are before the transaction `first_open`.
    pub(super) fn hand_out_replies(
        &self,
        lease: &RunLease,
        replies: Vec<(String, i64)>,
        first_open: i64,
    ) {
        if let Some(known) = lock(&self.replies).get_mut(&lease.run) {
            known.handed_out.extend(replies);
            known.first_open = first_open;
        }
    }

    /// Notes that requests are forgotten with their replies.
    pub(super) fn forget(&self, lease: &RunLease, keys: &[String]) {
        if let Some(known) = lock(&self.replies).get_mut(&lease.run) {
            for key in keys {
                known.received.remove(key);
                known.handed_out.remove(key);
            }
        }
    }

    /// Notes that all requests of a run are forgotten.
    pub(super) fn forget_all(&self, lease: &RunLease) {
        lock(&self.replies).remove(&lease.run);
    }
}

/// The mail that receivers were notified of, by their channels, so that waiters do not loop on the same mail.
#[derive(Debug, Default)]
pub(super) struct NotifiedMail(Mutex<HashMap<String, String>>);

impl NotifiedMail {
    /// Notes that a receiver is notified of its mail. Returns whether the mail differs from the last time.
    pub(super) fn is_other(&self, channel: &str, mail: &str) -> bool {
        let before = lock(&self.0).insert(channel.to_owned(), mail.to_owned());
        before.is_none_or(|before| before != mail)
    }
}

// The statements of each step, which are functions of the schema.
//
// Each connection of the server plans a function once. Planning such a statement costs as much as executing it. A
// statement that a client prepares would be planned once, too, but a pooler in between may give each transaction
// another connection.
//
// A database gets these functions when its tables are created or migrated. If you add or change a function, raise the
// version in `schema.rs`, and let `greet` migrate the tables of the previous version. Each function returns at least
// one row, even if it found nothing, because no row means that the fence does not hold.
//
// Rows that are named by their keys are found only by these: `IS TRUE` keeps the planner from using an index with all
// rows of a run. Indexes compare with `statement_timestamp()`, because `clock_timestamp()` can change during a
// statement.

/// Makes a [`StoredStatement`] of a name, the types of its parameters, these as `$1, …`, the columns of its rows, and
/// its text.
///
/// It is planned for any values, and by its indexes: a table that has no statistics yet looks small.
macro_rules! stored_statement {
    ($name:literal, ($types:literal, $parameters:literal), $columns:literal, $body:expr) => {
        StoredStatement {
            definition: concat!(
                "CREATE OR REPLACE FUNCTION raymond.",
                $name,
                "(",
                $types,
                ") RETURNS SETOF record LANGUAGE plpgsql ",
                "SET search_path TO pg_catalog ",
                "SET plan_cache_mode TO force_generic_plan SET enable_seqscan TO off ",
                "AS $function$ BEGIN RETURN QUERY ",
                $body,
                "; END $function$;\n"
            ),
            call: concat!(
                "SELECT * FROM raymond.",
                $name,
                "(",
                $parameters,
                ") AS answer (",
                $columns,
                ")"
            ),
        }
    };
}

/// All of them.
pub(super) const STEP_STATEMENTS: [StoredStatement; 7] =
    [APPEND, SEND, REQUESTS, BEGIN, REPLY, REPLIES, FORGET];

/// Appends the lines if the one before them is the last.
///
/// The last number may be older than that of the newest log. Then the first line has the number of an existing line, so
/// the key of the table refuses all lines. It is never newer, because lines are never removed, so the numbers have no
/// gaps.
pub(super) const APPEND: StoredStatement = stored_statement!(
    "append",
    ("text, int8, int8[], text[], int8", "$1, $2, $3, $4, $5"),
    "appended int8",
    concat!(
        held_run!(),
        ", put AS (INSERT INTO raymond.log (run, seq, epoch, line) \
         SELECT $1, new.seq, $2, new.line FROM held, ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS new (seq, line) \
         WHERE coalesce((SELECT max(seq) FROM raymond.log WHERE run = $1), 0) = $5 - 1 \
         RETURNING 1) \
         SELECT (SELECT count(*) FROM put) FROM held"
    )
);

/// A request that an earlier supervisor took back is open again: the run was stopped then, and goes on now.
pub(super) const SEND: StoredStatement = stored_statement!(
    "send",
    ("text, int8, text[], text[], int8[], text[]", "$1, $2, $3, $4, $5, $6"),
    "held int4",
    concat!(
        held_run!(),
        ", put AS (INSERT INTO raymond.request AS old (key, run, host, host_epoch, body, state) \
         SELECT new.key, $1, new.host, new.host_epoch, new.body, 'open' \
         FROM held, ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6)) WITH ORDINALITY AS new (key, host, host_epoch, body, place) \
         ORDER BY new.place ON CONFLICT (key) DO UPDATE SET state = 'open', host = excluded.host, \
         host_epoch = excluded.host_epoch, body = excluded.body, sent = DEFAULT, withdrawn_by = NULL \
         WHERE old.run = $1 AND old.state = 'withdrawn' AND NOT old.begun AND old.withdrawn_by < $2) \
         SELECT 1 FROM held"
    )
);

/// Requests that were begun had been received. It only reads, so it locks nothing.
pub(super) const REQUESTS: StoredStatement = stored_statement!(
    "requests",
    ("text, int8, int8[], text[], bool, int8", "$1, $2, $3, $4, $5, $6"),
    "key text, run text, body text, sent int8",
    "WITH held AS (SELECT 1 FROM raymond.host WHERE host = $1 AND epoch = $2 \
     AND standing IN ('active', 'draining')) \
     SELECT next.key, next.run, next.body, next.sent FROM held LEFT JOIN LATERAL \
     (SELECT key, run, body, sent FROM raymond.request \
     WHERE host = $1 AND host_epoch = $2 AND state = 'open' AND ($5 OR NOT begun) \
     AND sent <> ALL ($3) AND key <> ALL ($4) ORDER BY sent LIMIT $6) AS next ON true ORDER BY next.sent"
);

/// Rows are locked in the order of their keys, as everywhere where one statement locks several.
pub(super) const BEGIN: StoredStatement = stored_statement!(
    "begin_requests",
    ("text, int8, text[]", "$1, $2, $3"),
    "key text",
    concat!(
        held_host!(),
        ", picked AS MATERIALIZED (SELECT key FROM raymond.request \
         WHERE key = ANY ($3) AND (host = $1 AND host_epoch = $2 AND state IN ('open', 'answered')) IS TRUE \
         AND EXISTS (SELECT FROM held) ORDER BY key FOR UPDATE), \
         put AS (UPDATE raymond.request AS old SET begun = true FROM picked WHERE old.key = picked.key) \
         SELECT picked.key FROM held LEFT JOIN picked ON true"
    )
);

/// The first reply stays.
pub(super) const REPLY: StoredStatement = stored_statement!(
    "reply",
    ("text, int8, text[], text[]", "$1, $2, $3, $4"),
    "run text",
    concat!(
        held_host!(),
        ", picked AS MATERIALIZED (SELECT old.key, new.body FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS new (key, body) \
         JOIN raymond.request AS old ON old.key = new.key \
         WHERE (old.host = $1 AND old.host_epoch = $2 AND old.state = 'open') IS TRUE \
         AND EXISTS (SELECT FROM held) ORDER BY old.key FOR UPDATE OF old), \
         put AS (UPDATE raymond.request AS old \
         SET state = 'answered', reply = picked.body, answered = clock_timestamp(), \
         answered_in = pg_catalog.txid_current(), begun = true \
         FROM picked WHERE old.key = picked.key RETURNING old.run) \
         SELECT DISTINCT put.run FROM held LEFT JOIN put ON true"
    )
);

/// The replies from a transaction on, except some, and the first transaction that may still reply. All earlier
/// transactions are over.
///
/// It only reads, so it locks nothing.
pub(super) const REPLIES: StoredStatement = stored_statement!(
    "replies",
    ("text, int8, int8, text[], int8", "$1, $2, $3, $4, $5"),
    "key text, reply text, answered_in int8, first_open int8",
    "WITH held AS (SELECT 1 FROM raymond.run WHERE run = $1 AND epoch = $2) \
     SELECT next.key, next.reply, next.answered_in, \
     pg_catalog.txid_snapshot_xmin(pg_catalog.txid_current_snapshot()) FROM held LEFT JOIN LATERAL \
     (SELECT key, reply, answered_in FROM raymond.request \
     WHERE run = $1 AND state = 'answered' AND answered_in >= $3 AND key NOT LIKE '?%' \
     AND NOT EXISTS (SELECT FROM pg_catalog.unnest($4) AS known (key) WHERE known.key = request.key) \
     ORDER BY answered_in, key LIMIT $5) AS next ON true ORDER BY next.answered_in, next.key"
);

/// Rows are locked in the order of their keys. Old rows, of any run, are deleted along the way.
pub(super) const FORGET: StoredStatement = stored_statement!(
    "forget",
    ("text, int8, text[]", "$1, $2, $3"),
    "held int4",
    concat!(
        held_run!(unflushed),
        ", picked AS MATERIALIZED (SELECT key FROM raymond.request \
         WHERE key = ANY ($3) AND (run = $1 AND state <> 'forgotten') IS TRUE AND EXISTS (SELECT FROM held) \
         ORDER BY key FOR UPDATE), \
         gone AS (UPDATE raymond.request AS old \
         SET state = 'forgotten', forgotten = clock_timestamp(), body = '', reply = NULL \
         FROM picked WHERE old.key = picked.key), \
         purged AS (DELETE FROM raymond.request WHERE key IN (SELECT key FROM raymond.request \
         WHERE state = 'forgotten' AND forgotten < statement_timestamp() - interval '10 minutes' \
         AND EXISTS (SELECT FROM held) ORDER BY forgotten LIMIT 500 FOR UPDATE SKIP LOCKED)) \
         SELECT 1 FROM held"
    )
);

/// A statement as a function of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredStatement {
    /// The statement that makes the function, or replaces it.
    pub(super) definition: &'static str,
    /// The statement that calls it, with the same parameters.
    pub(super) call: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: WantedReplies = WantedReplies { from: 0, except: Vec::new() };

    fn key(name: &str) -> String {
        name.to_owned()
    }

    fn lease(epoch: u64) -> RunLease {
        RunLease { run: RunId::parse("r").expect("an id"), epoch }
    }

    #[test]
    fn replies_are_asked_for_from_the_first_open_transaction() {
        let (mail, held, now) = (ReceivedMail::default(), lease(1), Instant::now());
        let wanted = |keys: &[String]| mail.replies(&held, keys, now);
        assert_eq!(wanted(&[]), ALL);
        mail.hand_out_replies(&held, vec![(key("a"), 4), (key("b"), 8)], 6);
        // Only one was received: the other one is handed out again, also if it is older.
        assert_eq!(wanted(&[key("b")]), WantedReplies { from: 4, except: vec![key("b")] });
        mail.hand_out_replies(&held, vec![(key("a"), 4)], 7);
        assert_eq!(wanted(&[key("a")]), WantedReplies { from: 7, except: vec![key("b")] });
        mail.hand_out_replies(&held, Vec::new(), 9);
        assert_eq!(wanted(&[]), WantedReplies { from: 9, except: Vec::new() });
        let other = mail.replies(&lease(2), &[], now);
        assert_eq!(other, ALL, "another supervisor has received none");
    }

    #[test]
    fn all_replies_are_asked_for_now_and_then() {
        let (mail, held, now) = (ReceivedMail::default(), lease(1), Instant::now());
        mail.replies(&held, &[], now);
        mail.hand_out_replies(&held, vec![(key("a"), 70)], 90);
        assert_eq!(mail.replies(&held, &[key("a")], now).from, 90);
        let wanted = mail.replies(&held, &[], now + LOOK_AT_ALL);
        assert_eq!(wanted, WantedReplies { from: 0, except: vec![key("a")] });
        assert_eq!(mail.replies(&held, &[], now + LOOK_AT_ALL).from, 90);
    }
}
