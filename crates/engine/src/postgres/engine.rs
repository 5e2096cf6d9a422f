//! The `PostgreSQL` engine as a value: its address, its thread, the notifications to waiters, and the space of runs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raymond_model::hash::fnv_1a;
use raymond_model::host::HostName;
use raymond_model::id::RunId;
use raymond_model::mutex::lock;
use tokio::time::sleep;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::client::ClientThread;
use crate::connect::{RunSpace, SharedCommand, too_large};
use crate::postgres::calls::{
    CALL_LIMIT, LARGE_CALL_LIMIT, Links, Listener, Parameter, content, number, stored, text, texts,
};
use crate::postgres::failure::Failure;
use crate::postgres::received_mail::{NotifiedMail, ReceivedMail};
use crate::postgres::settings::PostgresSettings;
use crate::shared_log::{HostClaim, LogLine, RunLease};
use crate::{Engine, EngineAddress, EngineError};

/// A `PostgreSQL` database as an engine.
pub(crate) struct PostgresEngine {
    pub(super) links: Arc<Links>,
    pub(super) wakes: Wakes,
    pub(super) listener: Listener,
    pub(super) notified: NotifiedMail,
    pub(super) received: ReceivedMail,
    /// The last field: the thread outlives what uses it.
    _thread: ClientThread,
}

impl fmt::Debug for PostgresEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresEngine").field(self.address()).finish()
    }
}

impl Engine for PostgresEngine {
    fn address(&self) -> &EngineAddress {
        &self.links.address
    }
}

impl PostgresEngine {
    /// Connects to the database, and makes the tables if there are none.
    ///
    /// # Errors
    /// [`EngineError::Address`], [`EngineError::Unreachable`], [`EngineError::Refused`], [`EngineError::Version`].
    pub(crate) fn connect(address: &EngineAddress) -> Result<Self, EngineError> {
        let settings = PostgresSettings::read(address)?;
        let thread = ClientThread::start("postgres", address)?;
        let links = Arc::new(Links::new(address.clone(), settings, thread.handle.clone()));
        let (wakes, listener) = (Wakes::new(links.clone()), Listener::new(links.clone()));
        let (notified, received) = (NotifiedMail::default(), ReceivedMail::default());
        let engine = Self { links, wakes, listener, notified, received, _thread: thread };
        engine.warn_of_losses()?;
        Ok(engine)
    }

    /// Warns if a failure of the server's machine can lose what was acknowledged, as its owner has decided.
    fn warn_of_losses(&self) -> Result<(), Failure> {
        let row = self.row("SELECT current_setting('fsync') = 'off'", &[])?;
        if row.map_or(Ok(false), |row| self.column(&row, 0))? {
            let engine = self.address();
            tracing::warn!(%engine, "fsync is off: what it acknowledged can be lost when its machine fails");
        }
        Ok(())
    }

    /// Makes a statement, and returns its rows.
    pub(super) fn rows(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.links.call(CALL_LIMIT, statement, parameters)
    }

    /// Makes a statement that may carry much, and returns its rows.
    pub(super) fn many_rows(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.links.call(LARGE_CALL_LIMIT, statement, parameters)
    }

    /// Makes a statement, and returns its first row.
    pub(super) fn row(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Row>, Failure> {
        Ok(self.rows(statement, parameters)?.into_iter().next())
    }

    /// Returns a column of a row.
    pub(super) fn column<'r, T: FromSql<'r>>(&self, row: &'r Row, at: usize) -> Result<T, Failure> {
        row.try_get(at).map_err(|error| self.damaged_schema(error.to_string()))
    }

    /// Returns a number of a row that is never negative.
    pub(super) fn count(&self, row: &Row, at: usize) -> Result<u64, Failure> {
        let stored: i64 = self.column(row, at)?;
        u64::try_from(stored).map_err(|_| self.damaged_schema(format!("{stored} is negative")))
    }

    pub(super) fn damaged_schema(&self, why: String) -> Failure {
        Failure::damaged(self.address(), "the schema raymond", why)
    }

    /// Returns the lines of a log in rows of numbers and texts, of which none after `after` may be missing.
    pub(super) fn lines(
        &self,
        rows: &[Row],
        after: u64,
        missing: impl Fn(u64) -> Failure,
    ) -> Result<Vec<LogLine>, EngineError> {
        let line = |(row, seq)| -> Result<LogLine, Failure> {
            if self.count(row, 0)? != seq {
                return Err(missing(seq));
            }
            Ok(LogLine { seq, text: self.column(row, 1)? })
        };
        Ok(rows.iter().zip(after.saturating_add(1)..).map(line).collect::<Result<_, _>>()?)
    }

    /// Makes a statement behind the fence of a run. `parameters` are those after the run and the epoch.
    pub(super) fn rows_of_run(
        &self,
        lease: &RunLease,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, EngineError> {
        let (run, epoch) = (lease.run.as_str(), stored(lease.epoch));
        let rows = self.rows(statement, &[&[text(&run), number(&epoch)], parameters].concat())?;
        if rows.is_empty() { Err(self.taken_over(lease)?) } else { Ok(rows) }
    }

    /// Makes a statement behind the fence of a host. `parameters` are those after the host and the epoch.
    pub(super) fn rows_of_host(
        &self,
        claim: &HostClaim,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, EngineError> {
        let (host, epoch) = (claim.host.as_str(), stored(claim.epoch.0));
        let rows = self.rows(statement, &[&[text(&host), number(&epoch)], parameters].concat())?;
        if rows.is_empty() {
            return Err(EngineError::HostFenced { host: claim.host.clone() });
        }
        Ok(rows)
    }

    /// Returns why the fence of a lease was empty.
    pub(super) fn taken_over(&self, lease: &RunLease) -> Result<EngineError, Failure> {
        if self.has_run(&lease.run)? {
            Ok(EngineError::TakenOver { run: lease.run.clone() })
        } else {
            Ok(self.no_such_run(&lease.run))
        }
    }

    /// Returns whether there is a run.
    pub(super) fn has_run(&self, run: &RunId) -> Result<bool, Failure> {
        let found = self.row("SELECT 1 FROM raymond.run WHERE run = $1", &[text(&run.as_str())])?;
        Ok(found.is_some())
    }

    /// Returns the error about a run that is not there.
    pub(super) fn no_such_run(&self, run: &RunId) -> EngineError {
        EngineError::NoSuchRun { engine: self.address().to_string(), run: run.clone() }
    }
}

// Wakes waiters on other machines, once the change that they wait for is durable.
//
// `NOTIFY` takes a lock of the whole server while its transaction commits. With the write in that transaction, all
// writes would wait for the disk one after the other. So it is a separate statement. Only one runs at a time, for all
// changes since the last, because each wakes all processes of the server that listen, on any channel. If a
// notification is lost, the waiters look again after two seconds.

/// The time between two notifications, so that much news at once wakes the server's processes once.
const PAUSE: Duration = Duration::from_millis(3);

/// What somebody may wait for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Topic<'a> {
    /// Requests for a host.
    Host(&'a HostName),
    /// Replies and commands for a run.
    Run(&'a RunId),
    /// The changes of facts.
    Facts,
}

impl Topic<'_> {
    /// Returns the channel of the topic. It has a hash in place of the name, which may be too long; two topics on one
    /// channel only look once too often.
    pub(super) fn channel(self) -> String {
        let (kind, name) = match self {
            Self::Host(host) => ("host", host.as_str()),
            Self::Run(run) => ("run", run.as_str()),
            Self::Facts => ("facts", ""),
        };
        format!("raymond_{kind}_{:016x}", fnv_1a(name.bytes()))
    }
}

/// The channels that are to be notified.
#[derive(Debug, Default)]
struct Pending {
    channels: BTreeSet<String>,
    is_running: bool,
}

/// Notifies channels.
#[derive(Debug)]
pub(super) struct Wakes {
    links: Arc<Links>,
    pending: Arc<Mutex<Pending>>,
}

impl Wakes {
    pub(super) fn new(links: Arc<Links>) -> Self {
        Self { links, pending: Arc::default() }
    }

    /// Wakes the waiters for these topics, soon.
    pub(super) fn wake<'a>(&self, topics: impl IntoIterator<Item = Topic<'a>>) {
        let mut pending = lock(&self.pending);
        pending.channels.extend(topics.into_iter().map(Topic::channel));
        if !pending.channels.is_empty() && !pending.is_running {
            pending.is_running = true;
            self.links.handle.spawn(notify(self.links.clone(), self.pending.clone()));
        }
    }
}

/// Notifies until nothing is pending.
async fn notify(links: Arc<Links>, pending: Arc<Mutex<Pending>>) {
    loop {
        let channels: Vec<String> = {
            let mut pending = lock(&pending);
            let channels = std::mem::take(&mut pending.channels);
            pending.is_running = !channels.is_empty();
            channels.into_iter().collect()
        };
        if channels.is_empty() {
            return;
        }
        let statement =
            "SELECT pg_catalog.pg_notify(channel, '') FROM pg_catalog.unnest($1) AS channel";
        if let Err(failure) = links.ask(CALL_LIMIT, statement, &[texts(&channels)]).await {
            tracing::debug!(error = %failure.error, "nobody was woken");
        }
        sleep(PAUSE).await;
    }
}

// The space of runs: commands, and contents by their checksum.

const LEAVE: &str = "WITH put AS (INSERT INTO raymond.command (run, name, content) \
    SELECT run, $2, $3 FROM raymond.run WHERE run = $1 ON CONFLICT (run, name) DO NOTHING) \
    SELECT 1 FROM raymond.run WHERE run = $1";

const COMMANDS: &str = "SELECT name, content FROM raymond.command \
    WHERE run = $1 AND removed IS NULL ORDER BY name";

const REMOVE: &str = concat!(
    held_run!(),
    ", gone AS (UPDATE raymond.command SET removed = clock_timestamp(), content = '' \
     WHERE run = $1 AND name = $3 AND removed IS NULL AND EXISTS (SELECT FROM held)), \
     purged AS (DELETE FROM raymond.command WHERE run = $1 AND name <> $3 \
     AND removed < clock_timestamp() - interval '10 minutes' AND EXISTS (SELECT FROM held)) \
     SELECT 1 FROM held"
);

impl RunSpace for PostgresEngine {
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError> {
        let id = run.as_str();
        let parameters = [text(&id), text(&command.name), content(&command.content)];
        let left = self.row(LEAVE, &parameters)?;
        left.ok_or_else(|| self.no_such_run(run))?;
        self.wakes.wake([Topic::Run(run)]);
        Ok(())
    }

    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError> {
        let rows = self.many_rows(COMMANDS, &[text(&run.as_str())])?;
        if rows.is_empty() && !self.has_run(run)? {
            return Err(self.no_such_run(run));
        }
        let command = |row| -> Result<SharedCommand, EngineError> {
            Ok(SharedCommand { name: self.column(row, 0)?, content: self.column(row, 1)? })
        };
        rows.iter().map(command).collect()
    }

    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError> {
        self.rows_of_run(lease, REMOVE, &[text(&name)]).map(drop)
    }

    fn put_blob(&self, sha256: &str, bytes: &[u8]) -> Result<(), EngineError> {
        // What is there already does not cross the network again.
        let found = "SELECT 1 FROM raymond.blob WHERE sha256 = $1";
        if self.row(found, &[text(&sha256)])?.is_some() {
            return Ok(());
        }
        let put =
            "INSERT INTO raymond.blob (sha256, content) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        self.many_rows(put, &[text(&sha256), content(&bytes)])?;
        Ok(())
    }

    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError> {
        let statement = "SELECT CASE WHEN octet_length(content) <= $2 THEN content END, \
            octet_length(content)::int8 FROM raymond.blob WHERE sha256 = $1";
        let limit = stored(most);
        let rows = self.many_rows(statement, &[text(&sha256), number(&limit)])?;
        let Some(row) = rows.first() else { return Ok(None) };
        if let Some(content) = self.column(row, 0)? {
            return Ok(Some(content));
        }
        let why = too_large(self.count(row, 1)?, most);
        Err(Failure::damaged(self.address(), &format!("the content {sha256}"), why).into())
    }
}

#[cfg(test)]
mod wakes_tests {
    use super::*;

    #[test]
    fn channels_fit_into_names_of_the_database() {
        let run = RunId::parse(&"x".repeat(64)).expect("an id");
        let host = HostName::parse("a").expect("a name");
        let channels = [Topic::Run(&run), Topic::Facts, Topic::Host(&host)].map(Topic::channel);
        assert_eq!(channels[2], "raymond_host_af63dc4c8601ec8c");
        assert!(channels.iter().all(|channel| channel.len() < 64), "{channels:?}");
        assert_ne!(channels[0], channels[1]);
    }
}
