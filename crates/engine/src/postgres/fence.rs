//! The fences of statements: each writing statement begins with a fence, and does nothing if the fence is empty.
//!
//! `FOR SHARE` locks the newest version of the row and compares the epoch with it. Taking over the run or the host
//! changes the row. So the takeover waits for the statements in progress, and later statements find another epoch.
//!
//! A fenced statement returns at least one row, even if it found nothing. No row means that the fence does not hold.
//!
//! With an `unflushed` fence, the statement does not wait for the disk. It is for statements that only note what was
//! handed out or is over. If a crash undoes that, the same is handed out again.

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
        concat!(
            "WITH held AS MATERIALIZED (SELECT 1",
            " FROM raymond.host WHERE host = $1 AND epoch = $2",
            " AND standing IN ('active', 'draining') FOR SHARE)"
        )
    };
}
