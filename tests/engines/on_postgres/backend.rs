//! The databases of the runs end to end.

use std::sync::Arc;

pub(crate) use crate::postgres::database::Database as Backend;
pub(crate) use crate::postgres::server::Server as BackendServer;

/// Returns a server of its own, which the test may kill.
pub(crate) fn own_server() -> Arc<BackendServer> {
    Arc::new(BackendServer::new(""))
}
