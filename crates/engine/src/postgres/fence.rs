//! The fences of statements: each that writes begins with one of them, and does nothing if it is empty.
//!
//! `FOR SHARE` locks the newest version of the row and compares the epoch with that. Whoever takes the run or the host
//! over changes the row, so that statement waits for those under way, and those that come later find another epoch.
//!
//! A fenced statement gives one row at least, also if it found nothing: no row says that the fence does not hold.
//!
//! A fence that is `unflushed` has its statement not wait for the disk. It is for statements that only note what was
//! handed out or is over: if a crash undoes that, the same is handed out again.

/// The fence of a run: one row if `$1` is a run and `$2` its newest epoch.
macro_rules! held_run {
    () => {
        held_run!(@ "1")
    };
    (unflushed) => {
        held_run!(@ "pg_catalog.set_config('synchronous_commit', 'off', true)")
    };
    (@ $column:literal) => {
        concat!(
            "WITH held AS MATERIALIZED (SELECT ",
            $column,
            " FROM raymond.run WHERE run = $1 AND epoch = $2 FOR SHARE)"
        )
    };
}

/// The fence of a host: one row if `$1` is a host in service and `$2` its newest epoch.
macro_rules! held_host {
    () => {
        held_host!(@ "1")
    };
    (unflushed) => {
        held_host!(@ "pg_catalog.set_config('synchronous_commit', 'off', true)")
    };
    (@ $column:literal) => {
        concat!(
            "WITH held AS MATERIALIZED (SELECT ",
            $column,
            " FROM raymond.host WHERE host = $1 AND epoch = $2",
            " AND standing IN ('active', 'draining') FOR SHARE)"
        )
    };
}
