//! The space of runs: commands, and contents by their checksum.

use super::engine::PostgresEngine;
use super::failure::Failure;
use crate::connect::{RunSpace, SharedCommand, too_large};
use crate::postgres::calls::{content, number, stored, text};
use crate::postgres::engine::Topic;
use crate::shared_log::RunLease;
use crate::{Engine, EngineError};
use raymond_model::id::RunId;

const LEAVE: &str = "WITH put AS (INSERT INTO raymond.command (run, name, content) \
    SELECT run, $2, $3 FROM raymond.run WHERE run = $1 ON CONFLICT (run, name) DO NOTHING) \
    SELECT 1 FROM raymond.run WHERE run = $1";

const COMMANDS: &str = "SELECT name, content FROM raymond.command \
    WHERE run = $1 AND removed IS NULL ORDER BY name";

const REMOVE: &str = concat!(
    held_run!(),
    ", gone AS (UPDATE raymond.command SET removed = clock_timestamp(), content = '' \
     WHERE run = $1 AND name = $3 AND removed IS NULL AND EXISTS (SELECT FROM held)), \
     purged AS (DELETE FROM raymond.command WHERE run = $1 AND name <> $3 \
     AND removed < clock_timestamp() - interval '10 minutes' AND EXISTS (SELECT FROM held)) \
     SELECT 1 FROM held"
);

impl RunSpace for PostgresEngine {
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError> {
        let id = run.as_str();
        let parameters = [text(&id), text(&command.name), content(&command.content)];
        let left = self.row(LEAVE, &parameters)?;
        left.ok_or_else(|| self.no_such_run(run))?;
        self.wakes.wake([Topic::Run(run)]);
        Ok(())
    }

    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError> {
        let rows = self.many_rows(COMMANDS, &[text(&run.as_str())])?;
        if rows.is_empty() && !self.has_run(run)? {
            return Err(self.no_such_run(run));
        }
        let command = |row| -> Result<SharedCommand, EngineError> {
            Ok(SharedCommand { name: self.column(row, 0)?, content: self.column(row, 1)? })
        };
        rows.iter().map(command).collect()
    }

    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError> {
        self.rows_of_run(lease, REMOVE, &[text(&name)]).map(drop)
    }

    fn put_blob(&self, sha256: &str, bytes: &[u8]) -> Result<(), EngineError> {
        // What is there already does not cross the network again.
        let found = "SELECT 1 FROM raymond.blob WHERE sha256 = $1";
        if self.row(found, &[text(&sha256)])?.is_some() {
            return Ok(());
        }
        let put =
            "INSERT INTO raymond.blob (sha256, content) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        self.many_rows(put, &[text(&sha256), content(&bytes)])?;
        Ok(())
    }

    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError> {
        let statement = "SELECT CASE WHEN octet_length(content) <= $2 THEN content END, \
            octet_length(content)::int8 FROM raymond.blob WHERE sha256 = $1";
        let limit = stored(most);
        let rows = self.many_rows(statement, &[text(&sha256), number(&limit)])?;
        let Some(row) = rows.first() else { return Ok(None) };
        if let Some(content) = self.column(row, 0)? {
            return Ok(Some(content));
        }
        let why = too_large(self.count(row, 1)?, most);
        Err(Failure::damaged(self.address(), &format!("the content {sha256}"), why).into())
    }
}
