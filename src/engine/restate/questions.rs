//! Questions to hosts, of whoever looks at a run.

use super::engine::RestateEngine;
use super::mailbox::run_of;
use super::objects::run_calls::{CarriedRequest, RunAnswer, RunCall, RunLook};
use crate::engine::EngineError;
use crate::engine::host_mailbox::HostRequest;
use crate::engine::host_questions::HostQuestions;

impl HostQuestions for RestateEngine {
    fn ask(&self, question: &HostRequest) -> Result<(), EngineError> {
        let carried = CarriedRequest {
            key: question.key.clone(),
            host: question.host.as_str().to_owned(),
            host_epoch: question.host_epoch.0,
            body: question.body.clone(),
        };
        self.run(&question.run, &RunCall::Ask { question: carried }).map(drop)
    }

    fn question_reply(&self, key: &str) -> Result<Option<String>, EngineError> {
        let Some(run) = run_of(key) else { return Ok(None) };
        match self.run_look(&run, &RunLook::QuestionReply { key: key.to_owned() }) {
            Ok(RunAnswer::QuestionReply(reply)) => Ok(reply),
            Ok(other) => Err(self.unexpected(&other)),
            Err(EngineError::NoSuchRun { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn end_question(&self, key: &str) -> Result<(), EngineError> {
        let Some(run) = run_of(key) else { return Ok(()) };
        match self.run(&run, &RunCall::EndQuestion { key: key.to_owned() }) {
            Ok(_) | Err(EngineError::NoSuchRun { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
