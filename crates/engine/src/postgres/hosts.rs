//! The hosts that a database knows, and the questions to them.
//!
//! The row of a host that was removed stays, so that its next epoch is a new one.

use std::time::Duration;

use crate::postgres::calls::{number, stored, text};
use crate::postgres::engine::PostgresEngine;
use crate::postgres::engine::Topic;
use crate::postgres::failure::Failure;
use crate::shared_log::{HostClaim, HostQuestions, HostRegistry, HostRequest, RegisteredHost};
use crate::{Engine, EngineError};
use raymond_model::host::{HostEpoch, HostName, HostReport, HostStanding};
use raymond_model::time::millis_of;

const REGISTER: &str = "INSERT INTO raymond.host AS host (host, epoch, worker, standing, seen, report) \
    VALUES ($1, 1, $2, 'active', clock_timestamp(), $3::jsonb) \
    ON CONFLICT (host) DO UPDATE SET epoch = host.epoch + CASE \
    WHEN host.worker = excluded.worker AND host.standing IN ('active', 'draining') THEN 0 ELSE 1 END, \
    worker = excluded.worker, standing = 'active', seen = clock_timestamp(), report = excluded.report \
    WHERE host.worker = excluded.worker OR host.standing NOT IN ('active', 'draining') \
    OR host.seen <= clock_timestamp() - $4 * interval '1 millisecond' \
    RETURNING epoch";

const HEARTBEAT: &str = "UPDATE raymond.host SET seen = clock_timestamp(), report = $3::jsonb \
    WHERE host = $1 AND epoch = $2 AND standing IN ('active', 'draining') \
    AND report->>'start' IS NOT DISTINCT FROM $3::jsonb->>'start' RETURNING standing";

const HOSTS: &str = "SELECT host, epoch, standing, \
    extract(epoch FROM clock_timestamp() - seen)::float8, report::text \
    FROM raymond.host WHERE standing <> 'removed' ORDER BY host";

/// A host that is lost already stays in its epoch.
const SET_STANDING: &str = "UPDATE raymond.host SET standing = $2, \
    epoch = epoch + CASE WHEN $2 = 'lost' AND standing <> 'lost' THEN 1 ELSE 0 END \
    WHERE host = $1 AND standing <> 'removed' RETURNING 1";

const REMOVE: &str = "UPDATE raymond.host SET standing = 'removed', epoch = epoch + 1 \
    WHERE host = $1 AND standing <> 'removed' RETURNING 1";

impl HostRegistry for PostgresEngine {
    fn register_host(
        &self,
        host: &HostName,
        worker: &str,
        report: &HostReport,
        silence: Duration,
    ) -> Result<HostClaim, EngineError> {
        let report = self.stored_report(report)?;
        let silence = stored(millis_of(silence));
        let name = host.as_str();
        let parameters = [text(&name), text(&worker), text(&report), number(&silence)];
        let row = self.row(REGISTER, &parameters)?;
        let row = row.ok_or_else(|| EngineError::HostTaken { host: host.clone() })?;
        Ok(HostClaim { host: host.clone(), epoch: HostEpoch(self.count(&row, 0)?) })
    }

    fn heartbeat(
        &self,
        claim: &HostClaim,
        report: &HostReport,
    ) -> Result<HostStanding, EngineError> {
        let (host, epoch) = (claim.host.as_str(), stored(claim.epoch.0));
        let report = self.stored_report(report)?;
        let row = self.row(HEARTBEAT, &[text(&host), number(&epoch), text(&report)])?;
        let row = row.ok_or_else(|| EngineError::HostFenced { host: claim.host.clone() })?;
        self.standing(host, self.column(&row, 0)?)
    }

    fn hosts(&self) -> Result<Vec<RegisteredHost>, EngineError> {
        let rows = self.rows(HOSTS, &[])?;
        let host = |row| -> Result<RegisteredHost, EngineError> {
            let (host, report): (&str, &str) = (self.column(row, 0)?, self.column(row, 4)?);
            let seconds: f64 = self.column(row, 3)?;
            Ok(RegisteredHost {
                host: HostName::parse(host).map_err(|error| self.damaged_host(host, &error))?,
                epoch: HostEpoch(self.count(row, 1)?),
                standing: self.standing(host, self.column(row, 2)?)?,
                // A clock that was set back gives a negative time.
                silent_for: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
                report: serde_json::from_str(report)
                    .map_err(|error| self.damaged_host(host, &error))?,
            })
        };
        rows.iter().map(host).collect()
    }

    fn set_standing(&self, host: &HostName, standing: HostStanding) -> Result<(), EngineError> {
        let standing = standing.to_string();
        let set = self.row(SET_STANDING, &[text(&host.as_str()), text(&standing)])?;
        set.map(drop).ok_or_else(|| self.no_such_host(host))
    }

    fn remove_host(&self, host: &HostName) -> Result<(), EngineError> {
        let removed = self.row(REMOVE, &[text(&host.as_str())])?;
        removed.map(drop).ok_or_else(|| self.no_such_host(host))
    }
}

impl PostgresEngine {
    fn stored_report(&self, report: &HostReport) -> Result<String, EngineError> {
        serde_json::to_string(report).map_err(|error| {
            Failure::refused(
                self.address(),
                format!("the report of the host cannot be written as JSON: {error}"),
            )
            .into()
        })
    }

    /// Returns a standing of a host as it is stored, in lower case.
    fn standing(&self, host: &str, stored: &str) -> Result<HostStanding, EngineError> {
        let unknown = |_| self.damaged_host(host, &format!("`{stored}` is not a known standing"));
        stored.parse().map_err(unknown)
    }

    fn no_such_host(&self, host: &HostName) -> EngineError {
        EngineError::NoSuchHost { engine: self.address().to_string(), host: host.clone() }
    }

    fn damaged_host(&self, host: &str, why: &impl ToString) -> EngineError {
        Failure::damaged(self.address(), &format!("the host {host}"), why.to_string()).into()
    }
}

// Questions to hosts: rows of the mailbox that no statement for a supervisor selects.

/// Questions that nobody came back for, or whose hosts have gone on to another epoch, are deleted by the way.
const ASK: &str = "WITH purged AS (DELETE FROM raymond.request AS old WHERE old.key LIKE '?%' \
    AND (old.answered < clock_timestamp() - interval '10 minutes' OR NOT EXISTS \
    (SELECT FROM raymond.host WHERE host.host = old.host AND host.epoch = old.host_epoch))), \
    put AS (INSERT INTO raymond.request (key, run, host, host_epoch, body, state) \
    SELECT $2, $1, $3, $4, $5, 'open' FROM raymond.run WHERE run = $1 ON CONFLICT (key) DO NOTHING) \
    SELECT 1 FROM raymond.run WHERE run = $1";

const QUESTION_REPLY: &str =
    "SELECT reply FROM raymond.request WHERE key = $1 AND state = 'answered'";

const END: &str = "DELETE FROM raymond.request WHERE key = $1 AND key LIKE '?%'";

impl HostQuestions for PostgresEngine {
    fn ask(&self, question: &HostRequest) -> Result<(), EngineError> {
        let HostRequest { key, run, host, host_epoch, body } = question;
        let (id, name, epoch) = (run.as_str(), host.as_str(), stored(host_epoch.0));
        let parameters = [text(&id), text(&key), text(&name), number(&epoch), text(&body)];
        self.row(ASK, &parameters)?.ok_or_else(|| self.no_such_run(run))?;
        self.wakes.wake([Topic::Host(host)]);
        Ok(())
    }

    fn question_reply(&self, key: &str) -> Result<Option<String>, EngineError> {
        let rows = self.many_rows(QUESTION_REPLY, &[text(&key)])?;
        Ok(rows.first().map_or(Ok(None), |row| self.column(row, 0))?)
    }

    fn end_question(&self, key: &str) -> Result<(), EngineError> {
        self.many_rows(END, &[text(&key)])?;
        Ok(())
    }
}
