//! The servers of the runs end to end. Each has its own, since their runs have the same names.

use std::sync::Arc;

use raymond::engine::Engine;

pub(crate) use crate::restate::server::RestateServer as BackendServer;

/// The engine of a cluster.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) server: Arc<BackendServer>,
}

impl Backend {
    pub(crate) fn new() -> Self {
        Self::on(own_server())
    }

    pub(crate) fn on(server: Arc<BackendServer>) -> Self {
        Self { server }
    }

    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        self.server.engine()
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the address through another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        self.server.url_at(port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.ingress
    }
}

/// Returns a server of its own, which the test may kill.
pub(crate) fn own_server() -> Arc<BackendServer> {
    Arc::new(BackendServer::served())
}
