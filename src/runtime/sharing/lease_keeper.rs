//! The thread that renews the lease of a run until the writer of its log does: a long log takes a while to load.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

use super::run_engine::{HeldRun, LEASE_TIME, RENEWAL_INTERVAL};

/// The renewals of a lease, until this is dropped.
#[derive(Debug)]
pub(super) struct LeaseKeeper {
    /// The thread ends when this is dropped; no message is sent.
    _end: Sender<()>,
}

impl LeaseKeeper {
    /// Starts the thread. A lease that another raymond has taken is renewed no more; whoever writes next is told.
    pub(super) fn start(held: &HeldRun) -> Self {
        let (end, ended) = channel::<()>();
        let held = held.clone();
        let renewals = move || {
            while ended.recv_timeout(RENEWAL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                match held.engine.renew_lease(&held.lease, LEASE_TIME) {
                    Ok(()) => {}
                    Err(error) if error.is_passing() || error.is_mendable() => {
                        tracing::debug!("the lease is not renewed yet: {error}");
                    }
                    Err(error) => return tracing::debug!("the lease is kept no more: {error}"),
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("lease".to_owned()).spawn(renewals) {
            tracing::warn!(
                "cannot start a thread ({error}), so another raymond may take over the run if loading takes long"
            );
        }
        Self { _end: end }
    }
}
