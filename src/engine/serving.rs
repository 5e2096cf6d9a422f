//! The service of workers for an engine that dials them, as a Restate server does.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;

/// The options of a worker that serves an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingOptions {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// The URL under which the server reaches it; `None` for that of the address.
    pub advertise: Option<String>,
    /// The public key of the server; `None` if nobody else reaches the address.
    pub server_key: Option<String>,
}

/// A worker that serves an engine, until this is dropped.
pub struct ServedEngine {
    /// The URL under which it is reached.
    pub url: String,
    _serving: Box<dyn Any + Send>,
}

impl ServedEngine {
    #[cfg(feature = "restate")]
    pub(super) fn new(url: String, serving: impl Any + Send) -> Self {
        Self { url, _serving: Box::new(serving) }
    }
}

impl fmt::Debug for ServedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServedEngine").field(&self.url).finish()
    }
}
