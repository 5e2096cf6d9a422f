//! The five kinds of nodes: what each does, and where it goes.

use serde_json::json;

use super::conditions::Held;
use super::{Machine, Need, Progress};
use crate::domain::graph::{Change, Heard};
use crate::domain::question::OTHER;
use crate::domain::walk::Then;
use crate::language::graph::program::{Condition, Name, Node, Reference, Response, UserPrompt};

impl<'graph> Machine<'graph> {
    /// Executes a node; gives what it needs if it does not come to its end.
    pub(super) fn execute(&mut self, node: &'graph Node) -> Result<Option<Need>, String> {
        match node {
            Node::Action { actions, on_success, on_failure } => Ok(match self.actions(actions) {
                Progress::Needs(need) => Some(need),
                Progress::Over(Ok(())) => self.leave("success", None, on_success),
                Progress::Over(Err(why)) => self.leave("failure", Some(why), on_failure),
            }),
            Node::Conditional { condition, when_true, when_false } => {
                self.conditional(condition, when_true, when_false)
            }
            Node::ValidationGate { validations, on_valid, on_invalid } => {
                self.gate_node(validations, on_valid, on_invalid)
            }
            Node::UserPrompt(prompt) => self.user_prompt(prompt),
            Node::Reference { reference, next, on_failure } => {
                self.reference(reference, next, on_failure.as_ref())
            }
        }
    }

    fn conditional(
        &mut self,
        condition: &Condition,
        when_true: &Name,
        when_false: &Name,
    ) -> Result<Option<Need>, String> {
        Ok(match self.first_false(std::slice::from_ref(condition))? {
            Held::Needs(operation) => Some(Need::Operation(operation)),
            Held::Yes => self.leave("true", None, when_true),
            Held::No(_) => self.leave("false", None, when_false),
        })
    }

    fn gate_node(
        &mut self,
        validations: &[Condition],
        on_valid: &Name,
        on_invalid: &Name,
    ) -> Result<Option<Need>, String> {
        let failures = match self.all_failures(validations) {
            Ok(failures) => failures,
            Err(operation) => return Ok(Some(Need::Operation(operation))),
        };
        let valid = failures.is_empty();
        let path = vec!["computed".to_owned(), "validation_errors".to_owned()];
        self.change(Change::Set(path, failures.into()))?;
        Ok(if valid {
            self.leave("valid", None, on_valid)
        } else {
            self.leave("invalid", None, on_invalid)
        })
    }

    fn user_prompt(&mut self, prompt: &'graph UserPrompt) -> Result<Option<Need>, String> {
        if self.state.cursor.answer.is_none() {
            let Some(Heard::Answered(answer)) = self.heard.take() else {
                return self.question(prompt).map(Some);
            };
            let node = self.state.current_node.to_string();
            let given = json!({ "id": answer.id, "raw": answer.raw });
            self.change(Change::Set(vec!["user_responses".to_owned(), node], given))?;
            self.state.cursor.answer = Some(answer.id);
        }
        let answer = self.state.cursor.answer.clone().unwrap_or_default();
        let response = prompt.responses.get(&answer).or_else(|| prompt.responses.get(OTHER));
        let Some(Response { consequence, next, on_failure }) = response else {
            return Err(format!("WF504 nothing follows from the answer {answer}"));
        };
        match self.actions(consequence) {
            Progress::Needs(need) => Ok(Some(need)),
            Progress::Over(Ok(())) => Ok(self.leave(&answer, None, next)),
            Progress::Over(Err(why)) => match on_failure {
                Some(target) => Ok(self.leave("failure", Some(why), target)),
                None => Err(why),
            },
        }
    }

    fn reference(
        &mut self,
        reference: &Reference,
        next: &Name,
        on_failure: Option<&Name>,
    ) -> Result<Option<Need>, String> {
        let came = match self.heard.take() {
            None => {
                return match self.task_of(reference) {
                    Ok(task) => Ok(Some(Need::Record(Then::Task(Box::new(task))))),
                    Err(why) => self.failed_reference(why, on_failure),
                };
            }
            Some(Heard::Done(outputs)) => self.merge_outputs(outputs),
            Some(Heard::Failed(why)) => Err(why),
            Some(Heard::Answered(_)) => Err("an answer came where none was asked for".to_owned()),
        };
        match came {
            Ok(()) => Ok(self.leave("success", None, next)),
            Err(why) => self.failed_reference(why, on_failure),
        }
    }

    fn failed_reference(
        &mut self,
        why: String,
        on_failure: Option<&Name>,
    ) -> Result<Option<Need>, String> {
        match on_failure {
            Some(target) => Ok(self.leave("failure", Some(why), target)),
            None => Err(why),
        }
    }
}
