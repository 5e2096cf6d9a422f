//! The mailbox of hosts.
//!
//! A request is open, answered, withdrawn or forgotten. Its row is changed under its lock, so of a withdrawal and a
//! begin at the same moment one is first, and the other sees it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use raymond_model::id::RunId;
use tokio::time::timeout;
use tokio_postgres::Row;

use super::calls::{
    CALL_LIMIT, ChannelNews, flag, number, numbers, stored, stored_limit, text, texts,
};
use super::engine::{PostgresEngine, Topic};
use super::failure::Failure;
use super::received_mail::{BEGIN, FORGET, REPLIES, REPLY, REQUESTS, SEND};
use crate::EngineError;
use crate::shared_log::{
    HostClaim, HostMailbox, HostReply, HostRequest, MailReceiver, RunLease, Withdrawal,
};

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
        self.keys(&rows)
    }

    fn begun(&self, run: &RunId) -> Result<Vec<String>, EngineError> {
        let rows = self.many_rows(BEGUN, &[text(&run.as_str())])?;
        self.keys(&rows)
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
        let (known, with_begun) = (numbers(&wanted.except), flag(&wanted.with_begun));
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
        self.keys(&rows)
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
        let parameters = [number(&wanted.from), texts(&wanted.except), number(&most)];
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

    /// Mail that the receiver was notified of before and has not taken counts only from the second look on, so that
    /// the receiver does not loop.
    fn wait_for_mail(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError> {
        let (topic, statement, name) = match receiver {
            MailReceiver::Host(host) => (Topic::Host(host), MAIL_OF_HOST, host.as_str()),
            MailReceiver::Run(run) => (Topic::Run(run), MAIL_OF_RUN, run.as_str()),
        };
        let channel = topic.channel();
        let look = async |is_first: bool| {
            let rows = self.links.ask(CALL_LIMIT, statement, &[text(&name)]).await?;
            let mail: Option<&str> = rows.first().map_or(Ok(None), |row| self.column(row, 0))?;
            Ok(mail.is_some_and(|mail| self.notified.is_other(&channel, mail) || !is_first))
        };
        self.wait(&channel, longest, look)
    }
}

// Waits: until a notification comes, or a look every two seconds finds something.

/// The time between two looks.
const POLL: Duration = Duration::from_secs(2);

/// Returns a text that changes with the requests that a host has not begun; nothing if there are none.
const MAIL_OF_HOST: &str = "SELECT count(*)::text || '/' || max(request.sent)::text \
    FROM raymond.request JOIN raymond.host ON host.host = request.host AND host.epoch = request.host_epoch \
    WHERE request.host = $1 AND request.state = 'open' AND NOT request.begun";

/// Returns a text that changes with most replies to a run, and with the commands that wait for it.
const MAIL_OF_RUN: &str = "SELECT nullif(pg_catalog.concat_ws(' ', \
    (SELECT max(answered_in)::text FROM raymond.request WHERE run = $1 AND state = 'answered'), \
    (SELECT count(*)::text || '+' || max(left_at)::text FROM raymond.command \
    WHERE run = $1 AND removed IS NULL)), '')";

impl PostgresEngine {
    /// Returns the keys in rows. A fenced statement that found nothing returns a row without one.
    fn keys<K: FromIterator<String>>(&self, rows: &[Row]) -> Result<K, EngineError> {
        let keys = rows.iter().map(|row| self.column::<Option<String>>(row, 0));
        Ok(keys.filter_map(Result::transpose).collect::<Result<_, _>>()?)
    }

    /// Drops those of the received requests of a host that were begun: they are not handed out again.
    fn drop_begun(&self, claim: &HostClaim) -> Result<(), EngineError> {
        let (host, epoch) = (claim.host.as_str(), stored(claim.epoch.0));
        let rows = self.many_rows(NOT_BEGUN, &[text(&host), number(&epoch)])?;
        let numbers: Result<HashSet<i64>, Failure> =
            rows.iter().map(|row| self.column(row, 0)).collect();
        self.received.keep(claim, &numbers?);
        Ok(())
    }

    /// Waits until a notification comes, a look finds something, or the time is over.
    pub(super) fn wait(
        &self,
        channel: &str,
        longest: Duration,
        look: impl AsyncFn(bool) -> Result<bool, Failure>,
    ) -> Result<(), EngineError> {
        let start = Instant::now();
        let channel = self.listener.channel(channel);
        let news = channel.news();
        self.links.handle.block_on(async {
            let mut is_first = true;
            loop {
                // What comes during the look is not missed.
                let mut changed = std::pin::pin!(channel.changed.notified());
                changed.as_mut().enable();
                let is_there = match (is_first, channel.since_asked()) {
                    (true, ChannelNews::Nothing) => false,
                    (true, ChannelNews::Something) => true,
                    (true, ChannelNews::Unknown) | (false, _) => look(is_first).await?,
                };
                if is_there {
                    return Ok(());
                }
                let left = longest.saturating_sub(start.elapsed());
                is_first = timeout(left.min(POLL), changed).await.is_ok();
                if channel.news() != news || start.elapsed() >= longest {
                    return Ok(());
                }
            }
        })
    }
}
