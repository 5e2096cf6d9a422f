//! Waits for git where nothing else is waited for: before a run is supervised, or is hosted.

use std::thread;

/// Waits for what git does, on a thread of its own: the caller may itself run in a runtime.
///
/// # Errors
/// The reason why it cannot be waited for.
pub(super) fn waited_for<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(work))
        });
        let waited = waiting.join().map_err(|_| "it came to no end".to_owned())?;
        waited.map_err(|error| format!("cannot wait for git: {error}"))
    })
}
