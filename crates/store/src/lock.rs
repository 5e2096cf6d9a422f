//! The lock on a run: one supervisor at a time, even after a crash.
//!
//! The system drops the lock when its holder dies, so stale locks do not occur. The file contains
//! the holder's process id, only for messages to people.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use super::engine_note::EngineNote;
use super::layout::RunsRoot;
use super::{Error, files};
use crate::plain_file;
use crate::plain_file::if_there;
use raymond_model::id::RunId;

/// The number of tries: a reader that checks the lock shares it for a moment.
const TRIES: u32 = 5;

/// The number of tries after its holder has died: a process that the holder was just starting shares the lock until it
/// executes its program.
const AFTER_A_DEATH: u32 = 300;

/// The longest text of a process id, in bytes.
const MAX_PID_LENGTH: u64 = 32;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// A held lock, until it is dropped.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl Drop for RunLock {
    /// Gives the lock back at once. Closing the file would not, while a process that another thread starts just now
    /// still shares it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Takes the lock of a run.
///
/// # Errors
/// [`Error::Held`] if another process has it.
pub fn acquire(path: &Path, id: &RunId) -> Result<RunLock, Error> {
    let mut file = files::open_lock(path)?;
    for tries in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                let pid = holder(&mut file);
                if tries >= if pid.is_some_and(has_died) { AFTER_A_DEATH } else { TRIES } {
                    return Err(Error::Held { id: id.clone(), pid });
                }
                std::thread::sleep(PAUSE);
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
    }
    let named = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{}", std::process::id()));
    named.map_err(Error::io("write", path))?;
    Ok(RunLock { file })
}

/// Waits for the lock on the names of runs: while it is held, nobody else makes or removes a run of this directory.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn names_of_runs(root: &RunsRoot) -> Result<RunLock, Error> {
    let runs = root.runs();
    let file = File::open(&runs).and_then(|file| file.lock().map(|()| file));
    Ok(RunLock { file: file.map_err(Error::io("lock", &runs))? })
}

/// Returns whether a raymond supervises the run of a lock now, and its process id, if it is known. Of the copy of a
/// shared run its note tells, because the supervisor may be on another machine.
///
/// # Errors
/// [`Error::Io`].
pub fn is_held(path: &Path) -> Result<Option<Option<u32>>, Error> {
    if let Some(note) = path.parent().map(EngineNote::of).transpose()?.flatten() {
        return Ok(note.holder.map(|_| None));
    }
    let file = if_there(plain_file::open(path)).map_err(Error::io("open", path))?;
    let Some(mut file) = file else { return Ok(None) };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", path)(error)),
    }
}

/// Returns whether a process is known to have ended; a zombie counts.
fn has_died(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")),
        Err(_) => Path::new("/proc/self/stat").exists(),
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MAX_PID_LENGTH).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_waits_for_dead_holder() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, id) = (place.path().join("lock"), RunId::parse("r").expect("a run"));
        let held = acquire(&path, &id).expect("nobody has it");
        assert!(!has_died(std::process::id()));
        let Err(Error::Held { pid, .. }) = acquire(&path, &id) else { panic!("it is held") };
        assert_eq!(pid, Some(std::process::id()));

        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("its end");
        assert!(has_died(child.id()));
        std::fs::write(&path, child.id().to_string()).expect("written");
        let waits = std::thread::spawn(move || acquire(&path, &id).is_ok());
        drop(held);
        assert!(waits.join().expect("it waited"));
    }
}
