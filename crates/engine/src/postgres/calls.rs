//! Calls: one statement each, made again on another connection if the first was cut, and ended in time.
//!
//! One connection to a server: opened and greeted, or given up.
//!
//! The values of statements: parameters with their types, and columns of rows.

use std::error::Error as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Connection, Error, Row, Socket};

use crate::postgres::schema;
use crate::postgres::settings::{Encrypted, PostgresSettings};
use crate::{EngineAddress, EngineError};

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

/// Returns a number as the database stores it. A number that is too large becomes the largest, which no row has.
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

    /// Closes the idle connections: if one was cut, others probably were, too.
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
/// The time for telling a server that nobody waits for a statement any longer.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// A connection of the library. Its owner reads and writes its socket.
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

// Errors of the server and of connections: what they mean for a call, and their texts, which never hold a password.

/// What an error means for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The connection is no longer usable. Another connection may be.
    Broken,
    /// The statement lost against another one. It may be made again at once.
    Crossed,
    /// A row with that key is there already.
    Taken,
    /// The statement failed, and would again.
    Final,
}

/// A call that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) error: EngineError,
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The remedy for rights that are missing.
const GRANTS: &str = "the owner of the schema gives them: GRANT USAGE ON SCHEMA raymond TO …; \
    GRANT SELECT ON ALL TABLES IN SCHEMA raymond TO …; \
    GRANT INSERT ON raymond.run, raymond.log, raymond.fact, raymond.command, raymond.blob, raymond.host, raymond.request TO …; \
    GRANT UPDATE ON raymond.run, raymond.command, raymond.host, raymond.request TO …; \
    GRANT DELETE ON raymond.command, raymond.request TO …; \
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA raymond TO …; the role that creates it needs GRANT CREATE ON DATABASE … TO …";

impl Failure {
    /// Returns an error of the connection: it may pass.
    pub(super) fn unreachable(address: &EngineAddress, why: impl Into<String>) -> Self {
        let error = EngineError::Unreachable { engine: address.to_string(), why: why.into() };
        Self { kind: FailureKind::Broken, error }
    }

    /// Returns an error that stays.
    pub(super) fn refused(address: &EngineAddress, why: impl Into<String>) -> Self {
        let error = EngineError::Refused { engine: address.to_string(), why: why.into() };
        Self { kind: FailureKind::Final, error }
    }

    /// Returns an error about what is stored.
    pub(super) fn damaged(address: &EngineAddress, what: &str, why: impl Into<String>) -> Self {
        let (engine, what) = (address.to_string(), what.to_owned());
        Self {
            kind: FailureKind::Final,
            error: EngineError::Damaged { engine, what, why: why.into() },
        }
    }

    /// Judges an error of the statements that change the tables of the version before.
    pub(super) fn of_migration(address: &EngineAddress, error: &Error) -> Self {
        match error.as_db_error() {
            Some(refused) if *refused.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
                let why = "its tables are of an earlier version, and only their owner can change them: run `raymond hosts` once with the owner's address";
                Self::refused(address, why)
            }
            Some(refused)
                if [SqlState::OBJECT_IN_USE, SqlState::LOCK_NOT_AVAILABLE]
                    .contains(refused.code()) =>
            {
                let why = "its tables have an earlier version, which other raymond processes are using: end their workers and stop their runs, then connect with this version";
                Self::refused(address, why)
            }
            _ => Self::of_statement(address, error),
        }
    }

    /// Judges an error of a statement.
    pub(super) fn of_statement(address: &EngineAddress, error: &Error) -> Self {
        let Some(from_server) = error.as_db_error() else {
            return Self::unreachable(address, format!("the connection broke: {}", causes(error)));
        };
        let (code, message) = (from_server.code(), one_line(from_server.message()));
        let class = code.code().get(..2).unwrap_or_default();
        if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
        {
            return Self { kind: FailureKind::Crossed, ..Self::unreachable(address, message) };
        }
        if *code == SqlState::UNIQUE_VIOLATION {
            return Self { kind: FailureKind::Taken, ..Self::refused(address, message) };
        }
        if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            return Self::refused(address, format!("{message}; {GRANTS}"));
        }
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Self::unreachable(address, STANDBY);
        }
        if *code == SqlState::DISK_FULL {
            return Self::refused(address, format!("{message}; make room on its disk"));
        }
        let missing = [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::INVALID_SCHEMA_NAME,
        ];
        if missing.contains(code) {
            return Self::damaged(address, "the schema raymond", message);
        }
        match class {
            // It cannot be reached, has no memory or connection left, was shut down, or cancelled the statement.
            "08" | "53" | "57" | "58" => Self::unreachable(address, message),
            // A value that no column takes, or that breaks a rule of its table or a limit of the program.
            "22" | "23" | "54" => {
                let engine = address.to_string();
                let why = format!("{message} (SQLSTATE {})", code.code());
                Self { kind: FailureKind::Final, error: EngineError::Unstorable { engine, why } }
            }
            _ => Self::refused(address, format!("{message} (SQLSTATE {})", code.code())),
        }
    }

    /// Judges an error of a new connection.
    pub(super) fn of_connection(address: &EngineAddress, error: &Error) -> Self {
        if let Some(from_server) = error.as_db_error() {
            let (code, message) = (from_server.code(), one_line(from_server.message()));
            let remedy = match code.code() {
                "28P01" | "28000" => {
                    "give the right user and password, as in postgres://USER:PASSWORD@HOST/DATABASE, or have pg_hba.conf let this machine in"
                }
                "3D000" => "name a database that is there, or make it with `createdb`",
                _ => return Self::of_statement(address, error),
            };
            return Self::refused(address, format!("{message}; {remedy}"));
        }
        let why = causes(error);
        if why.contains("password missing") {
            let remedy = "write it as postgres://USER:PASSWORD@HOST/DATABASE";
            return Self::refused(
                address,
                format!("it asks for a password, but none is given; {remedy}"),
            );
        }
        if why.contains("does not support TLS") {
            let remedy = "enable TLS on the server, or write ?sslmode=disable if nobody else can read the connection";
            return Self::refused(address, format!("it offers no TLS; {remedy}"));
        }
        if is_about_certificate(error) {
            let remedy = "name the file of its authority with ?sslrootcert=FILE, and the machine as the certificate does";
            return Self::refused(
                address,
                format!("its certificate is not trusted: {why}; {remedy}"),
            );
        }
        let remedy =
            "check that PostgreSQL listens there, and the machine and the port of the address";
        Self::unreachable(address, format!("{why}; {remedy}"))
    }
}

/// What is wrong with a server that takes no writes.
pub(super) const STANDBY: &str = "it is a standby, which does not accept writes; name the primary, or all servers and ?target_session_attrs=read-write";

/// Returns whether TLS failed since the certificate was not accepted.
fn is_about_certificate(error: &Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = cause
            .downcast_ref::<rustls::Error>()
            .or_else(|| inner.and_then(|inner| inner.downcast_ref()));
        if let Some(rustls::Error::InvalidCertificate(_)) = tls {
            return true;
        }
        next = cause.source();
    }
    false
}

/// Returns an error with its causes, in one line.
fn causes(error: &Error) -> String {
    let mut parts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = cause.source();
    }
    one_line(&parts.join(": "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
