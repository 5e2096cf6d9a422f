//! One connection to a server: opened and greeted, or given up.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Connection, Socket};

use super::failure::Failure;
use super::schema;
use super::settings::PostgresSettings;
use super::tls::Encrypted;
use crate::engine::EngineAddress;

/// The time for a new connection: names, TLS, password and greeting, of all servers of the address.
const OPEN_LIMIT: Duration = Duration::from_secs(7);
/// The time for telling a server that nobody waits for a statement any more.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// A connection as the library has it: whoever owns it reads and writes its socket.
type RawConnection = Connection<Socket, Encrypted<Socket>>;

/// Connects to a server.
pub(super) async fn connect(
    settings: &PostgresSettings,
    address: &EngineAddress,
) -> Result<(Client, RawConnection), Failure> {
    let connecting = settings.config.connect(settings.tls.clone());
    match timeout(OPEN_LIMIT, connecting).await {
        Ok(connected) => connected.map_err(|error| Failure::of_connection(address, &error)),
        Err(_) => Err(late(address)),
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    /// The task that reads and writes its socket.
    task: AbortHandle,
}

impl Link {
    /// Opens a connection.
    pub(super) async fn open(
        settings: &PostgresSettings,
        address: &EngineAddress,
        handle: &Handle,
    ) -> Result<Self, Failure> {
        let opening = async {
            let (client, connection) = connect(settings, address).await?;
            let task = handle.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to the engine ended");
                }
            });
            let link = Self { client, task: task.abort_handle() };
            schema::greet(&link.client, address).await?;
            Ok(link)
        };
        timeout(OPEN_LIMIT, opening).await.unwrap_or_else(|_| Err(late(address)))
    }

    /// Returns whether it can be used.
    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Gives up a connection on which a statement may be under way: the server is asked to cancel that.
    pub(super) fn give_up(self, settings: &PostgresSettings, handle: &Handle) {
        let token = self.client.cancel_token();
        let tls = settings.tls.clone();
        let is_open = self.is_open();
        handle.spawn(async move {
            if is_open {
                // It is a courtesy: the statement may end by itself, and changes nothing that a later one does not bear.
                let _ = timeout(CANCEL_LIMIT, token.cancel_query(tls)).await;
            }
            drop(self);
        });
    }
}

impl Drop for Link {
    /// Ends the task, which would wait for an answer that is under way.
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn late(address: &EngineAddress) -> Failure {
    let seconds = OPEN_LIMIT.as_secs();
    Failure::unreachable(address, format!("it did not let this machine in within {seconds} s"))
}
