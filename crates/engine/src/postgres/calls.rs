//! Calls: one statement each, made again on another connection if the first was cut, and ended in time.
//!
//! One connection to a server: opened and greeted, or given up.
//!
//! The values of statements: parameters with their types, and columns of rows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Connection, Row, Socket};

use crate::EngineAddress;
use crate::postgres::failure::{Failure, FailureKind};
use crate::postgres::schema;
use crate::postgres::settings::Encrypted;
use crate::postgres::settings::PostgresSettings;

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
        let Some(link) = lent.link() else {
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

/// Returns a number as the database stores it. One that is too large becomes the largest, which no row has.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a limit of rows as the database takes it.
pub(super) fn stored_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

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
    pub(super) async fn lend(&self) -> Result<LentLink<'_>, Failure> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| Failure::unreachable(&self.address, "it was left"))?;
        let idle = self.take_idle();
        let link = match idle {
            Some(link) => link,
            None => Link::open(&self.settings, &self.address, &self.handle).await?,
        };
        Ok(LentLink { links: self, link: Some(link), _permit: permit })
    }

    /// Closes the idle connections: one that was cut is a sign that others are.
    pub(super) fn close_idle(&self) {
        self.idle().clear();
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.idle();
        idle.retain(|(since, link)| link.is_open() && since.elapsed() < IDLE_LIMIT);
        idle.pop().map(|(_, link)| link)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Link)>> {
        // The list is whole at any time, so a panic elsewhere does not matter.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is lent. It is given up unless it is returned.
#[derive(Debug)]
pub(super) struct LentLink<'l> {
    links: &'l Links,
    link: Option<Link>,
    _permit: SemaphorePermit<'l>,
}

impl LentLink<'_> {
    /// Returns the connection, until it is given back.
    pub(super) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Gives the connection back for the next caller: no statement is under way on it.
    pub(super) fn give_back(mut self) {
        if let Some(link) = self.link.take().filter(Link::is_open) {
            self.links.idle().push((Instant::now(), link));
        }
    }
}

impl Drop for LentLink<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.give_up(&self.links.settings, &self.links.handle);
        }
    }
}

/// The time for a new connection: names, TLS, password and greeting, of all servers of the address.
const OPEN_LIMIT: Duration = Duration::from_secs(7);
/// The time for telling a server that nobody waits for a statement any more.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// A connection as the library has it: whoever owns it reads and writes its socket.
type RawConnection = Connection<Socket, Encrypted<Socket>>;

/// Connects to a server.
pub(super) async fn connect(
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
pub(super) struct Link {
    pub(super) client: Client,
    /// The task that reads and writes its socket.
    task: AbortHandle,
}

impl Link {
    /// Opens a connection.
    pub(super) async fn open(
        settings: &PostgresSettings,
        address: &EngineAddress,
        handle: &Handle,
    ) -> Result<Self, Failure> {
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
    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Gives up a connection on which a statement may be under way: the server is asked to cancel that.
    pub(super) fn give_up(self, settings: &PostgresSettings, handle: &Handle) {
        let token = self.client.cancel_token();
        let tls = settings.tls.clone();
        let is_open = self.is_open();
        handle.spawn(async move {
            if is_open {
                // It is a courtesy: the statement may end by itself, and changes nothing that a later one does not bear.
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
