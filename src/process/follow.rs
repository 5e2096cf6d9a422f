//! Follows a process until its turn is over, then sees to it that nothing of it is left.
//!
//! A turn is over at its `result`, not at the end of the process: what the agent's tools have
//! started can hold the output open for hours. The stream's file is looked at again after a pause
//! that grows while nothing comes, because that is portable and costs a few microseconds; the end of
//! an own child wakes it at once.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::group;
use super::owned::Process;
use super::stream::Stream;
use super::transcript::{Error, Follower};
use super::verdict::Exit;

/// The pause after something has come.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
/// The pause when nothing comes.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How long a process may take to end after its result.
const AFTER_RESULT: Duration = Duration::from_secs(2);
/// How long a group may take to end when asked to.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// What a running turn is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Nothing: go on.
    No,
    /// End, with a moment to do so.
    Soon,
    /// End at once.
    Now,
}

/// Why following came to its end.
#[derive(Debug)]
pub enum End {
    /// The stream has a result.
    Result,
    /// The process has ended; what it wrote last is still to be read.
    Exited(Exit),
    /// The turn was told to stop.
    Stopped,
    /// It took too long.
    TimedOut,
    /// Its output cannot be used.
    Unreadable(Error),
}

/// Follows a turn to its end, telling `changed` whenever something has come.
pub async fn follow(
    process: &mut Process,
    follower: &mut Follower,
    stream: &mut Stream,
    stop: &mut watch::Receiver<Stop>,
    longest: Duration,
    changed: impl Fn(&Stream),
) -> End {
    let deadline = Instant::now() + longest;
    let mut pause = SHORTEST_PAUSE;
    loop {
        match follower.read(stream) {
            Ok(true) => {
                pause = SHORTEST_PAUSE;
                changed(stream);
            }
            Ok(false) => pause = (pause * 2).min(LONGEST_PAUSE),
            Err(error) => return End::Unreadable(error),
        }
        if stream.result.is_some() {
            return End::Result;
        }
        tokio::select! {
            exit = process.exited() => return End::Exited(exit),
            told = stopped(stop) => if told { return End::Stopped },
            () = sleep_until(deadline) => return End::TimedOut,
            () = sleep(pause) => {}
        }
    }
}

/// Waits until it is told to stop; a teller that is gone never tells.
async fn stopped(stop: &mut watch::Receiver<Stop>) -> bool {
    match stop.wait_for(|&told| told != Stop::No).await {
        Ok(_) => true,
        Err(_) => std::future::pending().await,
    }
}

/// Sees the whole process group to its end. `patient` lets the process end by itself first.
pub async fn put_to_rest(process: &mut Process, stop: &watch::Receiver<Stop>, patient: bool) {
    let Some(leader) = process.group() else { return };
    let ended = patient && timeout(AFTER_RESULT, process.exited()).await.is_ok();
    if !ended && *stop.borrow() != Stop::Now {
        group::terminate(leader);
        let mut stop = stop.clone();
        tokio::select! {
            _ = timeout(AFTER_TERM, process.exited()) => {}
            _ = stop.wait_for(|&told| told == Stop::Now) => {}
        }
    }
    if group::is_alive(leader) {
        group::kill(leader);
        let _ = timeout(AFTER_TERM, process.exited()).await;
    }
}
