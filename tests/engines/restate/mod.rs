//! Real Restate servers for tests.

pub(crate) mod server;
