//! Waits for mail and for lines: until a notification comes, or a look every two seconds finds some.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::calls::CALL_LIMIT;
use super::engine::PostgresEngine;
use super::failure::Failure;
use super::values::{number, stored, text};
use super::wakes::Topic;
use crate::domain::id::RunId;
use crate::engine::EngineError;
use crate::engine::host_mailbox::MailReceiver;

/// The time between two looks.
const POLL: Duration = Duration::from_secs(2);

/// Returns a text that changes with the requests that a host has not received; nothing if there are none.
const MAIL_OF_HOST: &str = "SELECT count(*)::text || '/' || max(request.sent)::text \
    FROM raymond.request JOIN raymond.host ON host.host = request.host AND host.epoch = request.host_epoch \
    WHERE request.host = $1 AND request.state = 'open' AND NOT request.received";

/// Returns a text that changes with the replies that a run has not received and the commands that wait for it.
const MAIL_OF_RUN: &str = "SELECT nullif(concat_ws(' ', \
    (SELECT count(*)::text || '/' || max(request.answered)::text \
    FROM raymond.request JOIN raymond.run ON run.run = request.run WHERE request.run = $1 \
    AND request.state = 'answered' AND request.read_by IS DISTINCT FROM run.epoch), \
    (SELECT count(*)::text || '+' || max(left_at)::text FROM raymond.command \
    WHERE run = $1 AND removed IS NULL)), '')";

/// Returns a text if the log has a later record.
const LINES: &str = "SELECT max(seq)::text FROM raymond.log WHERE run = $1 AND seq > $2";

/// Returns a text if there is a later change of a fact.
const CHANGES: &str = "SELECT max(number)::text FROM raymond.fact WHERE number > $1";

impl PostgresEngine {
    /// Waits for the mail of a receiver. Mail of which it was told already, and which it has left where it is, counts from
    /// the second look on, so that it does not wait in circles.
    pub(super) fn wait_for_news(
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
            let rows = self.links().ask(CALL_LIMIT, statement, &[text(&name)]).await?;
            let mail: Option<&str> = rows.first().map_or(Ok(None), |row| self.column(row, 0))?;
            Ok(mail.is_some_and(|mail| self.told.is_other(&channel, mail) || !is_first))
        };
        self.wait(&channel, longest, look)
    }

    /// Waits for a record of a log after the record `after`.
    pub(super) fn wait_for_record(
        &self,
        run: &RunId,
        after: u64,
        longest: Duration,
    ) -> Result<(), EngineError> {
        let (name, after) = (run.as_str(), stored(after));
        let look = async |_| {
            let rows = self.links().ask(CALL_LIMIT, LINES, &[text(&name), number(&after)]).await?;
            let line: Option<&str> = rows.first().map_or(Ok(None), |row| self.column(row, 0))?;
            Ok(line.is_some())
        };
        self.wait(&Topic::Log(run).channel(), longest, look)
    }

    /// Waits for a change of a fact after the one with the number `after`.
    pub(super) fn wait_for_change(&self, after: u64, longest: Duration) -> Result<(), EngineError> {
        let after = stored(after);
        let look = async |_| {
            let rows = self.links().ask(CALL_LIMIT, CHANGES, &[number(&after)]).await?;
            let change: Option<&str> = rows.first().map_or(Ok(None), |row| self.column(row, 0))?;
            Ok(change.is_some())
        };
        self.wait(&Topic::Facts.channel(), longest, look)
    }

    /// Waits until a notification comes, a look finds something, or the time is over.
    fn wait(
        &self,
        channel: &str,
        longest: Duration,
        look: impl AsyncFn(bool) -> Result<bool, Failure>,
    ) -> Result<(), EngineError> {
        let start = Instant::now();
        let channel = self.listener.channel(channel);
        let news = channel.news();
        self.links().handle.block_on(async {
            let mut is_first = true;
            loop {
                // What comes during the look is not missed.
                let mut told = std::pin::pin!(channel.told.notified());
                told.as_mut().enable();
                if look(is_first).await? {
                    return Ok(());
                }
                let left = longest.saturating_sub(start.elapsed());
                is_first = timeout(left.min(POLL), told).await.is_ok();
                if channel.news() != news || start.elapsed() >= longest {
                    return Ok(());
                }
            }
        })
    }
}
