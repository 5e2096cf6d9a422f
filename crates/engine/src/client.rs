//! What the engines need to talk to their servers: the thread of the connections, TLS, locks, and texts of errors.

use std::error::Error;
use std::thread;

use raymond_model::words::joined_words;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::{EngineAddress, EngineError};

/// The thread that drives the connections of an engine, until the engine is dropped. Callers wait on their own threads;
/// it drives the sockets, the clock and the tasks.
#[derive(Debug)]
pub(crate) struct ClientThread {
    /// The handle for tasks and for callers.
    pub(crate) handle: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl ClientThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] if the system has no thread or no descriptor left.
    pub(crate) fn start(name: &str, address: &EngineAddress) -> Result<Self, EngineError> {
        let failed = |error: std::io::Error| {
            let why = format!("this machine has no thread for it: {error}");
            EngineError::unreachable(address, why)
        };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let drive = move || {
            // An error says that the sender was dropped, which is the only message.
            let _ = runtime.block_on(stopped);
            // A name that is still looked up would hold the thread.
            runtime.shutdown_background();
        };
        thread::Builder::new().name(name.to_owned()).spawn(drive).map_err(failed)?;
        Ok(Self { handle, _stop: stop })
    }
}

/// Returns the certificates that are trusted: those of the machine and Mozilla's.
pub(crate) fn trusted_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Returns the TLS of a client that trusts these certificates.
///
/// # Errors
/// A text that says why there is none.
pub(crate) fn tls(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = rustls::crypto::ring::default_provider().into();
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Returns an error and its causes in one line, each text once.
pub(crate) fn causes(error: Option<&(dyn Error + 'static)>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = error;
    while let Some(cause) = next {
        let text = cause.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = cause.source();
    }
    joined_words(&parts.join(": "))
}
