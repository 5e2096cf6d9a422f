//! An engine, and the connection to one.

use std::fmt::Debug;
use std::sync::Arc;

use super::address::{EngineAddress, EngineKind};
use super::error::EngineError;
use super::fact_log::FactLog;
use super::host_mailbox::HostMailbox;
use super::host_registry::HostRegistry;
use super::run_space::RunSpace;
use super::shared_log::SharedLog;

/// An engine.
pub trait Engine:
    SharedLog + RunSpace + FactLog + HostRegistry + HostMailbox + Debug + Send + Sync
{
    /// Returns its address, which never shows a password.
    fn address(&self) -> &EngineAddress;
}

/// Connects to an engine.
///
/// # Errors
/// [`EngineError::NotBuilt`] if this program was built without it, [`EngineError::NotThere`], [`EngineError::Address`], [`EngineError::Unreachable`],
/// [`EngineError::Refused`], [`EngineError::Version`].
pub fn connect(address: &EngineAddress) -> Result<Arc<dyn Engine>, EngineError> {
    match address.kind() {
        #[cfg(feature = "postgres")]
        EngineKind::Postgres => Ok(Arc::new(super::postgres::PostgresEngine::connect(address)?)),
        #[cfg(not(feature = "postgres"))]
        kind @ EngineKind::Postgres => Err(EngineError::NotBuilt { kind: kind.into() }),
        kind @ EngineKind::Restate => Err(EngineError::NotThere { kind: kind.into() }),
    }
}
