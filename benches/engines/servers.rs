//! The servers that are measured. Each has its own data, and ends with its value.

use std::sync::Arc;

use raymond::engine::Engine;

use crate::postgres::database::Database;
use crate::restate::server::RestateServer;

/// A server of an engine, with a place of its own there.
pub(crate) enum BenchServer {
    Postgres(Database),
    /// This process serves its objects.
    Restate(Box<RestateServer>),
}

/// Makes a server.
pub(crate) type MakeServer = fn() -> BenchServer;

impl BenchServer {
    pub(crate) fn postgres() -> Self {
        Self::Postgres(Database::new())
    }

    pub(crate) fn restate() -> Self {
        Self::Restate(Box::new(RestateServer::served()))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url(),
            Self::Restate(server) => server.url(),
        }
    }

    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        match self {
            Self::Postgres(database) => database.engine(),
            Self::Restate(server) => server.engine(),
        }
    }
}
