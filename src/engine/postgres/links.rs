//! The connections of an engine: a few, opened as they are needed, and closed when they have been idle for long.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::connection::Link;
use super::failure::Failure;
use super::settings::PostgresSettings;
use crate::engine::EngineAddress;

/// The most connections at the same time, so that ten machines fit into the 100 that a server allows by default.
const MOST: usize = 8;
/// The time after which an idle connection is closed.
const IDLE_LIMIT: Duration = Duration::from_mins(1);

/// The connections.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) address: EngineAddress,
    pub(super) settings: PostgresSettings,
    pub(super) handle: Handle,
    /// The idle ones with the time since when they are; the last one was used last.
    idle: Mutex<Vec<(Instant, Link)>>,
    permits: Semaphore,
}

impl Links {
    /// Returns no connections yet.
    pub(super) fn new(address: EngineAddress, settings: PostgresSettings, handle: Handle) -> Self {
        let permits = Semaphore::new(MOST);
        Self { address, settings, handle, idle: Mutex::default(), permits }
    }

    /// Lends a connection: an idle one, or a new one. Waits while too many are lent.
    pub(super) async fn lend(&self) -> Result<LentLink<'_>, Failure> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| Failure::unreachable(&self.address, "it was left"))?;
        let idle = self.take_idle();
        let link = match idle {
            Some(link) => link,
            None => Link::open(&self.settings, &self.address, &self.handle).await?,
        };
        Ok(LentLink { links: self, link: Some(link), _permit: permit })
    }

    /// Closes the idle connections: one that was cut is a sign that others are.
    pub(super) fn close_idle(&self) {
        self.idle().clear();
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.idle();
        idle.retain(|(since, link)| link.is_open() && since.elapsed() < IDLE_LIMIT);
        idle.pop().map(|(_, link)| link)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Link)>> {
        // The list is whole at any time, so a panic elsewhere does not matter.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is lent. It is given up unless it is returned.
#[derive(Debug)]
pub(super) struct LentLink<'l> {
    links: &'l Links,
    link: Option<Link>,
    _permit: SemaphorePermit<'l>,
}

impl LentLink<'_> {
    /// Returns the connection, until it is given back.
    pub(super) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Gives the connection back for the next caller: no statement is under way on it.
    pub(super) fn give_back(mut self) {
        if let Some(link) = self.link.take().filter(Link::is_open) {
            self.links.idle().push((Instant::now(), link));
        }
    }
}

impl Drop for LentLink<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.give_up(&self.links.settings, &self.links.handle);
        }
    }
}
