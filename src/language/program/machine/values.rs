//! What expressions come to.

use serde_json::Value;

use super::{Halt, Machine, shown};
use crate::domain::instance::{Answered, Errand};
use crate::language::output::field;
use crate::language::place::Place;
use crate::language::program::definition::{Condition, Definition, Expression, Instruction, Kind};

/// The characters that are shown of an answer that lacks a field.
const SHOWN_ANSWER: usize = 80;

/// A value that cannot be had yet.
pub(super) enum Lacking {
    /// It may come: this is waited for, and it comes from outside or not.
    Yet { awaiting: String, outside: bool },
    /// It has to be fetched.
    Errand(Errand),
    /// It cannot be had at all.
    Never(String),
}

impl<'scene> Machine<'scene> {
    /// The value of an expression: blocks until there is one.
    pub(super) fn value(
        &mut self,
        expression: &'scene Expression,
        at: Place,
    ) -> Result<String, Halt> {
        match self.look(expression) {
            Ok(value) => {
                self.warn_if_unasked(expression);
                Ok(value)
            }
            Err(Lacking::Yet { awaiting, outside }) => self.block(awaiting, None, outside),
            Err(Lacking::Errand(errand)) => self.due(errand),
            Err(Lacking::Never(why)) => Err(Halt::Fail { at, why }),
        }
    }

    /// The value of an expression as it is now.
    pub(super) fn look(&self, expression: &Expression) -> Result<String, Lacking> {
        let instance = self.scene.instance;
        match expression {
            Expression::Text(text) => Ok(text.clone()),
            Expression::WorkflowId => Ok(self.scene.run.to_string()),
            Expression::Label => Ok(instance.label.clone()),
            Expression::Branch => instance.branch.clone().ok_or_else(|| {
                Lacking::Never("there is no branch; give it with --branch NAME".to_owned())
            }),
            Expression::Context(name) => instance.context.get(name).cloned().ok_or_else(|| {
                Lacking::Never(format!(
                    "the context has no {name}; give it with --context {name}=TEXT, or as an attribute of the tag that leads here"
                ))
            }),
            Expression::Bound(name) => {
                let bound = self.bound.get(&**name).or_else(|| instance.bound.get(&**name));
                bound.cloned().ok_or_else(|| {
                    Lacking::Never(format!("nothing has been taken as {name} yet"))
                })
            }
            Expression::Signal { label, key } => {
                let key = key.as_ref().map(|key| self.look(key)).transpose()?;
                let fact = self.scene.facts.get(label, key.as_deref());
                fact.map(|fact| fact.value).ok_or_else(|| Lacking::Yet {
                    awaiting: shown::signal(label, key.as_deref(), None),
                    outside: true,
                })
            }
            Expression::Response(name) => self.response(name),
            Expression::Feedback(role) => self.feedback(*role),
            Expression::Artifact(role) => self.artifact(*role),
            Expression::Field { answer, path } => {
                let answer_text = self.look(answer)?;
                self.field(answer, &answer_text, path)
            }
        }
    }

    /// Returns a field of an answer. As an answer that nobody was asked for is empty, so are its fields.
    fn field(&self, answer: &Expression, text: &str, path: &str) -> Result<String, Lacking> {
        if matches!(answer, Expression::Feedback(role) if self.is_unasked(*role)) {
            return Ok(String::new());
        }
        let lacking = |what: String| {
            let shown: String = text.chars().take(SHOWN_ANSWER).collect();
            Lacking::Never(format!("{what}; it begins with {shown:?}"))
        };
        let value: Value = serde_json::from_str(text)
            .map_err(|_| lacking("the answer is not one JSON object".to_owned()))?;
        match field(&value, path) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Ok(other.to_string()),
            None => Err(lacking(format!("the answer has no field {path}"))),
        }
    }

    fn response(&self, name: &str) -> Result<String, Lacking> {
        match self.request(name).map(|request| &request.status) {
            None => Err(Lacking::Never(format!("the request {name} was never sent"))),
            Some(Answered::Pending) => {
                Err(Lacking::Yet { awaiting: shown::response(name), outside: false })
            }
            Some(Answered::Answer(text)) => Ok(text.to_string()),
            Some(Answered::Failed(why)) => {
                Err(Lacking::Never(format!("the request {name} failed: {why}")))
            }
        }
    }

    fn feedback(&self, role: usize) -> Result<String, Lacking> {
        let role = &self.scene.definition.roles[role];
        if let Some(last) = self.scene.instance.answers.get(&*role.name) {
            return Ok(last.to_string());
        }
        let requests = self.scene.instance.requests.iter().map(|(name, own)| (name.as_str(), own));
        let new = self.requests.iter().map(|(name, own)| (*name, own));
        let mut pending = requests.chain(new).filter(|(_, request)| {
            request.role == *role.name && request.status == Answered::Pending
        });
        match pending.next() {
            Some((name, _)) => {
                Err(Lacking::Yet { awaiting: shown::response(name), outside: false })
            }
            None => Ok(String::new()),
        }
    }

    fn artifact(&self, role: usize) -> Result<String, Lacking> {
        if self.is_unasked(role) {
            return Ok(String::new());
        }
        let directory = self.scene.definition.directory_of(role);
        if let Some(changes) = self.stand.changes.get(&directory) {
            return Ok(changes.clone());
        }
        let bases = self.bases.as_ref().unwrap_or(&self.scene.instance.bases);
        match bases.get(&directory).cloned().flatten() {
            Some(base) => Err(Lacking::Errand(Errand::Changes { directory, base })),
            None => self.feedback(role),
        }
    }

    /// Whether nothing was ever asked of a role.
    fn is_unasked(&self, role: usize) -> bool {
        let name = &*self.scene.definition.roles[role].name;
        let before = self.scene.instance.requests.values().any(|own| own.role == name);
        !before && !self.requests.values().any(|own| own.role == name)
    }

    fn warn_if_unasked(&mut self, expression: &Expression) {
        let expression = match expression {
            Expression::Field { answer, .. } => answer,
            other => other,
        };
        let (Expression::Artifact(role) | Expression::Feedback(role)) = expression else { return };
        if self.is_unasked(*role) {
            let name = &self.scene.definition.roles[*role].name;
            let what = match expression {
                Expression::Artifact(_) => "artifact",
                _ => "feedback",
            };
            let text = format!("({what} {name}) is empty: nothing has been asked of {name} so far");
            self.log(text, true);
        }
    }
}

impl Definition {
    /// The directory a role works in, below that of the run; the empty path is it.
    #[must_use]
    pub fn directory_of(&self, role: usize) -> String {
        self.roles[role].cwd.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// The directories whose changes the program looks at.
    pub(super) fn work_directories(&self) -> Vec<String> {
        let mut roles = Vec::new();
        self.states.iter().for_each(|state| artifacts(&state.body, &mut roles));
        let mut directories: Vec<String> =
            roles.into_iter().map(|role| self.directory_of(role)).collect();
        directories.sort();
        directories.dedup();
        directories
    }
}

/// The roles whose artifacts a list of instructions looks at.
fn artifacts(list: &[Instruction], found: &mut Vec<usize>) {
    for instruction in list {
        match &instruction.kind {
            Kind::Action(body) | Kind::Loop(body) => artifacts(body, found),
            Kind::Branch { arms, otherwise } => {
                for arm in arms {
                    looked_at(&arm.condition, found);
                    artifacts(&arm.body, found);
                }
                artifacts(otherwise.as_deref().unwrap_or_default(), found);
            }
            Kind::Send(send) => found.extend(send.template.arguments.iter().filter_map(of)),
            Kind::Log(template) => found.extend(template.arguments.iter().filter_map(of)),
            Kind::RunFolder(run) => found.extend(run.input.as_ref().and_then(of)),
            Kind::Assert { key, value, .. } => {
                found.extend(key.iter().chain(value).filter_map(of));
            }
            Kind::Retract { key, .. } => found.extend(key.as_ref().and_then(of)),
            Kind::Terminal { result, .. } => found.extend(result.as_ref().and_then(of)),
            Kind::Wait(wait) => looked_at(&wait.condition, found),
            Kind::Goto(_) => {}
        }
    }
}

/// The roles whose artifacts a condition looks at.
fn looked_at(condition: &Condition, found: &mut Vec<usize>) {
    match condition {
        Condition::Signal { key, equals, .. } => {
            found.extend(key.iter().chain(equals).filter_map(of));
        }
        Condition::Matches { text, .. } => found.extend(of(text)),
        Condition::And(all) | Condition::Or(all) => {
            for one in all {
                looked_at(one, found);
            }
        }
        Condition::Not(one) => looked_at(one, found),
        Condition::Response { .. } | Condition::After(_) | Condition::At(_) => {}
    }
}

fn of(expression: &Expression) -> Option<usize> {
    match expression {
        Expression::Artifact(role) => Some(*role),
        Expression::Signal { key: Some(key), .. } => of(key),
        _ => None,
    }
}
