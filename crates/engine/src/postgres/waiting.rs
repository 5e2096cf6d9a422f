//! Waits for mail and for changes of facts: until a notification comes, or a look every two seconds finds some.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::calls::{CALL_LIMIT, ChannelNews};
use super::engine::PostgresEngine;
use super::failure::Failure;
use crate::EngineError;
use crate::postgres::calls::{number, stored, text};
use crate::postgres::engine::Topic;
use crate::shared_log::MailReceiver;

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

/// Returns a text if there is a later change of a fact.
const CHANGES: &str = "SELECT max(number)::text FROM raymond.fact WHERE number > $1";

impl PostgresEngine {
    /// Waits for the mail of a receiver. Mail that it was already notified of and has not taken counts only from the
    /// second look on, so that the receiver does not loop.
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

    /// Waits for a change of a fact after the change with the number `after`.
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
                let is_there = match (is_first, channel.since_asked()) {
                    (true, ChannelNews::Nothing) => false,
                    (true, ChannelNews::Something) => true,
                    (true, ChannelNews::Unknown) | (false, _) => look(is_first).await?,
                };
                if is_there {
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
