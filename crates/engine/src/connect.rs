//! An engine as an interface: the connection to it, the space of runs, and the service of workers.

use std::any::Any;
use std::fmt;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::address::EngineKind;
use crate::{EngineAddress, EngineError};
use raymond_model::id::RunId;

use crate::shared_log::{FactLog, HostMailbox, HostQuestions, HostRegistry, RunLease, SharedLog};

/// An engine.
pub trait Engine:
    SharedLog + RunSpace + FactLog + HostRegistry + HostMailbox + HostQuestions + Debug + Send + Sync
{
    /// Returns its address, which never shows a password.
    fn address(&self) -> &EngineAddress;
}

/// Connects to an engine.
///
/// # Errors
/// [`EngineError::NotBuilt`] if this program was built without it, [`EngineError::Address`],
/// [`EngineError::Unreachable`], [`EngineError::Refused`], [`EngineError::Version`].
pub fn connect(address: &EngineAddress) -> Result<Arc<dyn Engine>, EngineError> {
    match address.kind() {
        #[cfg(feature = "postgres")]
        EngineKind::Postgres => Ok(Arc::new(super::postgres::PostgresEngine::connect(address)?)),
        #[cfg(not(feature = "postgres"))]
        kind @ EngineKind::Postgres => Err(EngineError::NotBuilt { kind: kind.into() }),
        #[cfg(feature = "restate")]
        EngineKind::Restate => Ok(Arc::new(super::restate::RestateEngine::connect(address)?)),
        #[cfg(not(feature = "restate"))]
        kind @ EngineKind::Restate => Err(EngineError::NotBuilt { kind: kind.into() }),
    }
}

/// Serves an engine what it needs of a worker. Returns when somebody serves it: this one, or another one whose place it
/// takes when that is gone.
///
/// # Errors
/// As [`connect`]; [`EngineError::Refused`] if the engine needs nobody, or the options are not safe.
pub fn serve(
    address: &EngineAddress,
    options: &ServingOptions,
) -> Result<ServedEngine, EngineError> {
    match address.kind() {
        EngineKind::Postgres => Err(EngineError::Refused {
            engine: address.to_string(),
            why: format!("it does not need a listener on {}; leave out --listen", options.listen),
        }),
        #[cfg(feature = "restate")]
        EngineKind::Restate => super::restate::serving::serve(address, options),
        #[cfg(not(feature = "restate"))]
        kind @ EngineKind::Restate => Err(EngineError::NotBuilt { kind: kind.into() }),
    }
}

// The space of runs in an engine: commands from any machine, and large contents by their checksum.

/// A command that waits for the supervisor of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCommand {
    /// Its name, which is that of a file in an inbox.
    pub name: String,
    pub content: Vec<u8>,
}

/// Commands and contents.
pub trait RunSpace {
    /// Leaves a command for a run; it is durable when this returns. The same name again changes nothing.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError>;

    /// Returns the commands that wait, in the order of their names.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError>;

    /// Removes a command that a record of the run holds by now.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError>;

    /// Keeps a content under its SHA-256 checksum, in hexadecimal digits. The same content again changes nothing.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot be kept.
    fn put_blob(&self, sha256: &str, content: &[u8]) -> Result<(), EngineError>;

    /// Returns the content with a checksum. One of more than `most` bytes is not loaded.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if it is larger, [`EngineError`] if the engine cannot be asked.
    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError>;
}

/// Returns why a content is not loaded.
#[cfg(any(feature = "postgres", feature = "restate"))]
pub(super) fn too_large(bytes: u64, most: u64) -> String {
    format!("it has at least {bytes} bytes, and at most {most} are loaded")
}

// The service of workers for an engine that dials them, as a Restate server does.

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
