//! Executes the kinds of nodes, and checks preconditions.

use raymond_model::event::NextAction;
use raymond_model::graph_execution::{GraphStateChange, WaitResult};
use raymond_model::json_mistake::{PathSegment, ValuePath};
use raymond_model::operation::Operation;
use raymond_model::question::OTHER;
use serde_json::{Value, json};

use super::actions::number;
use super::{ActionProgress, GraphInterpreter, GraphYield};
use crate::expression::{ValueTemplate, as_text, same, truth};
use crate::graph::checked_graph::{
    ConditionTest, GraphCondition, GraphNode, GraphNodeName, NumberComparison, ReferenceNode,
    UserPrompt, UserPromptResponse,
};
use crate::graph::prompts::SELECTED;

impl GraphInterpreter {
    /// Executes a node; returns its need if it does not finish.
    pub(super) fn execute(&mut self, node: &GraphNode) -> Result<Option<GraphYield>, String> {
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

    fn user_prompt(&mut self, prompt: &UserPrompt) -> Result<Option<GraphYield>, String> {
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
            ActionProgress::Over(Err(why)) => self.fail(why, on_failure.as_ref()),
        }
    }

    /// Returns whether an answer means the option at a place, rather than the person's own text.
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
        let outputs = match self.take_result() {
            None => match self.task_of(reference) {
                Ok(task) => {
                    return Ok(Some(GraphYield::action(NextAction::Task(Box::new(task)))));
                }
                Err(why) => Err(why),
            },
            Some(came) => came.and_then(|outputs| self.merge_outputs(outputs)),
        };
        match outputs {
            Ok(()) => Ok(self.leave("success", None, next)),
            Err(why) => self.fail(why, on_failure),
        }
    }

    /// Leaves a failed node; without a target for that, the agent fails.
    fn fail(
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

// Checks preconditions. If one needs an operation on the world, the whole list is checked again with its result.

/// The outcome of a list of conditions.
pub(super) enum ConditionOutcome {
    Yes,
    /// One does not hold, with the message for people.
    No(String),
    /// The world has to be asked first.
    Needs(Operation),
}

/// A reason that a condition has no answer yet, or none at all.
enum ConditionError {
    Needs(Operation),
    Wrong(String),
}

impl From<String> for ConditionError {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl GraphInterpreter {
    /// Checks that all hold; the outcome has the message of the first that does not.
    pub(super) fn first_false(
        &mut self,
        conditions: &[GraphCondition],
    ) -> Result<ConditionOutcome, String> {
        let mut asked = 0;
        for condition in conditions {
            match self.holds(condition, &mut asked) {
                Ok(true) => {}
                Ok(false) => return Ok(ConditionOutcome::No(self.message(condition))),
                Err(ConditionError::Needs(operation)) => {
                    return Ok(ConditionOutcome::Needs(operation));
                }
                Err(ConditionError::Wrong(why)) => {
                    return Err(format!("{}: {why}", condition.kind));
                }
            }
        }
        Ok(ConditionOutcome::Yes)
    }

    /// Returns the message of each that does not hold, or the operation that has to be done first.
    pub(super) fn all_failures(
        &mut self,
        conditions: &[GraphCondition],
    ) -> Result<Vec<String>, Operation> {
        let mut asked = 0;
        let mut failures = Vec::new();
        for condition in conditions {
            match self.holds(condition, &mut asked) {
                Ok(true) => {}
                Ok(false) => failures.push(self.message(condition)),
                Err(ConditionError::Needs(operation)) => return Err(operation),
                Err(ConditionError::Wrong(why)) => {
                    failures.push(format!("{}: {why}", condition.kind));
                }
            }
        }
        Ok(failures)
    }

    /// Returns the message for a condition that does not hold.
    fn message(&mut self, condition: &GraphCondition) -> String {
        match self.optional_text(condition.error_message.as_ref()) {
            Ok(Some(message)) => message,
            Err(why) => format!("{} does not hold ({why})", condition.kind),
            Ok(None) => format!("{} does not hold", condition.kind),
        }
    }

    fn holds(
        &mut self,
        condition: &GraphCondition,
        asked: &mut usize,
    ) -> Result<bool, ConditionError> {
        Ok(match &condition.test {
            ConditionTest::Flag { flag, set } => {
                let flag = self.value_path(flag)?.below("flags");
                (self.at(&flag) == Some(Value::Bool(true))) == *set
            }
            ConditionTest::Equals { field, value } => {
                let value = self.fill(value)?;
                // A field may be missing where null is meant.
                let found = if value.is_null() { self.found(field)? } else { self.field(field)? };
                same(&found, &value)
            }
            ConditionTest::Null { field, null } => self.found(field)?.is_null() == *null,
            ConditionTest::Count { field, compare, number } => {
                let count = count(&self.field(field)?)?;
                let number = number_of(&self.fill(number)?)?;
                match compare {
                    NumberComparison::Equal => count.total_cmp(&number).is_eq(),
                    NumberComparison::Above => count > number,
                    NumberComparison::Below => count < number,
                }
            }
            ConditionTest::FetchSucceeded { from } => {
                let page = self.field(from)?;
                page.get("status")
                    .and_then(Value::as_u64)
                    .is_some_and(|status| (200..300).contains(&status))
            }
            ConditionTest::FetchReturnedContent { from } => {
                match self.field(from)?.get("content") {
                    None | Some(Value::Null) => false,
                    Some(Value::String(text)) => !text.is_empty(),
                    Some(_) => true,
                }
            }
            ConditionTest::All(conditions) => !self.any(conditions, false, asked)?,
            ConditionTest::Any(conditions) => self.any(conditions, true, asked)?,
            ConditionTest::None(conditions) => !self.any(conditions, true, asked)?,
            ConditionTest::Expression(expression) => truth(&self.evaluate(expression)?),
            ConditionTest::World(work) => {
                if self.answers.len() == *asked {
                    match self.operation(work) {
                        Ok(operation) => return Err(ConditionError::Needs(operation)),
                        // It has an answer all the same, so that no later one is taken for it.
                        Err(why) => self.answers.push(Err(why)),
                    }
                }
                let answer = self.answers.get(*asked);
                *asked += 1;
                let answer = answer.ok_or_else(|| "it has no answer".to_owned())?;
                truth(answer.as_ref().map_err(String::clone)?)
            }
        })
    }

    /// Returns whether the outcome of one of the conditions is `wanted`.
    fn any(
        &mut self,
        conditions: &[GraphCondition],
        wanted: bool,
        asked: &mut usize,
    ) -> Result<bool, ConditionError> {
        for condition in conditions {
            if self.holds(condition, asked)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the value of the field at a filled path; a missing one is null.
    fn found(&mut self, path: &ValueTemplate) -> Result<Value, String> {
        let path = self.value_path(path)?;
        Ok(self.at(&path).unwrap_or_default())
    }

    /// Returns the value of the field at a filled path. It has to exist, unless it is of those that count as null.
    fn field(&mut self, path: &ValueTemplate) -> Result<Value, String> {
        let path = self.value_path(path)?;
        match self.at(&path) {
            Some(value) => Ok(value),
            None if may_be_missing(&path) => Ok(Value::Null),
            None => Err(format!(
                "WF402 Unresolved variable: ${{{path}}}; nothing is there yet: ask with state_not_null first, or put it into `initial_state`"
            )),
        }
    }
}

/// Returns whether a path may lead nowhere: that of a flag that was never set, or of a part of an answer, which is
/// either a text or a selection.
fn may_be_missing(path: &ValuePath) -> bool {
    let in_state = path.without("state");
    let segments = in_state.as_ref().unwrap_or(path).segments();
    let is =
        |segment: &PathSegment, name: &str| matches!(segment, PathSegment::Key(key) if key == name);
    match segments {
        [root, _, ..] if is(root, "flags") => true,
        [_, .., raw, part] => is(raw, "raw") && (is(part, "text") || is(part, "selected")),
        _ => false,
    }
}

fn count(value: &Value) -> Result<f64, String> {
    let count = match (value, as_text(value)) {
        (_, Some(text)) => text.chars().count(),
        (Value::Null, _) => 0,
        (Value::Array(list), _) => list.len(),
        (Value::Object(map), _) => map.len(),
        (other, _) => return Err(format!("WF403 {other} has no elements to count")),
    };
    Ok(u32::try_from(count).map_or(f64::INFINITY, f64::from))
}

fn number_of(value: &Value) -> Result<f64, String> {
    number(value)
        .and_then(|number| number.as_f64())
        .ok_or_else(|| format!("WF403 {value} is not a number"))
}
