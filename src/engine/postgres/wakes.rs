//! Wakes those who wait on other machines, after what they wait for is durable.
//!
//! `NOTIFY` takes a lock of the whole server while its transaction commits. With the write in that transaction, all
//! writes would wait for the disk one after the other. So it is a statement of its own, and one at a time carries all
//! that has come about meanwhile: each wakes all processes of the server that listen, whatever they listen to. If it is
//! lost, those who wait look again in two seconds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::calls::CALL_LIMIT;
use crate::domain::host::HostName;
use crate::domain::id::RunId;
use crate::engine::postgres::calls::Links;
use crate::engine::postgres::calls::texts;

/// The time between two notifications, so that much news at once wakes the server's processes once.
const PAUSE: Duration = Duration::from_millis(3);

/// What somebody may wait for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Topic<'a> {
    /// Requests for a host.
    Host(&'a HostName),
    /// Replies and commands for a run.
    Run(&'a RunId),
    /// The changes of facts.
    Facts,
}

impl Topic<'_> {
    /// Returns the channel of the topic. It has a hash in place of the name, which may be too long; two topics on one
    /// channel only look once too often.
    pub(super) fn channel(self) -> String {
        let (kind, name) = match self {
            Self::Host(host) => ("host", host.as_str()),
            Self::Run(run) => ("run", run.as_str()),
            Self::Facts => ("facts", ""),
        };
        // FNV-1a, the same on all machines and in all versions.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("raymond_{kind}_{hash:016x}")
    }
}

/// The channels that are to be notified.
#[derive(Debug, Default)]
struct Pending {
    channels: BTreeSet<String>,
    is_running: bool,
}

/// Notifies channels.
#[derive(Debug)]
pub(super) struct Wakes {
    links: Arc<Links>,
    pending: Arc<Mutex<Pending>>,
}

impl Wakes {
    pub(super) fn new(links: Arc<Links>) -> Self {
        Self { links, pending: Arc::default() }
    }

    /// Wakes who waits for these topics, soon.
    pub(super) fn wake<'a>(&self, topics: impl IntoIterator<Item = Topic<'a>>) {
        let mut pending = lock(&self.pending);
        pending.channels.extend(topics.into_iter().map(Topic::channel));
        if !pending.channels.is_empty() && !pending.is_running {
            pending.is_running = true;
            self.links.handle.spawn(notify(self.links.clone(), self.pending.clone()));
        }
    }
}

/// Notifies until nothing is pending.
async fn notify(links: Arc<Links>, pending: Arc<Mutex<Pending>>) {
    loop {
        let channels: Vec<String> = {
            let mut pending = lock(&pending);
            let channels = std::mem::take(&mut pending.channels);
            pending.is_running = !channels.is_empty();
            channels.into_iter().collect()
        };
        if channels.is_empty() {
            return;
        }
        let statement =
            "SELECT pg_catalog.pg_notify(channel, '') FROM pg_catalog.unnest($1) AS channel";
        if let Err(failure) = links.ask(CALL_LIMIT, statement, &[texts(&channels)]).await {
            tracing::debug!(error = %failure.error, "nobody was woken");
        }
        sleep(PAUSE).await;
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_fit_into_names_of_the_database() {
        let run = RunId::parse(&"x".repeat(64)).expect("an id");
        let host = HostName::parse("a").expect("a name");
        let channels = [Topic::Run(&run), Topic::Facts, Topic::Host(&host)].map(Topic::channel);
        assert_eq!(channels[2], "raymond_host_af63dc4c8601ec8c");
        assert!(channels.iter().all(|channel| channel.len() < 64), "{channels:?}");
        assert_ne!(channels[0], channels[1]);
    }
}
