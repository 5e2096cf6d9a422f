//! Wakes the followers of files in a directory when something has been written into them.
//!
//! Linux reports writes by inotify: one instance watches the directory of all streams, because closing an
//! instance takes milliseconds. Elsewhere, and where the user's share of instances is used up, a
//! file has to be read again after a pause.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};

/// The files that are followed, by their names.
type FollowedFiles = Rc<RefCell<HashMap<OsString, Rc<Notify>>>>;

/// A directory whose files are followed.
#[derive(Debug)]
pub(super) struct WriteWatches {
    directory: PathBuf,
    followed: FollowedFiles,
    /// The task that listens for writes; `None` where the system does not report them.
    listener: OnceCell<Option<AbortHandle>>,
}

impl WriteWatches {
    /// Returns the watches of a directory, with none begun.
    pub(super) fn of(directory: PathBuf) -> Self {
        Self { directory, followed: FollowedFiles::default(), listener: OnceCell::new() }
    }

    /// Watches a file of the directory; `None` where the system cannot. It has to be called in a `LocalSet`.
    pub(super) fn watch(&self, file: &Path) -> Option<WriteWatch> {
        let name = file.file_name()?.to_owned();
        let listen = || {
            let mut writes = system::DirectoryWrites::below(&self.directory)?;
            let followed = Rc::clone(&self.followed);
            let listener = spawn_local(async move {
                while writes.next(|name| wake(&followed, name)).await.is_ok() {}
            });
            Some(listener.abort_handle())
        };
        // A listener that has failed wakes nobody.
        self.listener.get_or_init(listen).as_ref().filter(|listener| !listener.is_finished())?;
        let written = Rc::new(Notify::new());
        self.followed.borrow_mut().insert(name.clone(), Rc::clone(&written));
        Some(WriteWatch { name, written, followed: Rc::clone(&self.followed) })
    }
}

impl Drop for WriteWatches {
    fn drop(&mut self) {
        if let Some(Some(listener)) = self.listener.get() {
            listener.abort();
        }
    }
}

/// Wakes the follower of the file of that name, or all if the system has lost the names.
fn wake(followed: &FollowedFiles, name: Option<&std::ffi::OsStr>) {
    let followed = followed.borrow();
    match name {
        Some(name) => followed.get(name).into_iter().for_each(|written| written.notify_one()),
        None => followed.values().for_each(|written| written.notify_one()),
    }
}

/// A file that is watched for writes, until this is dropped.
#[derive(Debug)]
pub(super) struct WriteWatch {
    name: OsString,
    written: Rc<Notify>,
    followed: FollowedFiles,
}

impl WriteWatch {
    /// Returns once something has been written since the watch began, or since the last call returned.
    pub(super) async fn written(&self) {
        self.written.notified().await;
    }
}

impl Drop for WriteWatch {
    fn drop(&mut self) {
        let mut followed = self.followed.borrow_mut();
        if followed.get(&self.name).is_some_and(|written| Rc::ptr_eq(written, &self.written)) {
            followed.remove(&self.name);
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsStr;
    use std::io::Error;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    use rustix::io::Errno;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// The bytes of events that are taken at a time; one event has less than 300.
    const EVENTS_LENGTH: usize = 4096;

    #[derive(Debug)]
    pub(super) struct DirectoryWrites(AsyncFd<OwnedFd>);

    impl DirectoryWrites {
        #[expect(
            deprecated,
            reason = "the descriptor is owned and stays what it is, and the successor is unsafe code"
        )]
        pub(super) fn below(directory: &Path) -> Option<Self> {
            let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            add_watch(&inotify, directory, WatchFlags::MODIFY).ok()?;
            AsyncFd::with_interest(inotify, Interest::READABLE).ok().map(Self)
        }

        /// Waits for writes, and passes the names of the files to `wake`; `None` where events were lost.
        pub(super) async fn next(&mut self, wake: impl Fn(Option<&OsStr>)) -> Result<(), Error> {
            let mut guard = self.0.readable().await?;
            let mut buffer = [MaybeUninit::uninit(); EVENTS_LENGTH];
            let mut events = Reader::new(guard.get_inner(), &mut buffer);
            loop {
                match events.next() {
                    Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => wake(None),
                    Ok(event) => {
                        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                        wake(name);
                    }
                    Err(Errno::WOULDBLOCK) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            guard.clear_ready();
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ffi::OsStr;
    use std::io::Error;
    use std::path::Path;

    #[derive(Debug)]
    pub(super) struct DirectoryWrites;

    impl DirectoryWrites {
        pub(super) fn below(_: &Path) -> Option<Self> {
            None
        }

        pub(super) async fn next(&mut self, _: impl Fn(Option<&OsStr>)) -> Result<(), Error> {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::LocalSet;

    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn write_wakes_only_watcher_of_that_file() {
        use std::fs::File;
        use std::io::Write;

        let folder = tempfile::tempdir().expect("a directory");
        let file = |name: &str| File::create(folder.path().join(name)).expect("a file");
        let (mut first, mut second) = (file("one"), file("other"));
        let watches = WriteWatches::of(folder.path().to_owned());
        let test = async {
            let watch = |name: &str| watches.watch(&folder.path().join(name)).expect("a watch");
            let (follows_first, follows_second) = (watch("one"), watch("other"));
            for _ in 0..2 {
                first.write_all(b"line\n").expect("written");
                follows_first.written().await;
            }
            second.write_all(b"line\n").expect("written");
            follows_second.written().await;
            let is_silent = tokio::select! {
                biased;
                () = follows_first.written() => false,
                () = tokio::task::yield_now() => true,
            };
            assert!(is_silent, "each is told of its own file");
            drop(follows_first);
            assert_eq!(watches.followed.borrow().len(), 1);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn missing_directory_is_not_watched() {
        LocalSet::new()
            .run_until(async {
                let gone = WriteWatches::of(PathBuf::from("/gone/for/good"));
                assert!(gone.watch(Path::new("/gone/for/good/x")).is_none());
            })
            .await;
    }
}
