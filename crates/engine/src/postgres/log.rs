//! The logs of runs, and their leases.

use std::time::Duration;

use raymond_model::id::RunId;

use super::engine::PostgresEngine;
use super::failure::{Failure, FailureKind};
use super::received_mail::APPEND;
use crate::postgres::calls::{flag, number, numbers, seconds, stored, stored_limit, text, texts};
use crate::shared_log::{
    LONGEST_LEASE, LogLine, NewSharedRun, RunLease, SharedLog, SharedRun, check_order,
};
use crate::{Engine, EngineError};

const CREATE: &str = "WITH made AS (INSERT INTO raymond.run (run, terms, epoch, holder, lease_until) \
    VALUES ($1, $2, 1, $3, clock_timestamp() + make_interval(secs => $4)) \
    ON CONFLICT (run) DO NOTHING RETURNING run), \
    put AS (INSERT INTO raymond.log (run, seq, epoch, line) \
    SELECT made.run, new.seq, 1, new.line FROM made, ROWS FROM (pg_catalog.unnest($5), pg_catalog.unnest($6)) AS new (seq, line)) \
    SELECT run FROM made";

/// Returns the epoch, and whether the run was made of these terms and lines by this holder.
const COMPARE: &str = "SELECT epoch, terms = $2 AND holder IS NOT DISTINCT FROM $3 AND $4 = \
    (SELECT coalesce(pg_catalog.array_agg(line ORDER BY seq), '{}') FROM raymond.log \
    WHERE run = $1 AND epoch = 1 AND seq <= pg_catalog.cardinality($4)) \
    FROM raymond.run WHERE run = $1";

/// The condition is evaluated on the newest version of the row, if another claim has changed it meanwhile.
const CLAIM: &str = "UPDATE raymond.run SET epoch = epoch + 1, holder = $2, has_ended = false, \
    lease_until = clock_timestamp() + make_interval(secs => $3) \
    WHERE run = $1 AND (holder IS NULL OR holder = $2 OR lease_until <= clock_timestamp()) \
    RETURNING epoch";

/// A lease that was given back stays so.
const RENEW: &str = "UPDATE raymond.run SET lease_until = CASE WHEN holder IS NOT NULL \
    THEN clock_timestamp() + make_interval(secs => $3) END \
    WHERE run = $1 AND epoch = $2 RETURNING 1";

const RELEASE: &str = "UPDATE raymond.run SET holder = NULL, lease_until = NULL, has_ended = $3 \
    WHERE run = $1 AND epoch = $2 RETURNING 1";

const RUNS: &str = "SELECT run, \
    (SELECT coalesce(max(seq), 0) FROM raymond.log WHERE log.run = run.run), \
    CASE WHEN lease_until > clock_timestamp() THEN holder END, has_ended, \
    NOT has_ended AND holder IS NOT NULL AND lease_until <= clock_timestamp() \
    FROM raymond.run ORDER BY run";

/// How many times to try a claim that lost a race.
const ATTEMPTS: u32 = 3;

fn lease_seconds(time: Duration) -> f64 {
    time.min(LONGEST_LEASE).as_secs_f64()
}

impl SharedLog for PostgresEngine {
    fn create_run(
        &self,
        new: &NewSharedRun,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError> {
        let lease = RunLease { run: new.run.clone(), epoch: 1 };
        check_order(self.address(), &new.run, &new.lines, 1)?;
        let run = new.run.as_str();
        let seqs: Vec<i64> = new.lines.iter().map(|line| stored(line.seq)).collect();
        let lines: Vec<&str> = new.lines.iter().map(|line| line.text.as_str()).collect();
        let time = lease_seconds(lease_time);
        let made = [
            text(&run),
            text(&new.terms),
            text(&holder),
            seconds(&time),
            numbers(&seqs),
            texts(&lines),
        ];
        if self.row(CREATE, &made)?.is_some() {
            return Ok(lease);
        }
        let compared = [text(&run), text(&new.terms), text(&holder), texts(&lines)];
        let Some(row) = self.row(COMPARE, &compared)? else {
            return Err(self.no_such_run(&new.run));
        };
        if self.count(&row, 0)? == 1 && self.column(&row, 1)? {
            self.renew_lease(&lease, lease_time)?;
            return Ok(lease);
        }
        Err(EngineError::RunExists { engine: self.address().to_string(), run: new.run.clone() })
    }

    fn claim_run(
        &self,
        run: &RunId,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError> {
        let (id, time) = (run.as_str(), lease_seconds(lease_time));
        for _ in 0..ATTEMPTS {
            if let Some(row) = self.row(CLAIM, &[text(&id), text(&holder), seconds(&time)])? {
                return Ok(RunLease { run: run.clone(), epoch: self.count(&row, 0)? });
            }
            let found = self.row("SELECT holder FROM raymond.run WHERE run = $1", &[text(&id)])?;
            let Some(row) = found else { return Err(self.no_such_run(run)) };
            // Otherwise it was given back just now.
            if let Some(holder) = self.column(&row, 0)? {
                let engine = self.address().to_string();
                return Err(EngineError::Supervised { engine, run: run.clone(), holder });
            }
        }
        let why = format!("others claimed and left the run {run} again and again");
        Err(Failure::unreachable(self.address(), why).into())
    }

    fn renew_lease(&self, lease: &RunLease, lease_time: Duration) -> Result<(), EngineError> {
        self.rows_of_run(lease, RENEW, &[seconds(&lease_seconds(lease_time))]).map(drop)
    }

    fn release_run(&self, lease: &RunLease, has_ended: bool) -> Result<(), EngineError> {
        self.rows_of_run(lease, RELEASE, &[flag(&has_ended)]).map(drop)
    }

    fn append(&self, lease: &RunLease, lines: &[LogLine]) -> Result<(), EngineError> {
        let first = lines.first().map_or(1, |line| line.seq);
        check_order(self.address(), &lease.run, lines, first.max(1))?;
        let mut rest = lines;
        for _ in 0..APPEND_ATTEMPTS {
            let Some(first) = rest.first() else { return Ok(()) };
            let seqs: Vec<i64> = rest.iter().map(|line| stored(line.seq)).collect();
            let texts_of: Vec<&str> = rest.iter().map(|line| line.text.as_str()).collect();
            let (run, epoch, first) = (lease.run.as_str(), stored(lease.epoch), stored(first.seq));
            let parameters =
                [text(&run), number(&epoch), numbers(&seqs), texts(&texts_of), number(&first)];
            let has_appended = match self.rows(APPEND.call, &parameters) {
                Ok(rows) => match rows.first() {
                    None => return Err(self.taken_over(lease)?),
                    Some(row) => self.count(row, 0)? > 0,
                },
                Err(Failure { kind: FailureKind::Taken, .. }) => false,
                Err(failure) => return Err(failure.into()),
            };
            if has_appended {
                return Ok(());
            }
            if let Found::Appended(count) = self.look_at(lease, rest)? {
                rest = &rest[count..];
            }
        }
        let why = "other appends with the same lease came between again and again";
        Err(Failure::unreachable(self.address(), why).into())
    }

    fn read(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError> {
        let (id, past, most) = (run.as_str(), stored(after), stored_limit(limit));
        let statement =
            "SELECT seq, line FROM raymond.log WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let rows = self.many_rows(statement, &[text(&id), number(&past), number(&most)])?;
        if rows.is_empty() && !self.has_run(run)? {
            return Err(self.no_such_run(run));
        }
        self.lines(&rows, after, |seq| self.damaged_log(run, format!("record {seq} is missing")))
    }

    fn terms(&self, run: &RunId) -> Result<String, EngineError> {
        let row =
            self.row("SELECT terms FROM raymond.run WHERE run = $1", &[text(&run.as_str())])?;
        let row = row.ok_or_else(|| self.no_such_run(run))?;
        Ok(self.column(&row, 0)?)
    }

    fn set_terms(&self, lease: &RunLease, terms: &str) -> Result<(), EngineError> {
        let statement =
            "UPDATE raymond.run SET terms = $3 WHERE run = $1 AND epoch = $2 RETURNING 1";
        self.rows_of_run(lease, statement, &[text(&terms)]).map(drop)
    }

    fn runs(&self) -> Result<Vec<SharedRun>, EngineError> {
        let rows = self.many_rows(RUNS, &[])?;
        let run = |row| -> Result<SharedRun, EngineError> {
            let id: &str = self.column(row, 0)?;
            Ok(SharedRun {
                run: RunId::parse(id).map_err(|error| self.damaged_schema(error.to_string()))?,
                last: self.count(row, 1)?,
                holder: self.column(row, 2)?,
                has_ended: self.column(row, 3)?,
                is_abandoned: self.column(row, 4)?,
            })
        };
        rows.iter().map(run).collect()
    }
}

// The judgement of an append that added nothing.

/// Returns the last number, and the lines with the numbers from `$2` to `$3`.
const LOOK: &str = "SELECT (SELECT coalesce(max(seq), 0) FROM raymond.log WHERE run = $1), here.epoch, here.line \
    FROM (VALUES (1)) AS one LEFT JOIN raymond.log AS here ON here.run = $1 AND here.seq BETWEEN $2 AND $3 \
    ORDER BY here.seq";

/// How many times to try an append that lost a race.
const APPEND_ATTEMPTS: u32 = 5;

/// What the log says about lines that were not appended.
enum Found {
    /// So many of them were appended by an earlier call.
    Appended(usize),
    /// Another append came between.
    Crossed,
}

impl PostgresEngine {
    /// Compares lines that were not appended with those that are there.
    fn look_at(&self, lease: &RunLease, lines: &[LogLine]) -> Result<Found, EngineError> {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Ok(Found::Appended(0));
        };
        let run = lease.run.as_str();
        let (from, to) = (stored(first.seq), stored(last.seq));
        let rows = self.rows(LOOK, &[text(&run), number(&from), number(&to)])?;
        let end = rows.first().map_or(Ok(0), |row| self.count(row, 0))?;
        if end + 1 < first.seq {
            let why = format!("record {} cannot follow record {end}, the last one", first.seq);
            return Err(self.damaged_log(&lease.run, why).into());
        }
        let mut same = 0;
        for (row, line) in rows.iter().zip(lines) {
            let epoch: Option<i64> = self.column(row, 1)?;
            let Some(epoch) = epoch else { break };
            if epoch != stored(lease.epoch) || self.column::<&str>(row, 2)? != line.text {
                let why = format!("there is another record {} already", line.seq);
                return Err(self.damaged_log(&lease.run, why).into());
            }
            same += 1;
        }
        Ok(if same == 0 { Found::Crossed } else { Found::Appended(same) })
    }

    fn damaged_log(&self, run: &RunId, why: String) -> Failure {
        Failure::damaged(self.address(), &format!("the run {run}"), why)
    }
}
