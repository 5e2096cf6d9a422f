//! The thread that drives the connections of an engine, until the engine is dropped.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread. Callers drive their own statements on their own threads; it drives the sockets, the clock and the tasks.
#[derive(Debug)]
pub(super) struct EngineThread {
    handle: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl EngineThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The error of the system if it has no thread or no descriptor left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("postgres".to_owned()).spawn(move || {
            // An error says that the sender was dropped, which is the only message.
            let _ = runtime.block_on(stopped);
            // A name that is still looked up would hold the thread.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _stop: stop })
    }

    /// Returns the handle for tasks and for callers.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}
