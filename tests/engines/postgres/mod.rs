//! Real `PostgreSQL` servers for tests.

pub(crate) mod database;
pub(crate) mod network;
pub(crate) mod server;
