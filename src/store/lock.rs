//! The lock on a run: one supervisor at a time, whatever becomes of it.
//!
//! The system drops the lock when its holder dies, so there is no stale lock to remove. The file
//! holds the holder's process id, only to be named to people.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use super::{Error, files};
use crate::domain::id::RunId;

/// A held lock, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock of a run.
///
/// # Errors
/// [`Error::Held`] if another process has it.
pub fn acquire(path: &Path, id: &RunId) -> Result<Lock, Error> {
    let mut file = open(path)?;
    // A reader that looks whether the lock is held has it shared for a moment: so it is tried again.
    for last in [false, false, false, false, true] {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if last => {
                return Err(Error::Held { id: id.clone(), pid: holder(&mut file) });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
    }
    let named = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{}", std::process::id()));
    named.map_err(Error::io("write", path))?;
    Ok(Lock { _file: file })
}

/// Whether a process holds the lock now, and which, if it is known.
///
/// # Errors
/// [`Error::Io`].
pub fn is_held(path: &Path) -> Result<Option<Option<u32>>, Error> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", path)(error)),
    }
}

fn open(path: &Path) -> Result<File, Error> {
    let mut options = files::private();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(Error::io("open", path))
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}
