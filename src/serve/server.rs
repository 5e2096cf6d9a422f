//! The server: it accepts connections, and ends on request.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::proof::ProofKey;
use crate::serve::access::{AccessRules, AccessToken};
use crate::serve::backend::CommandBackend;
use crate::serve::feed_hub::FeedHub;
use crate::serve::handler::PageHandler;
use crate::store::layout::RunsRoot;

/// The most connections at once.
const MAX_CONNECTIONS: usize = 256;

/// The most threads that read runs for requests.
const MAX_READERS: usize = 64;

/// The time in which the head of a request has to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a head.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The time that open requests have when the server ends.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after an error at taking a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that has its address and takes no connections yet.
pub struct PageServer {
    listener: StdListener,
    address: SocketAddr,
    handler: PageHandler,
}

impl PageServer {
    /// Takes an address.
    ///
    /// # Errors
    /// The error of the system.
    pub fn bind(
        address: SocketAddr,
        root: RunsRoot,
        key: &ProofKey,
        token: AccessToken,
        backend: Arc<dyn CommandBackend>,
    ) -> std::io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runs = root.path().display().to_string();
        let rules = Arc::new(AccessRules::new(key, token, address, runs));
        let hub = Arc::new(FeedHub::new(root.clone(), Arc::clone(&backend)));
        Ok(Self { listener, address, handler: PageHandler { rules, hub, backend, root } })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is done.
    ///
    /// # Errors
    /// The error of the system.
    pub fn serve(self, end: impl Future<Output = ()>) -> std::io::Result<()> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(MAX_READERS).build()?;
        let outcome = runtime.block_on(self.take_connections(end));
        // A reader that is at a large run is not waited for.
        runtime.shutdown_background();
        outcome
    }

    async fn take_connections(self, end: impl Future<Output = ()>) -> std::io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (is_over, ending) = watch::channel(false);
        let mut end = std::pin::pin!(end);
        loop {
            // Who comes when all places are taken waits in the line of the system.
            let place = tokio::select! {
                () = &mut end => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let Ok(place) = place else { break };
            tokio::select! {
                () = &mut end => break,
                taken = listener.accept() => match taken {
                    Ok((stream, _)) => {
                        tokio::spawn(serve_stream(stream, self.handler.clone(), ending.clone(), place));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(listener);
        self.handler.hub.end();
        let _ = is_over.send(true);
        let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(END_TIMEOUT, places.acquire_many(all)).await;
        Ok(())
    }
}

/// Serves a connection until it ends.
async fn serve_stream(
    stream: TcpStream,
    handler: PageHandler,
    mut ending: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.reply(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A connection that fails is the loss of its client alone.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    drop(place);
}
