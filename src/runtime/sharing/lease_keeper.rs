//! The thread that renews the lease of a run until the writer of its log does: a long log takes a while to load.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::engine::EngineError;
use crate::runtime::sharing::run_engine::{HeldRun, LEASE_TIME, RENEWAL_INTERVAL};

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

/// The pause before a call is made again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Repeats a call while the engine cannot be reached.
///
/// # Errors
/// Any other error.
pub(in crate::runtime) fn until_reached<T>(
    has_ended: impl Fn() -> bool,
    mut call: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    loop {
        match call() {
            // Others say that it cannot be reached.
            Err(error) if error.is_passing() && !has_ended() => std::thread::sleep(RETRY_PAUSE),
            called => return called,
        }
    }
}

/// Repeats a call also while the engine refuses it for a reason that a person can mend, such as a full disk, and says so once.
///
/// # Errors
/// Any other error: somebody else acts for the run or the host now.
pub(in crate::runtime) fn until_mended<T>(
    has_ended: impl Fn() -> bool,
    mut call: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let mut is_told = false;
    loop {
        match until_reached(&has_ended, &mut call) {
            Err(error) if error.is_mendable() && !has_ended() => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!("{error}; retrying until this is fixed");
                }
                std::thread::sleep(RETRY_PAUSE);
            }
            called => return called,
        }
    }
}

#[cfg(test)]
mod patience_tests {
    use std::cell::Cell;

    use super::*;
    use crate::domain::id::RunId;

    fn errors() -> [EngineError; 3] {
        let (engine, why) = ("postgres://x".to_owned(), "it is full".to_owned());
        let run = RunId::parse("t").expect("an id");
        [
            EngineError::Unreachable { engine: engine.clone(), why: why.clone() },
            EngineError::Refused { engine, why },
            EngineError::TakenOver { run },
        ]
    }

    /// Returns what comes of a call that gives these errors one after the other, and then succeeds, and how often it was made.
    fn outcome(given: &[&EngineError], ends: bool) -> (Result<usize, EngineError>, usize) {
        let calls = Cell::new(0);
        let call = || {
            let number = calls.replace(calls.get() + 1);
            given.get(number).map_or(Ok(number), |&error| Err(error.clone()))
        };
        (until_mended(|| ends, call), calls.get())
    }

    #[test]
    fn call_is_repeated_until_somebody_else_acts() {
        let [unreachable, refused, taken] = errors();
        assert_eq!(outcome(&[&unreachable, &refused, &unreachable], false), (Ok(3), 4));
        assert_eq!(outcome(&[&refused, &taken, &refused], false), (Err(taken.clone()), 2));
        assert_eq!(outcome(&[&refused], true), (Err(refused), 1), "the run is over");
        assert_eq!(until_reached(|| false, || Err::<(), _>(taken.clone())), Err(taken));
    }
}
