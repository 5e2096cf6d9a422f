//! Executes the kinds of nodes.

use serde_json::json;

use super::conditions::ConditionOutcome;
use super::{ActionProgress, GraphInterpreter, GraphYield};
use crate::graph::checked_graph::{
    GraphCondition, GraphNode, GraphNodeName, ReferenceNode, UserPrompt, UserPromptResponse,
};
use crate::graph::prompts::SELECTED;
use raymond_model::advance::AdvanceNext;
use raymond_model::graph_execution::{GraphStateChange, WaitResult};
use raymond_model::question::OTHER;

impl<'graph> GraphInterpreter<'graph> {
    /// Executes a node; returns its need if it does not finish.
    pub(super) fn execute(
        &mut self,
        node: &'graph GraphNode,
    ) -> Result<Option<GraphYield>, String> {
        match node {
            GraphNode::Action { actions, on_success, on_failure } => {
                Ok(match self.actions(actions) {
                    ActionProgress::Needs(need) => Some(need),
                    ActionProgress::Over(Ok(())) => self.leave("success", None, on_success),
                    ActionProgress::Over(Err(why)) => self.leave("failure", Some(why), on_failure),
                })
            }
            GraphNode::Conditional { condition, when_true, when_false } => {
                self.conditional(condition, when_true, when_false)
            }
            GraphNode::ValidationGate { validations, on_valid, on_invalid } => {
                self.gate_node(validations, on_valid, on_invalid)
            }
            GraphNode::UserPrompt(prompt) => self.user_prompt(prompt),
            GraphNode::Parallel(node) => Ok(self.parallel_node(node)),
            GraphNode::Reference { reference, next, on_failure } => {
                self.reference(reference, next, on_failure.as_ref())
            }
        }
    }

    fn conditional(
        &mut self,
        condition: &GraphCondition,
        when_true: &GraphNodeName,
        when_false: &GraphNodeName,
    ) -> Result<Option<GraphYield>, String> {
        Ok(match self.first_false(std::slice::from_ref(condition))? {
            ConditionOutcome::Needs(operation) => Some(GraphYield::Operation(operation)),
            ConditionOutcome::Yes => self.leave("true", None, when_true),
            ConditionOutcome::No(_) => self.leave("false", None, when_false),
        })
    }

    fn gate_node(
        &mut self,
        validations: &[GraphCondition],
        on_valid: &GraphNodeName,
        on_invalid: &GraphNodeName,
    ) -> Result<Option<GraphYield>, String> {
        let failures = match self.all_failures(validations) {
            Ok(failures) => failures,
            Err(operation) => return Ok(Some(GraphYield::Operation(operation))),
        };
        let valid = failures.is_empty();
        let path = vec!["computed".to_owned(), "validation_errors".to_owned()];
        self.change(GraphStateChange::Set(path, failures.into()))?;
        Ok(if valid {
            self.leave("valid", None, on_valid)
        } else {
            self.leave("invalid", None, on_invalid)
        })
    }

    fn user_prompt(&mut self, prompt: &'graph UserPrompt) -> Result<Option<GraphYield>, String> {
        if self.state.cursor.answer.is_none() {
            let Some(WaitResult::Answered(answer)) = self.wait_result.take() else {
                return self.question(prompt).map(Some);
            };
            let node = self.state.current_node.to_string();
            let mut given = json!({ "id": answer.id, "raw": answer.raw });
            let other = prompt.options.iter().position(|option| option.id == OTHER);
            if let Some(place) = other.filter(|_| answer.id == OTHER) {
                given["is_option"] = self.is_chosen(prompt, place, &answer.raw)?.into();
            }
            let mut response = answer.id;
            if let Some(from) = &prompt.from_state {
                let options = self.options_of(from)?;
                let chosen = options.into_iter().find(|(option, _)| option.id == response);
                if let Some((_, element)) = chosen {
                    given["selected"] = element;
                    SELECTED.clone_into(&mut response);
                }
            }
            self.change(GraphStateChange::Set(vec!["user_responses".to_owned(), node], given))?;
            self.state.cursor.answer = Some(response);
        }
        let answer = self.state.cursor.answer.clone().unwrap_or_default();
        let response = prompt.responses.get(&answer).or_else(|| prompt.responses.get(OTHER));
        let Some(UserPromptResponse { consequence, next, on_failure }) = response else {
            return Err(format!("WF504 nothing follows from the answer {answer}"));
        };
        match self.actions(consequence) {
            ActionProgress::Needs(need) => Ok(Some(need)),
            ActionProgress::Over(Ok(())) => Ok(self.leave(&answer, None, next)),
            ActionProgress::Over(Err(why)) => match on_failure {
                Some(target) => Ok(self.leave("failure", Some(why), target)),
                None => Err(why),
            },
        }
    }

    /// Returns whether an answer means the option at a place, and is no text of the person's own.
    fn is_chosen(&mut self, prompt: &UserPrompt, place: usize, raw: &str) -> Result<bool, String> {
        let (raw, option) = (raw.trim(), &prompt.options[place]);
        let is_number = raw.parse().ok() == Some(place + 1);
        Ok(is_number
            || raw == option.id
            || raw.to_lowercase() == self.text(&option.label)?.trim().to_lowercase())
    }

    fn reference(
        &mut self,
        reference: &ReferenceNode,
        next: &GraphNodeName,
        on_failure: Option<&GraphNodeName>,
    ) -> Result<Option<GraphYield>, String> {
        let came = match self.wait_result.take() {
            None => {
                return match self.task_of(reference) {
                    Ok(task) => Ok(Some(GraphYield::Record(AdvanceNext::Task(Box::new(task))))),
                    Err(why) => self.failed_reference(why, on_failure),
                };
            }
            Some(WaitResult::Done(outputs)) => self.merge_outputs(outputs),
            Some(WaitResult::Failed(why)) => Err(why),
            Some(WaitResult::Answered(_)) => {
                Err("an answer came where none was asked for".to_owned())
            }
        };
        match came {
            Ok(()) => Ok(self.leave("success", None, next)),
            Err(why) => self.failed_reference(why, on_failure),
        }
    }

    fn failed_reference(
        &mut self,
        why: String,
        on_failure: Option<&GraphNodeName>,
    ) -> Result<Option<GraphYield>, String> {
        match on_failure {
            Some(target) => Ok(self.leave("failure", Some(why), target)),
            None => Err(why),
        }
    }
}
