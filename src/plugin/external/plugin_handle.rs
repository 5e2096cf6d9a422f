//! The process of a plug-in and its pipes.
//!
//! The spawner is passed in, because this room starts no process.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The time a program may take to end after its stdin was closed.
pub const GRACE: Duration = Duration::from_secs(2);

/// The time it may take after it was asked to end.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// Starts the program of a plug-in.
pub trait PluginSpawner: Send {
    /// Starts it, on the thread that asks.
    ///
    /// # Errors
    /// The error of the system.
    fn spawn(&self) -> std::io::Result<SpawnedPlugin>;
}

/// A program that has been started.
pub struct SpawnedPlugin {
    /// The input of the program.
    pub stdin: Box<dyn AsyncWrite + Unpin>,
    /// The messages of the program.
    pub stdout: Box<dyn AsyncRead + Unpin>,
    /// The text of the program for people.
    pub stderr: Box<dyn AsyncRead + Unpin>,
    /// Its process.
    pub life: Box<dyn PluginHandle>,
}

/// The process of a program. When this is dropped, it ends.
pub trait PluginHandle {
    /// Waits for its end. May be dropped and called again.
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = PluginExit> + '_>>;
    /// Asks it to end.
    fn terminate(&self);
    /// Ends it at once.
    fn kill(&self);
}

/// The exit of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginExit {
    /// True if it ended by itself, and without an error.
    pub well: bool,
    /// The description for people: `exited with code 3`.
    pub how: String,
}

/// Stays with a process until it has ended. After `stdin_closed` tells that its stdin is, it has its grace; then
/// it is asked to end; then it is killed.
pub(super) async fn accompany(
    mut life: Box<dyn PluginHandle>,
    stdin_closed: oneshot::Receiver<()>,
) -> PluginExit {
    tokio::select! {
        end = life.exited() => return end,
        _ = stdin_closed => {}
    }
    if let Ok(end) = timeout(GRACE, life.exited()).await {
        return end;
    }
    life.terminate();
    if let Ok(end) = timeout(LAST_GRACE, life.exited()).await {
        return end;
    }
    life.kill();
    life.exited().await
}
