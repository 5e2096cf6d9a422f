//! Checks that the copy of the workflow's files is unchanged.
//!
//! This is done before its files are given to a process by their paths.

use std::fmt;
use std::sync::Arc;

use tokio::task::spawn_blocking;

/// The check of the copy; without a copy it always passes.
#[derive(Clone, Default)]
pub struct CopyCheck(Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>);

impl CopyCheck {
    /// Creates the check from a function that returns the problem as an error.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Runs the check, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The problem with the copy.
    pub(super) async fn ask(&self) -> Result<(), String> {
        let Some(check) = self.0.clone() else { return Ok(()) };
        spawn_blocking(move || check()).await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl fmt::Debug for CopyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CopyCheck")
    }
}
