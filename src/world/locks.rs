//! Locks of paths.
//!
//! Two agents of a run must not edit one file, or move one repository, at the same time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// The locks of the paths in use.
#[derive(Debug, Default)]
pub(super) struct PathLocks(Mutex<HashMap<PathBuf, Weak<Turn<()>>>>);

impl PathLocks {
    /// Waits until no other operation of this world holds the lock of a path.
    pub(super) async fn of(&self, path: &Path) -> OwnedMutexGuard<()> {
        let turn = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            places.retain(|_, turn| turn.strong_count() > 0);
            let known = places.get(path).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::new(Turn::new(()));
                places.insert(path.to_owned(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}
