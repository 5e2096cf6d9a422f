//! Calls: one statement each, made again on another connection if the first was cut, and ended in time.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Row;

use super::failure::{Failure, FailureKind};
use super::links::Links;
use super::values::Parameter;

/// The time for a call.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(8);
/// The time for a call that carries much.
pub(super) const LARGE_CALL_LIMIT: Duration = Duration::from_secs(30);
/// How often a statement is made that was cut off or lost against another one.
const ATTEMPTS: u32 = 6;

impl Links {
    /// Makes a statement, and returns its rows. Waits for them on this thread, which must not be one of a runtime.
    ///
    /// The statement may be carried out more than once: it changes nothing the second time.
    pub(super) fn call(
        &self,
        limit: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.handle.block_on(self.ask(limit, statement, parameters))
    }

    /// Makes a statement, and returns its rows.
    pub(super) async fn ask(
        &self,
        limit: Duration,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let made = timeout(limit, self.attempts(statement, parameters)).await;
        made.unwrap_or_else(|_| {
            self.close_idle();
            let seconds = limit.as_secs();
            Err(Failure::unreachable(&self.address, format!("no answer within {seconds} s")))
        })
    }

    async fn attempts(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let mut has_reconnected = false;
        for _ in 1..ATTEMPTS {
            let failure = match self.attempt(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            match failure.kind {
                FailureKind::Crossed => {}
                FailureKind::Broken if !has_reconnected => {
                    has_reconnected = true;
                    self.close_idle();
                }
                FailureKind::Broken | FailureKind::Taken | FailureKind::Final => {
                    return Err(failure);
                }
            }
        }
        self.attempt(statement, parameters).await
    }

    async fn attempt(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let lent = self.lend().await?;
        let Some(link) = lent.link() else {
            return Err(Failure::unreachable(&self.address, "the connection was given back"));
        };
        let answer = link.client.query_typed(statement, parameters).await;
        let answer = answer.map_err(|error| Failure::of_statement(&self.address, &error));
        let is_broken = matches!(&answer, Err(failure) if failure.kind == FailureKind::Broken);
        if !is_broken {
            lent.give_back();
        }
        answer
    }
}
