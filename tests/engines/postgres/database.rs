//! A database of its own for a test, and statements to it that do not go through the engine.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use raymond::engine::connect::connect;
use raymond::engine::{Engine, EngineAddress, EngineError};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::server::Server;

/// The password in all addresses of tests: no message may have it.
pub(crate) const PASSWORD: &str = "s3cret";

/// A database that the user `ray` owns.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) server: Arc<Server>,
    pub(crate) name: String,
}

impl Database {
    /// Makes a database on the server that the tests share.
    pub(crate) fn new() -> Self {
        Self::on(Server::shared())
    }

    /// Makes a database on a server.
    pub(crate) fn on(server: Arc<Server>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("work_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let database = Self { server, name };
        let mut session = database.session_in("postgres");
        session.run(&format!(
            "DO $$ BEGIN PERFORM pg_advisory_xact_lock(1); \
             IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ray') THEN \
             CREATE ROLE ray LOGIN; CREATE ROLE nothing LOGIN; \
             CREATE ROLE encrypted LOGIN; CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'; END IF; END $$"
        ));
        session.run(&format!("CREATE DATABASE {} OWNER ray", database.name));
        database
    }

    /// Returns the address for a user.
    pub(crate) fn url_of(&self, user: &str) -> String {
        format!("postgres://{user}:{PASSWORD}@127.0.0.1:{}/{}", self.server.port, self.name)
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("ray")
    }

    /// Returns the address through another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("postgres://ray:{PASSWORD}@127.0.0.1:{port}/{}", self.name)
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port
    }

    /// Connects to the database as the engine.
    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        connected(&self.url()).expect("an engine")
    }

    /// Opens a session that does not go through the engine, with all rights.
    pub(crate) fn session(&self) -> Session {
        self.session_in(&self.name)
    }

    pub(crate) fn session_in(&self, database: &str) -> Session {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.server.socket()).port(self.server.port);
        config.user("postgres").dbname(database);
        let client = runtime.block_on(async {
            let (client, mut connection) = config.connect(NoTls).await.expect("a session");
            tokio::spawn(async move {
                while poll_fn(|context| connection.poll_message(context)).await.is_some() {}
            });
            client
        });
        Session { runtime, client }
    }
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Session {
    /// Runs statements.
    #[track_caller]
    pub(crate) fn run(&mut self, statements: &str) {
        self.ask(statements);
    }

    /// Returns the first column of the first row of a statement, as text.
    #[track_caller]
    pub(crate) fn ask(&mut self, statements: &str) -> Option<String> {
        let messages = self.runtime.block_on(self.client.simple_query(statements));
        messages.expect("it succeeds").into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    }

    /// Returns the number of statements of engines that wait for a lock in this database.
    pub(crate) fn blocked(&mut self) -> usize {
        // A transaction sees the activity that it has seen first until it is told to look again.
        self.run("SELECT pg_stat_clear_snapshot()");
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
            AND application_name = 'raymond' AND wait_event_type = 'Lock'";
        self.ask(waiting).and_then(|count| count.parse().ok()).expect("a count")
    }
}

/// Connects to an engine.
pub(crate) fn connected(url: &str) -> Result<Arc<dyn Engine>, EngineError> {
    connect(&EngineAddress::parse(url).expect("an address"))
}
