//! The log of the changes of facts.

use std::time::Duration;

use super::calls::{CALL_LIMIT, number, stored, stored_limit, text};
use super::engine::{PostgresEngine, Topic};
use super::failure::{Failure, FailureKind};
use crate::shared_log::{FactAppend, FactLog, LogLine, RunLease};
use crate::{Engine, EngineError};

/// Appends a change if `$1` is the last number.
///
/// The number may be older than that of the newest change. Then the key of the table refuses the new change. It is
/// never newer, because changes are never removed, so the numbers have no gaps.
const APPEND: &str = "INSERT INTO raymond.fact (number, change) SELECT $1 + 1, $2 \
    WHERE coalesce((SELECT max(number) FROM raymond.fact), 0) = $1 RETURNING 1";

/// Appends the change of a step of a run: as above, behind the fence of the run.
const APPEND_STEP: &str = concat!(
    held_run!(),
    ", put AS (INSERT INTO raymond.fact (number, change) SELECT $3 + 1, $4 FROM held \
     WHERE coalesce((SELECT max(number) FROM raymond.fact), 0) = $3 RETURNING 1) \
     SELECT EXISTS (SELECT FROM put) FROM held"
);

/// Returns the last number, and whether the change after `$1` is this one.
const LOOK: &str = "SELECT coalesce(max(number), 0), \
    coalesce(bool_or(number = $1 + 1 AND change = $2), false) FROM raymond.fact WHERE number >= $1";

const CHANGES: &str =
    "SELECT number, change FROM raymond.fact WHERE number > $1 ORDER BY number LIMIT $2";

/// Returns a row if there is a later change.
const LATER: &str = "SELECT 1 FROM raymond.fact WHERE number > $1 LIMIT 1";

/// The number of tries of an append that met another one and finds nothing of it.
const ATTEMPTS: u32 = 5;

impl FactLog for PostgresEngine {
    fn fact_changes(&self, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError> {
        let (past, most) = (stored(after), stored_limit(limit));
        let rows = self.many_rows(CHANGES, &[number(&past), number(&most)])?;
        self.lines(&rows, after, |seq| self.damaged_facts(format!("change {seq} is missing")))
    }

    fn append_fact_change(
        &self,
        lease: Option<&RunLease>,
        after: u64,
        change: &str,
    ) -> Result<FactAppend, EngineError> {
        for _ in 0..ATTEMPTS {
            if self.insert_change(lease, after, change)? {
                self.wakes.wake([Topic::Facts]);
                return Ok(FactAppend::Appended);
            }
            let last = stored(after);
            let Some(row) = self.row(LOOK, &[number(&last), text(&change)])? else { continue };
            if self.column(&row, 1)? {
                return Ok(FactAppend::Appended);
            }
            let end = self.count(&row, 0)?;
            if end < after {
                let why = format!("a change cannot follow change {after}, which is not there");
                return Err(self.damaged_facts(why).into());
            }
            // Otherwise the append that came between was undone.
            if end > after {
                return Ok(FactAppend::Crossed);
            }
        }
        let why = "other changes of facts came between again and again";
        Err(Failure::unreachable(self.address(), why).into())
    }

    fn wait_for_fact_changes(&self, after: u64, longest: Duration) -> Result<(), EngineError> {
        let after = stored(after);
        let look = async |_| {
            let rows = self.links.ask(CALL_LIMIT, LATER, &[number(&after)]).await?;
            Ok(!rows.is_empty())
        };
        self.wait(&Topic::Facts.channel(), longest, look)
    }
}

impl PostgresEngine {
    /// Inserts a change behind the last one; returns false if another has its place.
    fn insert_change(
        &self,
        lease: Option<&RunLease>,
        after: u64,
        change: &str,
    ) -> Result<bool, EngineError> {
        let last = stored(after);
        let rows = match lease {
            None => self.rows(APPEND, &[number(&last), text(&change)]),
            Some(lease) => {
                let (run, epoch) = (lease.run.as_str(), stored(lease.epoch));
                let step = [text(&run), number(&epoch), number(&last), text(&change)];
                self.rows(APPEND_STEP, &step)
            }
        };
        match (rows, lease) {
            (Err(Failure { kind: FailureKind::Taken, .. }), _) => Ok(false),
            (Err(failure), _) => Err(failure.into()),
            (Ok(rows), None) => Ok(!rows.is_empty()),
            (Ok(rows), Some(lease)) => match rows.first() {
                None => Err(self.taken_over(lease)?),
                Some(row) => Ok(self.column(row, 0)?),
            },
        }
    }

    fn damaged_facts(&self, why: String) -> Failure {
        Failure::damaged(self.address(), "the facts", why)
    }
}
