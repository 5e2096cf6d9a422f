//! One at a time for each place: two agents of a run must not edit one file, or move one repository,
//! in the same moment.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Who waits for which place.
#[derive(Debug, Default)]
pub(super) struct PathLocks(Mutex<HashMap<PathBuf, Weak<Turn<()>>>>);

impl PathLocks {
    /// Waits until nobody else of this world is at a place.
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
