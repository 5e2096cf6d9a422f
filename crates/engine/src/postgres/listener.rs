//! Listens for notifications on a separate connection, from the first request or wait for mail.
//!
//! A pooler may hold back notifications, and a connection may be down, so waiters also poll now and then.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::AsyncMessage;

use super::calls::{CALL_LIMIT, Failure};
use super::engine::PostgresEngine;
use crate::EngineError;
use crate::host_mailbox::MailReceiver;
use crate::postgres::calls;
use crate::postgres::calls::{Links, number, stored, text};
use crate::postgres::engine::Topic;

/// The time until another connection is tried.
const RETRY: Duration = Duration::from_secs(2);

/// A channel that somebody waits for.
#[derive(Debug)]
pub(super) struct Channel {
    /// Told when there is news, or when news may have been missed.
    pub(super) told: Notify,
    news: AtomicU64,
    /// True while notifications come.
    is_heard: AtomicBool,
    /// The number of notifications before the last call that asked for what the channel tells of.
    asked_at: AtomicU64,
}

/// The value of `asked_at` if nobody has asked yet.
const NEVER: u64 = u64::MAX;

impl Default for Channel {
    fn default() -> Self {
        Self {
            told: Notify::new(),
            news: AtomicU64::new(0),
            is_heard: AtomicBool::new(false),
            asked_at: AtomicU64::new(NEVER),
        }
    }
}

/// The news on a channel since somebody asked last.
#[derive(Debug, PartialEq)]
pub(super) enum ChannelNews {
    Nothing,
    Something,
    /// Notifications do not come, or nobody has asked yet.
    Unknown,
}

impl Channel {
    /// Returns the number of notifications up to now.
    pub(super) fn news(&self) -> u64 {
        self.news.load(Ordering::Acquire)
    }

    /// Notes that somebody is about to ask for what the channel tells of.
    pub(super) fn ask(&self) {
        self.asked_at.store(self.news(), Ordering::Release);
    }

    /// Returns what has come about since somebody asked last.
    pub(super) fn since_asked(&self) -> ChannelNews {
        let asked_at = self.asked_at.load(Ordering::Acquire);
        if asked_at == NEVER || !self.is_heard.load(Ordering::Acquire) {
            ChannelNews::Unknown
        } else if asked_at == self.news() {
            ChannelNews::Nothing
        } else {
            ChannelNews::Something
        }
    }
}

/// The channels by their names.
#[derive(Debug, Default)]
struct Channels {
    by_name: HashMap<String, Arc<Channel>>,
    is_running: bool,
}

#[derive(Debug, Default)]
struct Shared {
    channels: Mutex<Channels>,
    /// Told when there is a new channel.
    added: Notify,
}

/// Listens for notifications.
#[derive(Debug)]
pub(super) struct Listener {
    links: Arc<Links>,
    shared: Arc<Shared>,
}

impl Listener {
    pub(super) fn new(links: Arc<Links>) -> Self {
        Self { links, shared: Arc::default() }
    }

    /// Returns a channel, and listens to it from soon on.
    pub(super) fn channel(&self, name: &str) -> Arc<Channel> {
        let mut channels = self.shared.channels();
        if !channels.is_running {
            channels.is_running = true;
            self.links.handle.spawn(listen(self.links.clone(), self.shared.clone()));
        }
        if let Some(channel) = channels.by_name.get(name) {
            return channel.clone();
        }
        let channel = Arc::new(Channel::default());
        channels.by_name.insert(name.to_owned(), channel.clone());
        self.shared.added.notify_one();
        channel
    }
}

impl Shared {
    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, name: &str) {
        if let Some(channel) = self.channels().by_name.get(name) {
            channel.news.fetch_add(1, Ordering::AcqRel);
            channel.told.notify_waiters();
        }
    }
}

/// Listens until the engine is dropped, which ends the thread of this task.
async fn listen(links: Arc<Links>, shared: Arc<Shared>) {
    loop {
        if let Err(failure) = listen_once(&links, &shared).await {
            tracing::debug!(error = %failure.error, "no notifications from the engine");
        }
        for channel in shared.channels().by_name.values() {
            channel.is_heard.store(false, Ordering::Release);
        }
        sleep(RETRY).await;
    }
}

/// Listens on one connection until that ends.
async fn listen_once(links: &Links, shared: &Arc<Shared>) -> Result<(), Failure> {
    let (client, mut connection) = calls::connect(&links.settings, &links.address).await?;
    let receiver = shared.clone();
    let mut reading = links.handle.spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                receiver.tell(notification.channel());
            }
        }
    });
    let mut known = Vec::new();
    loop {
        let added: Vec<(String, Arc<Channel>)> = {
            let channels = shared.channels();
            let added = channels.by_name.iter().filter(|(name, _)| !known.contains(*name));
            added.map(|(name, channel)| (name.clone(), channel.clone())).collect()
        };
        for (name, channel) in added {
            let listening = client.batch_execute(&format!("LISTEN {name}")).await;
            listening.map_err(|error| Failure::of_statement(&links.address, &error))?;
            known.push(name);
            // What came before was missed, so it is looked for.
            channel.news.fetch_add(1, Ordering::AcqRel);
            channel.is_heard.store(true, Ordering::Release);
            channel.told.notify_waiters();
        }
        tokio::select! {
            () = shared.added.notified() => {}
            _ = &mut reading => return Ok(()),
        }
    }
}

// Waits for mail and for changes of facts: until a notification comes, or a look every two seconds finds some.

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
