//! The endpoint that the Restate server dials, on a separate thread, and the objects that it serves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use std::{io, thread};

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, errors};
use restate_sdk::endpoint::ServiceOptions;
use restate_sdk::http_server::HttpServer;
use restate_sdk::prelude::{Endpoint, *};
use restate_sdk::service::IntoServiceDefinition;
use ring::signature::{ED25519, UnparsedPublicKey};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::run_calls::{LeasedDeed, RunAnswer, RunCall, RunLook, RunTopic, WaitCall};
use super::state::{
    HOST, HostCall, HostLook, IndexAnswer, IndexCall, IndexLook, IndexedRun, ObjectState, RUN,
    Undecided, VERSION, changed, changed_fact, looked, now, read, woken, written,
};
use super::{host, run, run_log};

/// The connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// An endpoint that serves the objects until it is dropped.
#[derive(Debug)]
pub(crate) struct ObjectEndpoint {
    pub(crate) address: SocketAddr,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl ObjectEndpoint {
    /// Listens, and serves the objects to the server with this key; to everybody without a key.
    ///
    /// # Errors
    /// A text that says why it cannot listen, or why the key is not valid.
    pub(crate) fn start(address: SocketAddr, key: Option<&str>) -> Result<Self, String> {
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

// The signatures of the server, checked by ring, which TLS already requires.
//
// The SDK verifies the whole token, and leaves the arithmetic to a provider.

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

// The objects as the server calls them. Their calls are bytes, so that calls of another version can be detected.

fn head() -> Vec<String> {
    vec![run_log::HEAD.to_owned()]
}

/// The object of a run.
pub(super) struct RunObject;

#[restate_sdk::object(name = "RaymondRun", client_visibility = "pub(super)", lazy_state)]
impl RunObject {
    /// Carries calls out, one after the other, and returns an answer to each.
    #[handler]
    async fn change(&self, ctx: ObjectContext<'_>, calls: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let calls: Vec<RunCall> = read(&calls)?;
        let first = calls.iter().flat_map(run::first_keys).collect();
        let id = ctx.key().to_owned();
        let mut answers = changed(&ctx, first, |state| run::decide_all(&id, &calls, state)).await?;
        for (call, answer) in calls.into_iter().zip(&mut answers) {
            // No other call of this run is carried out meanwhile, so the lease is still the newest.
            if let RunCall::Leased { deed: LeasedDeed::ChangeFact { change }, .. } = call
                && *answer == RunAnswer::Done
            {
                *answer = changed_fact(&ctx, change).await?;
            }
        }
        Ok(written(&answers)?)
    }

    #[handler]
    async fn look(&self, ctx: SharedObjectContext<'_>, look: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let look: RunLook = read(&look)?;
        Ok(written(&looked(&ctx, head(), |state| run::look(&look, state)).await?)?)
    }

    #[handler]
    async fn wait(&self, ctx: SharedObjectContext<'_>, call: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let WaitCall { topic, seen, longest_ms } = read(&call)?;
        let to_wait = looked(&ctx, head(), |state| run::to_wait(topic, seen, state)).await?;
        let news = match to_wait {
            Err(news) => news,
            Ok(behind) => {
                let watch = |awakeable| [RunCall::Watch { awakeable, topic, seen: behind }];
                woken(&ctx, RUN, watch, behind, longest_ms).await?
            }
        };
        Ok(written(&news)?)
    }
}

/// The object of a host.
pub(super) struct HostObject;

#[restate_sdk::object(name = "RaymondHost", client_visibility = "pub(super)", lazy_state)]
impl HostObject {
    #[handler]
    async fn change(&self, ctx: ObjectContext<'_>, call: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let call: HostCall = read(&call)?;
        // The time is noted, so that a call that is made again decides the same.
        let at = if host::needs_time(&call) { ctx.run(|| async { Ok(now()) }).await? } else { 0 };
        let name = ctx.key().to_owned();
        Ok(written(&changed(&ctx, head(), |state| host::decide(&name, &call, at, state)).await?)?)
    }

    #[handler]
    async fn look(&self, ctx: SharedObjectContext<'_>, look: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let look: HostLook = read(&look)?;
        Ok(written(&looked(&ctx, head(), |state| host::look(&look, now(), state)).await?)?)
    }

    #[handler]
    async fn wait(&self, ctx: SharedObjectContext<'_>, call: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let WaitCall { topic: RunTopic::Mail | RunTopic::Lines, seen, longest_ms } = read(&call)?;
        let news = match looked(&ctx, head(), |state| host::to_wait(seen, state)).await? {
            Err(news) => news,
            Ok(behind) => {
                let watch = |awakeable| HostCall::Watch { awakeable, seen: behind };
                woken(&ctx, HOST, watch, behind, longest_ms).await?
            }
        };
        Ok(written(&news)?)
    }
}

/// The index of runs and hosts.
pub(super) struct IndexObject;

#[restate_sdk::object(name = "RaymondIndex", client_visibility = "pub(super)", lazy_state)]
impl IndexObject {
    #[handler]
    async fn change(&self, ctx: ObjectContext<'_>, call: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let call: IndexCall = read(&call)?;
        Ok(written(&changed(&ctx, Vec::new(), |state| decide(&call, state)).await?)?)
    }

    #[handler]
    async fn look(&self, ctx: SharedObjectContext<'_>, look: Vec<u8>) -> HandlerResult<Vec<u8>> {
        let look: IndexLook = read(&look)?;
        Ok(written(&looked(&ctx, Vec::new(), |state| looked_up(&look, state)).await?)?)
    }
}

const CONTENT_KEY: &str = "content";

/// A content, or a piece of one. It never changes.
pub(super) struct ContentObject;

#[restate_sdk::object(name = "RaymondContent", client_visibility = "pub(super)", lazy_state)]
impl ContentObject {
    #[handler]
    async fn change(&self, ctx: ObjectContext<'_>, content: Vec<u8>) -> HandlerResult<Vec<u8>> {
        if ctx.get::<Vec<u8>>(CONTENT_KEY).await?.is_none() {
            ctx.set(CONTENT_KEY, content);
        }
        Ok(Vec::new())
    }

    /// Returns a byte that says whether there is a content, and the content.
    #[handler]
    async fn look(
        &self,
        ctx: SharedObjectContext<'_>,
        _nothing: Vec<u8>,
    ) -> HandlerResult<Vec<u8>> {
        let content = ctx.get::<Vec<u8>>(CONTENT_KEY).await?;
        Ok(content.map_or_else(|| vec![0], |content| [&[1], &content[..]].concat()))
    }
}

// The decisions of the index: which runs and hosts there are.

const RUNS: &str = "runs";
const HOSTS: &str = "hosts";

/// Changes the index.
pub(super) fn decide(
    call: &IndexCall,
    state: &mut ObjectState<'_>,
) -> Result<IndexAnswer, Undecided> {
    match call {
        IndexCall::SetRun { run, state: indexed } => {
            let mut runs: BTreeMap<String, IndexedRun> = state.get_or_default(RUNS)?;
            runs.insert(run.clone(), indexed.clone());
            state.set(RUNS, &runs)?;
        }
        IndexCall::AddHost { host } => {
            let mut hosts: BTreeSet<String> = state.get_or_default(HOSTS)?;
            hosts.insert(host.clone());
            state.set(HOSTS, &hosts)?;
        }
    }
    Ok(IndexAnswer::Done)
}

/// Answers a question.
pub(super) fn looked_up(
    look: &IndexLook,
    state: &ObjectState<'_>,
) -> Result<IndexAnswer, Undecided> {
    Ok(match look {
        IndexLook::Version => IndexAnswer::Version(VERSION),
        IndexLook::Runs => IndexAnswer::Runs(state.get_or_default(RUNS)?),
        IndexLook::Hosts => IndexAnswer::Hosts(state.get_or_default(HOSTS)?),
    })
}
