//! The HTTP client for the server, and the thread that drives it.

use std::io;
use std::thread;
use std::time::Duration;

use reqwest::redirect::Policy;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The time for a new connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The thread that drives the connections, until it is dropped. Callers wait on their own threads.
#[derive(Debug)]
pub(super) struct ClientThread {
    pub(super) handle: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl ClientThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The error of the system if it has no thread or no descriptor left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("restate".to_owned()).spawn(move || {
            // An error says that the sender was dropped, which is the only message.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _stop: stop })
    }
}

/// Returns a client that asks the server itself: no proxy stands between, and no redirect is followed.
///
/// # Errors
/// A text that says why there is no client.
pub(super) fn client() -> Result<reqwest::Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = rustls::crypto::ring::default_provider().into();
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .no_proxy()
        .build()
        .map_err(|error| error.to_string())
}
