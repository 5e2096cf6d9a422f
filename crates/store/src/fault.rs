//! Failpoints: named places at which a test can have this process die, as by `kill -9`.
//!
//! The promise that nothing is lost or done twice has to hold wherever the runtime is killed, so each
//! boundary of a step has a name. `RAYMOND_FAILPOINT=append.after:3` kills the process when `append.after` is
//! reached for the third time. Failpoints exist only in a build with the feature `test-fakes`.

/// Declares the points with their names.
macro_rules! fault_points {
    ($($point:ident = $name:literal,)*) => {
        /// A boundary of a step, in the order in which a step comes to them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FaultPoint {
            $(#[doc = $name] $point,)*
        }

        /// The names of all points.
        pub const POINTS: [&str; [$($name),*].len()] = [$($name),*];
    };
}

fault_points! {
    SpawnBefore = "spawn.before",
    SpawnAfter = "spawn.after",
    SpawnAsked = "spawn.asked",
    PassageNoted = "passage.noted",
    PassageAsked = "passage.asked",
    StreamRead = "stream.read",
    MessageBefore = "message.before",
    MessageSent = "message.sent",
    ApprovalBefore = "approval.before",
    ApprovalTold = "approval.told",
    ForkBefore = "fork.before",
    ForkAfter = "fork.after",
    RestBefore = "rest.before",
    RestGroup = "rest.group",
    RestAfter = "rest.after",
    CompactNoted = "compact.noted",
    CompactMoved = "compact.moved",
    CommitBefore = "commit.before",
    AppendBefore = "append.before",
    AppendAfter = "append.after",
    SyncAfter = "sync.after",
    AdoptBefore = "adopt.before",
    EffectBefore = "effect.before",
    EffectAfter = "effect.after",
    PublishBefore = "publish.before",
    OperationBefore = "operation.before",
    OperationAfter = "operation.after",
    ActivityBefore = "activity.before",
    ActivityAfter = "activity.after",
    ReplaceBefore = "replace.before",
    ReplaceWritten = "replace.written",
    ReplaceAfter = "replace.after",
    InboxBefore = "inbox.before",
    DataspaceWritten = "dataspace.written",
    DataspaceNoted = "dataspace.noted",
    DataspaceApplied = "dataspace.applied",
    MigrateNoted = "migrate.noted",
    MigrateAside = "migrate.aside",
    MigrateBegun = "migrate.begun",
    MigrateRemoved = "migrate.removed",
    SnapshotMade = "snapshot.made",
    SnapshotAfter = "snapshot.after",
    WorktreeNoted = "worktree.noted",
    WorktreeAdded = "worktree.added",
    WorktreeUnlocked = "worktree.unlocked",
    WorktreeKept = "worktree.kept",
    WorktreeGoing = "worktree.going",
    WorktreeRemoved = "worktree.removed",
    WorktreeBranch = "worktree.branch",
}

impl FaultPoint {
    /// Kills the process if `RAYMOND_FAILPOINT` names this boundary and its count is reached. Does nothing in a build
    /// without the feature `test-fakes`.
    pub fn reach(self) {
        #[cfg(any(test, feature = "test-fakes"))]
        self.die_if_planned();
    }

    #[cfg(any(test, feature = "test-fakes"))]
    fn die_if_planned(self) {
        use std::sync::OnceLock;
        use std::sync::atomic::{AtomicU64, Ordering};

        static PLAN: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
        let plan = PLAN.get_or_init(|| {
            let plan = std::env::var("RAYMOND_FAILPOINT").ok()?;
            let (name, count) = plan.split_once(':')?;
            Some((name.to_owned(), AtomicU64::new(count.parse().ok()?)))
        });
        if let Some((planned, left)) = plan
            && planned == POINTS[self as usize]
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            die();
        }
    }
}

/// The variable with the number of a record after which this process dies, as by `kill -9`. `raymond test --kill-sweep`
/// sets it for the runs of cases.
pub const STOP_AFTER: &str = "RAYMOND_LAST";

/// Kills this process once a record is durable, if it is the one after which it is to die, or a later one.
pub fn recorded(seq: u64) {
    use std::sync::LazyLock;

    static LAST: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var(STOP_AFTER).ok()?.parse().ok());
    if LAST.is_some_and(|last| seq >= last) {
        die();
    }
}

/// Kills this process, as by `kill -9`.
fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
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
