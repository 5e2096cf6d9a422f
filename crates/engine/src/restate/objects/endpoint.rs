//! The endpoint that the Restate server dials, on a thread of its own.
//!
//! The signatures of the server, checked by ring, which is here for TLS already.
//!
//! The SDK judges the whole token, and leaves the arithmetic to a provider.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use std::{io, thread};

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::{self, ErrorKind};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use restate_sdk::endpoint::ServiceOptions;
use restate_sdk::http_server::HttpServer;
use restate_sdk::prelude::Endpoint;
use restate_sdk::service::IntoServiceDefinition;
use ring::signature::{ED25519, UnparsedPublicKey};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::restate::objects::services::{ContentObject, HostObject, IndexObject, RunObject};

/// The connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// An endpoint that serves the objects until it is dropped.
#[derive(Debug)]
pub(in crate::restate) struct ObjectEndpoint {
    pub(in crate::restate) address: SocketAddr,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl ObjectEndpoint {
    /// Listens, and serves the objects to the server with this key; to everybody if there is none.
    ///
    /// # Errors
    /// A text that says why it cannot listen, or why that is no key.
    pub(in crate::restate) fn start(
        address: SocketAddr,
        key: Option<&str>,
    ) -> Result<Self, String> {
        let endpoint = endpoint(key)?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let listener = runtime.block_on(async { listen(address) });
        let listener = listener.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(HttpServer::new(endpoint).serve_with_cancel(listener, stopped));
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("restate-objects".to_owned()).spawn(serve);
        thread.map_err(|error| error.to_string())?;
        Ok(Self { address, _stop: stop })
    }
}

/// Returns the objects as the server discovers them.
fn endpoint(key: Option<&str>) -> Result<Endpoint, String> {
    let options = || {
        ServiceOptions::new()
            // Nobody attaches to a call that is over: the objects know what was done.
            .journal_retention(Duration::ZERO)
            .idempotency_retention(Duration::ZERO)
            .retry_policy_initial_interval(Duration::from_millis(50))
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(Duration::from_secs(1))
            // A call that waits until somebody serves the objects again never gives up.
            .retry_policy_max_attempts(u64::from(u32::MAX))
            .retry_policy_pause_on_max_attempts()
    };
    let mut builder = Endpoint::builder();
    if let Some(key) = key {
        install();
        builder = builder.identity_key(key).map_err(|error| error.to_string())?;
    }
    Ok(builder
        .bind(RunObject.into_service_definition().options(options()))
        .bind(HostObject.into_service_definition().options(options()))
        .bind(IndexObject.into_service_definition().options(options()))
        .bind(ContentObject.into_service_definition().options(options()))
        .build())
}

/// Listens on an address. Accepted connections inherit that they do not wait for more before they send: without it
/// each answer of a handler could take 40 ms.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address.ip() {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_nodelay(true)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Has signatures checked here, in the whole process.
pub(super) fn install() {
    // An error says that it was installed before.
    let _ = PROVIDER.install_default();
}

/// The check of a signature of Ed25519, the only kind that the server makes.
struct Ed25519Verifier(UnparsedPublicKey<Vec<u8>>);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the provider has functions of this kind")]
fn verifier_factory(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> errors::Result<Box<dyn JwtVerifier>> {
    if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Ed25519Verifier(UnparsedPublicKey::new(&ED25519, key.as_bytes().to_vec()))))
}

impl Verifier<Vec<u8>> for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        self.0.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ed25519Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}
