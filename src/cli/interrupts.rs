//! Signals that ask a run in the foreground to end.
//!
//! SIGINT and SIGTERM each count: the second ends running turns at once. A terminal that is closed may tell
//! of it several times, by the kernel and by the shell, so SIGHUP counts once and leaves running turns their
//! grace. A SIGHUP that is ignored when raymond starts, as under `nohup`, stays ignored.

use std::io::{Error as IoError, ErrorKind, IsTerminal};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedSender};

use super::exit::Error;
use crate::runtime::InterruptReceiver;

/// The bit of SIGHUP in a mask of signals.
const HANGUP_BIT: u64 = 1;

/// The system's number for an operation on a terminal that is gone, `EIO`.
const TERMINAL_IS_GONE: i32 = 5;

/// Returns a message for each signal from now on that asks this process to end.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn signals() -> Result<InterruptReceiver, Error> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        listen(kind, usize::MAX, sender.clone())?;
    }
    if !ignores_hangup() {
        listen(SignalKind::hangup(), 1, sender)?;
    }
    Ok(receiver)
}

/// Passes on the first `times` signals of a kind.
fn listen(kind: SignalKind, times: usize, sender: UnboundedSender<()>) -> Result<(), Error> {
    let mut stream = signal(kind).map_err(Error::io("listen for signals of", "this process"))?;
    actix::spawn(async move {
        for _ in 0..times {
            if stream.recv().await.is_none() || sender.send(()).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Returns whether this process was started with SIGHUP ignored, where the system tells.
fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| is_hangup_ignored(&status))
}

fn is_hangup_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & HANGUP_BIT != 0)
}

/// Returns whether an error of a write means that nobody reads any more: a closed pipe, or a terminal that
/// has been closed.
pub(super) fn is_reader_gone(error: &IoError, stream: &impl IsTerminal) -> bool {
    error.kind() == ErrorKind::BrokenPipe
        || (error.raw_os_error() == Some(TERMINAL_IS_GONE) && !stream.is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_hangup_is_read_from_signal_mask() {
        let status =
            |mask: &str| format!("Name:\traymond\nSigBlk:\t0\nSigIgn:\t{mask}\nSigCgt:\t1\n");
        assert!(is_hangup_ignored(&status("0000000000000001")));
        assert!(is_hangup_ignored(&status("0000000000001003")));
        assert!(!is_hangup_ignored(&status("0000000000001000")));
        assert!(!is_hangup_ignored("Name:\traymond\n") && !is_hangup_ignored(&status("x")));
    }

    #[test]
    fn broken_pipe_or_lost_terminal_means_reader_is_gone() {
        let file = tempfile::tempfile().expect("a file");
        let gone = |error: IoError| is_reader_gone(&error, &file);
        assert!(gone(ErrorKind::BrokenPipe.into()));
        assert!(gone(IoError::from_raw_os_error(TERMINAL_IS_GONE)));
        assert!(!gone(ErrorKind::StorageFull.into()));
    }
}
