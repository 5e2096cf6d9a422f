//! Wakes whoever follows a file when something has been written into it.
//!
//! Linux tells this by inotify. Elsewhere, and where the user's share of inotify instances is used up, the
//! file has to be looked at again after a pause.

use std::path::Path;

/// A file that is watched for writes.
#[derive(Debug)]
pub struct WriteWatch(system::Watch);

impl WriteWatch {
    /// Watches a file; `None` where the system cannot. It has to be called within a runtime.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        system::Watch::of(path).map(Self)
    }

    /// Returns once something has been written since the watch began, or since this last returned.
    pub async fn written(&self) {
        self.0.written().await;
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{Error, ErrorKind};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Enough for the events of one file, which the system joins while they wait.
    const EVENTS_LENGTH: usize = 1024;

    #[derive(Debug)]
    pub(super) struct Watch(AsyncFd<OwnedFd>);

    impl Watch {
        #[expect(
            deprecated,
            reason = "the descriptor is owned and stays what it is, and the successor is unsafe code"
        )]
        pub(super) fn of(path: &Path) -> Option<Self> {
            let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            add_watch(&inotify, path, WatchFlags::MODIFY).ok()?;
            AsyncFd::with_interest(inotify, Interest::READABLE).ok().map(Self)
        }

        pub(super) async fn written(&self) {
            loop {
                let Ok(mut guard) = self.0.readable().await else { break };
                match guard.try_io(|inotify| take_events(inotify.get_ref())) {
                    Ok(Ok(())) => return,
                    Ok(Err(_)) => break,
                    Err(_) => {}
                }
            }
            // Whoever waits looks again after its pause.
            std::future::pending::<()>().await;
        }
    }

    /// Takes what the system has to tell.
    fn take_events(inotify: &OwnedFd) -> Result<(), Error> {
        let mut events = [0; EVENTS_LENGTH];
        match rustix::io::read(inotify, &mut events)? {
            0 => Err(Error::from(ErrorKind::UnexpectedEof)),
            _ => Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    #[derive(Debug)]
    pub(super) struct Watch;

    impl Watch {
        pub(super) fn of(_: &Path) -> Option<Self> {
            None
        }

        pub(super) async fn written(&self) {
            std::future::pending().await;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn each_write_wakes_once_and_silence_does_not() {
        let folder = tempfile::TempDir::new().expect("a directory");
        let path = folder.path().join("stream");
        let mut file = File::create(&path).expect("a file");
        file.write_all(b"before\n").expect("written");
        let watch = WriteWatch::of(&path).expect("a watch");
        for _ in 0..2 {
            let silent = tokio::select! {
                biased;
                () = watch.written() => false,
                () = tokio::task::yield_now() => true,
            };
            assert!(silent);
            file.write_all(b"line\n").expect("written");
            file.write_all(b"line\n").expect("written");
            watch.written().await;
        }
        assert!(WriteWatch::of(&folder.path().join("gone")).is_none());
    }
}
