//! Appends to the log of a run: one statement, and the judgement if it added nothing.

use super::engine::PostgresEngine;
use super::failure::{Failure, FailureKind};
use super::step_statements::APPEND;
use crate::postgres::calls::{number, numbers, stored, text, texts};
use crate::shared_log::{LogLine, RunLease};
use crate::{Engine, EngineError};

/// Returns the last number, and the lines with the numbers from `$2` to `$3`.
const LOOK: &str = "SELECT (SELECT coalesce(max(seq), 0) FROM raymond.log WHERE run = $1), here.epoch, here.line \
    FROM (VALUES (1)) AS one LEFT JOIN raymond.log AS here ON here.run = $1 AND here.seq BETWEEN $2 AND $3 \
    ORDER BY here.seq";

/// How often an append is made that met another one.
const ATTEMPTS: u32 = 5;

/// What the log says about lines that were not appended.
enum Found {
    /// So many of them were appended by an earlier call.
    Appended(usize),
    /// Another append came between.
    Crossed,
}

impl PostgresEngine {
    /// Appends lines, all or none.
    pub(super) fn append_lines(
        &self,
        lease: &RunLease,
        lines: &[LogLine],
    ) -> Result<(), EngineError> {
        self.check_order(lease, lines)?;
        let mut rest = lines;
        for _ in 0..ATTEMPTS {
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
            return Err(self.damaged_log(lease, why));
        }
        let mut same = 0;
        for (row, line) in rows.iter().zip(lines) {
            let epoch: Option<i64> = self.column(row, 1)?;
            let Some(epoch) = epoch else { break };
            if epoch != stored(lease.epoch) || self.column::<&str>(row, 2)? != line.text {
                let why = format!("there is another record {} already", line.seq);
                return Err(self.damaged_log(lease, why));
            }
            same += 1;
        }
        Ok(if same == 0 { Found::Crossed } else { Found::Appended(same) })
    }

    /// Refuses lines whose numbers do not follow each other.
    fn check_order(&self, lease: &RunLease, lines: &[LogLine]) -> Result<(), EngineError> {
        let first = lines.first().map_or(1, |line| line.seq);
        let wrong = lines.iter().zip(first.max(1)..).find(|(line, seq)| line.seq != *seq);
        wrong.map_or(Ok(()), |(line, seq)| {
            let why = format!("record {} was given instead of record {seq}", line.seq);
            Err(self.damaged_log(lease, why))
        })
    }

    fn damaged_log(&self, lease: &RunLease, why: String) -> EngineError {
        Failure::damaged(self.address(), &format!("the run {}", lease.run), why).into()
    }
}
