//! An engine, and the connection to one.

use std::fmt::Debug;
use std::sync::Arc;

use super::address::{EngineAddress, EngineKind};
use super::error::EngineError;
use super::fact_log::FactLog;
use super::host_mailbox::HostMailbox;
use super::host_questions::HostQuestions;
use super::host_registry::HostRegistry;
use super::run_space::RunSpace;
use super::serving::{ServedEngine, ServingOptions};
use super::shared_log::SharedLog;

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
/// [`EngineError::NotBuilt`] if this program was built without it, [`EngineError::Address`], [`EngineError::Unreachable`],
/// [`EngineError::Refused`], [`EngineError::Version`].
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
