//! Calls of statements: their parameters, the connections that they are made on, and the listener for notifications.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use raymond_model::mutex::lock;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Socket};

use crate::EngineAddress;
use crate::postgres::failure::{Failure, FailureKind};
use crate::postgres::schema;
use crate::postgres::settings::{Encrypted, PostgresSettings};

// Calls: one statement each, made again on another connection if the first was cut, and ended in time.

/// The time for a call.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(8);
/// The time for a call that carries much.
pub(super) const LARGE_CALL_LIMIT: Duration = Duration::from_secs(30);
/// How often a statement is made that was cut off or lost against another one.
const ATTEMPTS: u32 = 6;

impl Links {
    /// Makes a statement, and returns its rows. Waits for them on this thread, which must not be one of a runtime.
    ///
    /// The statement may be carried out more than once: it changes nothing the second time.
    pub(super) fn call(
        &self,
        limit: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.handle.block_on(self.ask(limit, statement, parameters))
    }

    /// Makes a statement, and returns its rows.
    pub(super) async fn ask(
        &self,
        limit: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let made = timeout(limit, self.attempts(statement, parameters)).await;
        made.unwrap_or_else(|_| {
            self.close_idle();
            let seconds = limit.as_secs();
            Err(Failure::unreachable(&self.address, format!("no answer within {seconds} s")))
        })
    }

    async fn attempts(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let mut has_reconnected = false;
        for _ in 1..ATTEMPTS {
            let failure = match self.attempt(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            match failure.kind {
                FailureKind::Crossed => {}
                FailureKind::Broken if !has_reconnected => {
                    has_reconnected = true;
                    self.close_idle();
                }
                FailureKind::Broken | FailureKind::Taken | FailureKind::Final => {
                    return Err(failure);
                }
            }
        }
        self.attempt(statement, parameters).await
    }

    async fn attempt(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let lent = self.lend().await?;
        let Some(link) = &lent.link else {
            return Err(Failure::unreachable(&self.address, "the connection was given back"));
        };
        let answer = link.client.query_typed(statement, parameters).await;
        let answer = answer.map_err(|error| Failure::of_statement(&self.address, &error));
        let is_broken = matches!(&answer, Err(failure) if failure.kind == FailureKind::Broken);
        if !is_broken {
            lent.give_back();
        }
        answer
    }
}

// The values of statements: parameters with their types, and numbers as the database stores them.

/// A parameter of a statement.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Returns a parameter that is a text, or none.
pub(super) fn text(value: &(impl ToSql + Sync)) -> Parameter<'_> {
    (value, Type::TEXT)
}

/// Returns a parameter that is a list of texts.
pub(super) fn texts(value: &(impl ToSql + Sync)) -> Parameter<'_> {
    (value, Type::TEXT_ARRAY)
}

/// Returns a parameter that is a number.
pub(super) fn number(value: &i64) -> Parameter<'_> {
    (value, Type::INT8)
}

/// Returns a parameter that is a list of numbers.
pub(super) fn numbers(value: &Vec<i64>) -> Parameter<'_> {
    (value, Type::INT8_ARRAY)
}

/// Returns a parameter that is a number of seconds.
pub(super) fn seconds(value: &f64) -> Parameter<'_> {
    (value, Type::FLOAT8)
}

/// Returns a parameter that is a truth value.
pub(super) fn flag(value: &bool) -> Parameter<'_> {
    (value, Type::BOOL)
}

/// Returns a parameter that is a content.
pub(super) fn content(value: &(impl ToSql + Sync)) -> Parameter<'_> {
    (value, Type::BYTEA)
}

/// Returns a number as the database stores it. A number that is too large becomes the largest, which no row has.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a limit of rows as the database takes it.
pub(super) fn stored_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

// The connections of an engine: a few, opened as they are needed, and closed when they have been idle for long.

/// The most connections at the same time, so that ten machines fit into the 100 that a server allows by default.
const MOST: usize = 8;
/// The time after which an idle connection is closed.
const IDLE_LIMIT: Duration = Duration::from_mins(1);

/// The connections.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) address: EngineAddress,
    pub(super) settings: PostgresSettings,
    pub(super) handle: Handle,
    /// The idle ones with the time since when they are; the last one was used last.
    idle: Mutex<Vec<(Instant, Link)>>,
    permits: Semaphore,
}

impl Links {
    /// Returns no connections yet.
    pub(super) fn new(address: EngineAddress, settings: PostgresSettings, handle: Handle) -> Self {
        let permits = Semaphore::new(MOST);
        Self { address, settings, handle, idle: Mutex::default(), permits }
    }

    /// Lends a connection: an idle one, or a new one. Waits while too many are lent.
    async fn lend(&self) -> Result<LentLink<'_>, Failure> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| Failure::unreachable(&self.address, "it was left"))?;
        let idle = self.take_idle();
        let link = match idle {
            Some(link) => link,
            None => Link::open(self).await?,
        };
        Ok(LentLink { links: self, link: Some(link), _permit: permit })
    }

    /// Closes the idle connections: if one was cut, others probably were, too.
    fn close_idle(&self) {
        self.idle().clear();
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.idle();
        idle.retain(|(since, link)| link.is_open() && since.elapsed() < IDLE_LIMIT);
        idle.pop().map(|(_, link)| link)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Link)>> {
        lock(&self.idle)
    }
}

/// A connection that is lent. It is given up unless it is returned.
#[derive(Debug)]
struct LentLink<'l> {
    links: &'l Links,
    /// `None` once it is given back.
    link: Option<Link>,
    _permit: SemaphorePermit<'l>,
}

impl LentLink<'_> {
    /// Gives the connection back for the next caller: no statement is under way on it.
    fn give_back(mut self) {
        if let Some(link) = self.link.take().filter(Link::is_open) {
            self.links.idle().push((Instant::now(), link));
        }
    }
}

impl Drop for LentLink<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.give_up(self.links);
        }
    }
}

// One connection to a server: opened and greeted, or given up.

/// The time for a new connection: names, TLS, password and greeting, of all servers of the address.
const OPEN_LIMIT: Duration = Duration::from_secs(7);
/// The time for telling a server that nobody waits for a statement any longer.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// A connection of the library. Its owner reads and writes its socket.
type RawConnection = Connection<Socket, Encrypted<Socket>>;

/// Connects to a server.
async fn connect(
    settings: &PostgresSettings,
    address: &EngineAddress,
) -> Result<(Client, RawConnection), Failure> {
    let connecting = settings.config.connect(settings.tls.clone());
    match timeout(OPEN_LIMIT, connecting).await {
        Ok(connected) => connected.map_err(|error| Failure::of_connection(address, &error)),
        Err(_) => Err(late(address)),
    }
}

/// A connection.
#[derive(Debug)]
struct Link {
    client: Client,
    /// The task that reads and writes its socket.
    task: AbortHandle,
}

impl Link {
    /// Opens a connection.
    async fn open(links: &Links) -> Result<Self, Failure> {
        let Links { address, settings, handle, .. } = links;
        let opening = async {
            let (client, connection) = connect(settings, address).await?;
            let task = handle.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to the engine ended");
                }
            });
            let link = Self { client, task: task.abort_handle() };
            schema::greet(&link.client, address).await?;
            Ok(link)
        };
        timeout(OPEN_LIMIT, opening).await.unwrap_or_else(|_| Err(late(address)))
    }

    /// Returns whether it can be used.
    fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Gives up a connection on which a statement may be under way: the server is asked to cancel that.
    fn give_up(self, links: &Links) {
        let token = self.client.cancel_token();
        let tls = links.settings.tls.clone();
        let is_open = self.is_open();
        links.handle.spawn(async move {
            if is_open {
                // It is a courtesy: the statement may end by itself, and changes nothing that a later one does not
                // bear.
                let _ = timeout(CANCEL_LIMIT, token.cancel_query(tls)).await;
            }
            drop(self);
        });
    }
}

impl Drop for Link {
    /// Ends the task, which would wait for an answer that is under way.
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn late(address: &EngineAddress) -> Failure {
    let seconds = OPEN_LIMIT.as_secs();
    Failure::unreachable(address, format!("it did not let this machine in within {seconds} s"))
}

// Listens for notifications on a separate connection, from the first request or wait for mail.
//
// A pooler may hold back notifications, and a connection may be down, so waiters also poll now and then.

/// The time until another connection is tried.
const RETRY: Duration = Duration::from_secs(2);

/// A channel that somebody waits for.
#[derive(Debug)]
pub(super) struct Channel {
    /// Notified when there is news, or when news may have been missed.
    pub(super) changed: Notify,
    news: AtomicU64,
    /// True while notifications come.
    is_listening: AtomicBool,
    /// The number of notifications before the last call that asked for what the channel tells of.
    asked_at: AtomicU64,
}

/// The value of `asked_at` if nobody has asked yet.
const NEVER: u64 = u64::MAX;

impl Default for Channel {
    fn default() -> Self {
        Self {
            changed: Notify::new(),
            news: AtomicU64::new(0),
            is_listening: AtomicBool::new(false),
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
        if asked_at == NEVER || !self.is_listening.load(Ordering::Acquire) {
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
    /// Notified when there is a new channel.
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
        lock(&self.channels)
    }

    fn tell(&self, name: &str) {
        if let Some(channel) = self.channels().by_name.get(name) {
            channel.news.fetch_add(1, Ordering::AcqRel);
            channel.changed.notify_waiters();
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
            channel.is_listening.store(false, Ordering::Release);
        }
        sleep(RETRY).await;
    }
}

/// Listens on one connection until that ends.
async fn listen_once(links: &Links, shared: &Arc<Shared>) -> Result<(), Failure> {
    let (client, mut connection) = connect(&links.settings, &links.address).await?;
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
            channel.is_listening.store(true, Ordering::Release);
            channel.changed.notify_waiters();
        }
        tokio::select! {
            () = shared.added.notified() => {}
            _ = &mut reading => return Ok(()),
        }
    }
}
