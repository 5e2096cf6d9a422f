//! The identity of a worker, which it keeps over restarts.
//!
//! It lies in the directory of the worker, so that the next worker there takes up what this one began. One at a time has it.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Error, files};
use crate::plain_file;

/// The longest identity, in bytes.
const MAX_LENGTH: u64 = 128;

/// The identity of a worker, until it is dropped.
#[derive(Debug)]
pub struct HostIdentity {
    /// A value that no other worker has.
    pub worker: String,
    _file: File,
}

/// The reason why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Another worker has it.
    #[error("{}: another worker uses this directory; end it, or give this one another with --dir", .0.display())]
    Taken(PathBuf),
    /// The file cannot be used.
    #[error(transparent)]
    Store(#[from] Error),
}

impl HostIdentity {
    /// Takes the identity in a directory, or makes one.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn take(directory: &Path) -> Result<Self, IdentityError> {
        files::make_dir(directory)?;
        let path = directory.join("worker");
        let mut options = files::private();
        options.read(true).write(true).create(true).truncate(false);
        let mut file =
            plain_file::open_with(&path, &mut options).map_err(Error::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(IdentityError::Taken(path)),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error).into()),
        }
        let mut worker = String::new();
        let read = (&mut file).take(MAX_LENGTH).read_to_string(&mut worker);
        read.map_err(Error::io("read", &path))?;
        let is_usable = !worker.is_empty() && worker.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_usable {
            worker = Uuid::new_v4().simple().to_string();
            let written = file
                .rewind()
                .and_then(|()| file.set_len(0))
                .and_then(|()| file.write_all(worker.as_bytes()))
                .and_then(|()| file.sync_all());
            written.map_err(Error::io("write", &path))?;
        }
        Ok(Self { worker, _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_stays_over_restarts_and_one_worker_has_it() {
        let place = tempfile::tempdir().expect("a directory");
        let first = HostIdentity::take(place.path()).expect("made");
        let taken = HostIdentity::take(place.path()).expect_err("taken").to_string();
        assert!(taken.contains("another worker uses this directory"), "{taken}");
        let worker = first.worker.clone();
        drop(first);
        let again = HostIdentity::take(place.path()).expect("taken up");
        assert_eq!(again.worker, worker);
        drop(again);
        std::fs::write(place.path().join("worker"), "a b").expect("written");
        assert_ne!(HostIdentity::take(place.path()).expect("made anew").worker, worker);
    }
}
