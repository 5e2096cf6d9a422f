//! Questions to hosts: rows of the mailbox that no statement for a supervisor selects.

use super::engine::PostgresEngine;
use super::values::{number, stored, text};
use super::wakes::Topic;
use crate::engine::EngineError;
use crate::engine::host_mailbox::HostRequest;
use crate::engine::host_questions::HostQuestions;

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
