//! Evaluates the expressions of a program that runs, or says why a value is missing.

use std::fmt::Write as _;

use serde_json::Value;

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::output::field;
use crate::program::checked_program::{Program, TextExpression, expressions};
use raymond_model::activity::Activity;
use raymond_model::event::NextAction;
use raymond_model::graph_execution::{RequestEntry, RequestStatus};
use raymond_model::policy::verdict;

/// The number of characters shown of an answer that lacks a field.
const MAX_SHOWN_CHARS: usize = 80;

/// A reason that a value is missing, or that a condition cannot be decided.
pub(super) enum MissingValue {
    /// The value may still come. `outside` is true if it comes from outside the run.
    Yet { awaiting: String, outside: bool },
    /// This activity has to fetch it.
    Activity(Activity),
    /// The value can never come.
    Never(String),
    /// A request in a condition has failed, and the program continues in this state.
    GoTo(usize),
    /// The facts with this key or payload have to be looked up first.
    Facts,
}

impl<'environment> ProgramInterpreter<'environment> {
    /// Returns the value of an expression, or blocks until there is one.
    pub(super) fn value(
        &mut self,
        expression: &'environment TextExpression,
    ) -> Result<String, ProgramSuspension> {
        match self.evaluate(expression) {
            Ok(value) => {
                self.warn_if_unasked(expression);
                Ok(value)
            }
            Err(missing) => self.suspend(missing),
        }
    }

    /// Suspends the current instruction because of a missing value.
    pub(super) fn suspend<T>(&mut self, missing: MissingValue) -> Result<T, ProgramSuspension> {
        match missing {
            MissingValue::Yet { awaiting, outside } => self.block(awaiting, None, outside),
            MissingValue::Activity(activity) => self.due(activity),
            MissingValue::Never(why) => self.fail(why),
            MissingValue::Facts => Err(ProgramSuspension::action(NextAction::Walk)),
            MissingValue::GoTo(state) => {
                self.go_to(state)?;
                Err(ProgramSuspension::Moved)
            }
        }
    }

    /// Returns the current value of an expression, if it has one.
    pub(super) fn now(&self, expression: &TextExpression) -> Result<Option<String>, MissingValue> {
        match self.evaluate(expression) {
            Err(MissingValue::Yet { .. }) => Ok(None),
            known => known.map(Some),
        }
    }

    /// Returns the current value of an expression.
    pub(super) fn evaluate(&self, expression: &TextExpression) -> Result<String, MissingValue> {
        let execution = self.environment.execution;
        match expression {
            TextExpression::Text(text) => Ok(text.clone()),
            TextExpression::WorkflowId => Ok(self.environment.run.to_string()),
            TextExpression::Label => Ok(execution.label.clone()),
            TextExpression::Branch => execution.branch.clone().ok_or_else(|| {
                MissingValue::Never("no branch is set; give it with --base-branch NAME".to_owned())
            }),
            TextExpression::Context(name) => execution.context.get(name).cloned().ok_or_else(|| {
                MissingValue::Never(format!(
                    "the context has no {name}; give it with --context {name}=TEXT, or as an attribute of the tag that leads here"
                ))
            }),
            TextExpression::Bound(name) => {
                let bound = self.bindings.get(&**name).or_else(|| execution.bindings.get(&**name));
                bound.cloned().ok_or_else(|| {
                    MissingValue::Never(format!("nothing has been taken as {name} yet"))
                })
            }
            TextExpression::Signal { key: Some(key), .. } if self.is_new(key) => {
                Err(MissingValue::Facts)
            }
            TextExpression::Signal { label, key } => {
                let key = key.as_ref().map(|key| self.evaluate(key)).transpose()?;
                let fact = self.environment.facts.get(label, key.as_deref());
                fact.map(|fact| fact.value).ok_or_else(|| MissingValue::Yet {
                    awaiting: shown::signal(label, key.as_deref(), None),
                    outside: true,
                })
            }
            TextExpression::Response(name) => self.response(name),
            TextExpression::Verdict(name) => {
                let answer = self.response(name)?;
                let found = verdict(&answer, self.environment.program.expected(name));
                found.map(str::to_owned).map_err(|error| {
                    MissingValue::Never(format!("the answer to {name} has no verdict: {error}"))
                })
            }
            TextExpression::Feedback(role) => self.feedback(*role),
            TextExpression::Artifact(role) => self.artifact(*role),
            TextExpression::Field { answer, path } => {
                let answer_text = self.evaluate(answer)?;
                self.field(answer, &answer_text, path)
            }
            TextExpression::Together(all) => {
                let mut text = String::new();
                for (element, answer) in all {
                    let answer = self.evaluate(answer)?;
                    let gap = if text.is_empty() { "" } else { "\n\n" };
                    let _ = write!(text, "{gap}## {element}\n\n{answer}");
                }
                Ok(text)
            }
        }
    }

    /// Returns a field of an answer. The feedback of a role that was never asked is empty, and so are its fields.
    fn field(
        &self,
        answer: &TextExpression,
        text: &str,
        path: &str,
    ) -> Result<String, MissingValue> {
        if matches!(answer, TextExpression::Feedback(role) if self.is_unasked(*role)) {
            return Ok(String::new());
        }
        let lacking = |what: String| {
            let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            MissingValue::Never(format!("{what}; it begins with {shown:?}"))
        };
        let value: Value = serde_json::from_str(text)
            .map_err(|_| lacking("the answer is not one JSON object".to_owned()))?;
        match field(&value, path) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Ok(other.to_string()),
            None => Err(lacking(format!("the answer has no field {path}"))),
        }
    }

    /// Returns whether nothing changes the value of an expression while the program waits.
    pub(super) fn is_fixed(&self, expression: &TextExpression) -> bool {
        let is_pending = |request: &RequestEntry| request.status == RequestStatus::Pending;
        match expression {
            TextExpression::Signal { label, key } => {
                self.last_state(label, key.as_deref()).is_some()
            }
            TextExpression::Response(name) | TextExpression::Verdict(name) => {
                !self.request(name).is_some_and(is_pending)
            }
            TextExpression::Feedback(role) | TextExpression::Artifact(role) => {
                !self.requests_to(*role).any(|(_, request)| is_pending(request))
            }
            TextExpression::Field { answer, .. } => self.is_fixed(answer),
            TextExpression::Together(all) => all.iter().all(|(_, answer)| self.is_fixed(answer)),
            TextExpression::Text(_)
            | TextExpression::WorkflowId
            | TextExpression::Label
            | TextExpression::Branch
            | TextExpression::Context(_)
            | TextExpression::Bound(_) => true,
        }
    }

    fn response(&self, name: &str) -> Result<String, MissingValue> {
        match self.request(name).map(|request| &request.status) {
            None => Err(MissingValue::Never(format!("the request {name} was never sent"))),
            Some(RequestStatus::Pending) => {
                Err(MissingValue::Yet { awaiting: shown::response(name), outside: false })
            }
            Some(RequestStatus::Answer(text)) => Ok(text.to_string()),
            Some(RequestStatus::Failed(why)) => {
                Err(MissingValue::Never(format!("the request {name} failed: {why}")))
            }
        }
    }

    fn feedback(&self, role: usize) -> Result<String, MissingValue> {
        let name = &*self.environment.program.roles[role].name;
        if let Some(last) = self.environment.execution.answers.get(name) {
            return Ok(last.to_string());
        }
        let mut all = self.requests_to(role);
        match all.find(|(_, request)| request.status == RequestStatus::Pending) {
            Some((name, _)) => {
                Err(MissingValue::Yet { awaiting: shown::response(name), outside: false })
            }
            None => Ok(String::new()),
        }
    }

    fn artifact(&self, role: usize) -> Result<String, MissingValue> {
        if self.is_unasked(role) {
            return Ok(String::new());
        }
        let directory = self.environment.program.directory_of(role);
        if let Some(changes) = self.position.changes.get(&directory) {
            return Ok(changes.clone());
        }
        let bases = self.bases.as_ref().unwrap_or(&self.environment.execution.bases);
        match bases.get(&directory).cloned().flatten() {
            Some(base) => Err(MissingValue::Activity(Activity::Changes { directory, base })),
            None => self.feedback(role),
        }
    }

    /// Returns the requests to a role, with their names.
    fn requests_to(&self, role: usize) -> impl Iterator<Item = (&str, &RequestEntry)> {
        let role = &*self.environment.program.roles[role].name;
        let before = self.environment.execution.requests.iter();
        let before = before.map(|(name, request)| (name.as_str(), request));
        let new = self.requests.iter().map(|(name, request)| (*name, request));
        before.chain(new).filter(move |(_, request)| request.role == role)
    }

    /// Returns whether a role was never asked anything.
    fn is_unasked(&self, role: usize) -> bool {
        self.requests_to(role).next().is_none()
    }

    fn warn_if_unasked(&mut self, expression: &TextExpression) {
        let expression = match expression {
            TextExpression::Field { answer, .. } => answer,
            other => other,
        };
        let (TextExpression::Artifact(role) | TextExpression::Feedback(role)) = expression else {
            return;
        };
        if self.is_unasked(*role) {
            let name = &self.environment.program.roles[*role].name;
            let what = match expression {
                TextExpression::Artifact(_) => "artifact",
                _ => "feedback",
            };
            let text = format!("({what} {name}) is empty: nothing has been asked of {name} so far");
            self.log(text, true);
        }
    }
}

impl Program {
    /// Returns the directory a role works in, below that of the run. The empty path is the run's own.
    pub fn directory_of(&self, role: usize) -> String {
        self.roles[role].cwd.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the directories whose changes the program reads.
    pub(super) fn work_directories(&self) -> Vec<String> {
        let all = self.instructions();
        let roles = all.flat_map(|instruction| expressions(&instruction.kind)).filter_map(of);
        let mut directories: Vec<String> = roles.map(|role| self.directory_of(role)).collect();
        directories.sort();
        directories.dedup();
        directories
    }
}

/// Returns the role whose artifact an expression reads.
fn of(expression: &TextExpression) -> Option<usize> {
    match expression {
        TextExpression::Artifact(role) => Some(*role),
        TextExpression::Signal { key: Some(key), .. } => of(key),
        _ => None,
    }
}
