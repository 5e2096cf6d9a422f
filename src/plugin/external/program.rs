//! A program as its actor has it: where it is told things and heard, and its life. Who starts it is
//! passed in, because this room starts nothing.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a program may take to end after its stdin has.
pub const GRACE: Duration = Duration::from_secs(2);

/// How long it may take when it has been asked to.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// Starts the program of a plug-in.
pub trait PluginSpawner: Send {
    /// Starts it, on the thread that asks.
    ///
    /// # Errors
    /// What the system said.
    fn spawn(&self) -> std::io::Result<SpawnedPlugin>;
}

/// A program that has been started.
pub struct SpawnedPlugin {
    /// Where it is told things.
    pub stdin: Box<dyn AsyncWrite + Unpin>,
    /// What it says.
    pub stdout: Box<dyn AsyncRead + Unpin>,
    /// What it says to people.
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

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginExit {
    /// By itself, and with nothing to complain of.
    pub well: bool,
    /// What is to be said of it: `exited with code 3`.
    pub how: String,
}

/// Stays with a process until it has ended. When it is `told` that its stdin is closed, it has its
/// grace, then it is asked to end, then it is ended.
pub(super) async fn accompany(
    mut life: Box<dyn PluginHandle>,
    told: oneshot::Receiver<()>,
) -> PluginExit {
    tokio::select! {
        end = life.exited() => return end,
        _ = told => {}
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
