//! Failpoints: named places at which a test can have this process die, as by `kill -9`.
//!
//! The promise that nothing is lost or done twice has to hold wherever the runtime is killed, so each
//! boundary of a step has a name. `RAYMOND_FAILPOINT=append.after:3` kills the process when `append.after` is
//! reached for the third time. Failpoints exist only in a build with the feature `test-fakes`.

/// The boundaries of a step, in the order in which a step comes to them.
pub const POINTS: [&str; 49] = [
    "spawn.before",
    "spawn.after",
    "spawn.asked",
    "passage.noted",
    "passage.asked",
    "stream.read",
    "message.before",
    "message.sent",
    "approval.before",
    "approval.told",
    "fork.before",
    "fork.after",
    "rest.before",
    "rest.group",
    "rest.after",
    "compact.noted",
    "compact.moved",
    "commit.before",
    "append.before",
    "append.after",
    "sync.after",
    "adopt.before",
    "effect.before",
    "effect.after",
    "publish.before",
    "operation.before",
    "operation.after",
    "activity.before",
    "activity.after",
    "replace.before",
    "replace.written",
    "replace.after",
    "inbox.before",
    "dataspace.written",
    "dataspace.noted",
    "dataspace.applied",
    "migrate.noted",
    "migrate.aside",
    "migrate.begun",
    "migrate.removed",
    "snapshot.made",
    "snapshot.after",
    "worktree.noted",
    "worktree.added",
    "worktree.unlocked",
    "worktree.kept",
    "worktree.going",
    "worktree.removed",
    "worktree.branch",
];

/// Marks a boundary. Kills the process if `RAYMOND_FAILPOINT` names it and its count is reached.
#[cfg(any(test, feature = "test-fakes"))]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static PLAN: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let plan = std::env::var("RAYMOND_FAILPOINT").ok()?;
        let (name, count) = plan.split_once(':')?;
        Some((name.to_owned(), AtomicU64::new(count.parse().ok()?)))
    });
    if let Some((planned, left)) = plan
        && planned == name
        && left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Marks a boundary. Does nothing in this build.
#[cfg(not(any(test, feature = "test-fakes")))]
pub fn point(_: &str) {}

/// The variable with the number of a record after which this process dies, as by `kill -9`. `raymond test --kill-sweep`
/// sets it for the runs of cases.
pub const STOP_AFTER: &str = "RAYMOND_LAST";

/// Kills this process once a record is durable, if it is the one after which it is to die, or a later one.
pub fn recorded(seq: u64) {
    use std::sync::LazyLock;

    static LAST: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var(STOP_AFTER).ok()?.parse().ok());
    if LAST.is_some_and(|last| seq >= last) {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Returns the path of the system's memory table. A test of scarcity names its own table in
/// `RAYMOND_MEMINFO`.
pub fn memory_table() -> std::path::PathBuf {
    #[cfg(any(test, feature = "test-fakes"))]
    if let Some(file) = std::env::var_os("RAYMOND_MEMINFO") {
        return file.into();
    }
    "/proc/meminfo".into()
}

/// Returns whether control groups may be used; a test sets `RAYMOND_NO_CGROUPS` to run without them.
pub fn may_use_cgroups() -> bool {
    #[cfg(any(test, feature = "test-fakes"))]
    if std::env::var_os("RAYMOND_NO_CGROUPS").is_some() {
        return false;
    }
    cfg!(target_os = "linux")
}

/// Returns by how many milliseconds the clock is off; a test names a file with the number in
/// `RAYMOND_CLOCK_SHIFT`, and so sets the clock of a process that runs.
pub fn clock_shift() -> i64 {
    #[cfg(any(test, feature = "test-fakes"))]
    {
        use std::sync::LazyLock;

        static FILE: LazyLock<Option<std::ffi::OsString>> =
            LazyLock::new(|| std::env::var_os("RAYMOND_CLOCK_SHIFT"));
        let text = FILE.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        if let Some(shift) = text.and_then(|text| text.trim().parse().ok()) {
            return shift;
        }
    }
    0
}
