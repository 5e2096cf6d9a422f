//! The values of the names in an expression, the paths that it reads, and the steps into a value.

use std::borrow::Cow;
use std::collections::BTreeSet;

use raymond_model::question::raw_part;
use raymond_model::tool_call::beginning;
use serde_json::Value;

use super::ast::{
    ArgumentNode, ChangeTarget, Expression, ExpressionNode, Lambda, LambdaBody, PathAccess,
    PathStep, PrefixOperator, Statement, TargetStep, TextSpan,
};
use super::fuel::{Error, Fuel};
use super::value;
use super::value::{as_text, kind, place};

/// The longest part of an expression that an error quotes, in bytes.
const MAX_QUOTE_BYTES: usize = 60;

/// The values of the names in an expression.
pub trait NameScope {
    /// Returns the value of a name: the part of a path before its first dot or bracket. `None` if there
    /// is no such name; null is a value.
    fn root(&self, name: &str) -> Option<&Value>;

    /// Returns the field that `state.NAME` means where the scope has no name `state`.
    fn field(&self, _name: &str) -> Option<&Value> {
        None
    }

    /// Returns the time, as text; `None` where there is none. It is an input like any other, so that the same
    /// inputs have the same result.
    fn now(&self) -> Option<&Value> {
        None
    }
}

/// The names that a part can use: those of the functions around it, then those of the scope.
#[derive(Clone, Copy)]
pub(super) struct ExpressionEnvironment<'frame, 'value> {
    pub(super) scope: &'value dyn NameScope,
    pub(super) text: &'value str,
    pub(super) frame: Option<&'frame CallFrame<'frame, 'value>>,
}

/// The variables of a function that is being called, and those of the functions around it.
#[derive(Clone, Copy)]
pub(super) struct CallFrame<'frame, 'value> {
    pub(super) variables: FrameVariables<'frame, 'value>,
    pub(super) outer: Option<&'frame CallFrame<'frame, 'value>>,
}

/// The variables of one function.
#[derive(Clone, Copy)]
pub(super) enum FrameVariables<'frame, 'value> {
    /// The parameters of a function whose body is an expression.
    Parameters { names: &'value [String], values: &'frame [&'value Value] },
    /// The variables of a function whose body is a block, the innermost last.
    Locals(&'value [LocalVariable<'value>]),
}

/// A variable of a function, and its value.
pub(super) type LocalVariable<'value> = (&'value str, Cow<'value, Value>);

impl<'value> FrameVariables<'_, 'value> {
    fn get(&self, name: &str) -> Option<&'value Value> {
        match self {
            Self::Parameters { names, values } => {
                let place = names.iter().position(|known| known == name)?;
                values.get(place).copied()
            }
            Self::Locals(locals) => {
                locals.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| &**value)
            }
        }
    }
}

impl<'value> ExpressionEnvironment<'_, 'value> {
    /// Returns the value of a name.
    pub(super) fn name(self, name: &str) -> Option<&'value Value> {
        let mut frame = self.frame;
        while let Some(CallFrame { variables, outer }) = frame {
            if let Some(value) = variables.get(name) {
                return Some(value);
            }
            frame = *outer;
        }
        self.scope.root(name)
    }

    /// Adds a quote of the failed part to an error.
    pub(super) fn quote(self, span: TextSpan, error: Error) -> Error {
        let Error::Evaluation(message) = error else { return error };
        let part = beginning(self.text[span.start..span.end].to_owned(), MAX_QUOTE_BYTES);
        Error::Evaluation(format!("in `{part}`: {message}"))
    }
}

// Finds the paths that an expression reads, for the check that something writes them.

/// A path that is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathRead {
    /// The leading names of the path, with dots between them: `computed.config.sources`.
    pub path: String,
    /// True if a missing value is null; otherwise it is
    /// [`Error::Unresolved`](super::Error::Unresolved).
    pub optional: bool,
}

impl Expression {
    /// Returns the paths it reads, such as `computed.config.sources`, without the variables of its functions.
    /// A missing value in an expression is null, so all of them are optional.
    pub fn reads(&self) -> Vec<PathRead> {
        let mut reads = BTreeSet::new();
        collect(&self.root, &mut Vec::new(), &mut reads);
        reads.into_iter().map(|path| PathRead { path, optional: true }).collect()
    }
}

/// Collects the reads of all parts; `own` are the parameters of the functions around.
fn collect<'node>(
    node: &'node ExpressionNode,
    local: &mut Vec<&'node str>,
    reads: &mut BTreeSet<String>,
) {
    match node {
        ExpressionNode::Name(name) => read(name, &[], local, reads),
        ExpressionNode::Path { base, steps } => {
            match &**base {
                ExpressionNode::Name(name) => read(name, steps, local, reads),
                base => collect(base, local, reads),
            }
            for step in steps {
                inside(step, local, reads);
            }
        }
        node => {
            for part in node.parts() {
                collect(part, local, reads);
            }
        }
    }
}

/// Collects the reads in the brackets of a step.
fn inside<'node>(step: &'node PathStep, local: &mut Vec<&'node str>, reads: &mut BTreeSet<String>) {
    match &step.take {
        PathAccess::Member(_) => {}
        PathAccess::Index(place, _) => collect(place, local, reads),
        PathAccess::Method { arguments, .. } => {
            for argument in arguments {
                match argument {
                    ArgumentNode::Value(node) | ArgumentNode::Spread(node) => {
                        collect(node, local, reads);
                    }
                    ArgumentNode::Pattern(_) => {}
                    ArgumentNode::Lambda(Lambda { names, body, .. }) => {
                        let outside = local.len();
                        local.extend(names.iter().map(String::as_str));
                        match body {
                            LambdaBody::Expression(body) => collect(body, local, reads),
                            LambdaBody::Block(statements) => block(statements, local, reads),
                        }
                        local.truncate(outside);
                    }
                }
            }
        }
    }
}

/// Collects the reads of statements, whose own names end with them.
fn block<'node>(
    statements: &'node [Statement],
    local: &mut Vec<&'node str>,
    reads: &mut BTreeSet<String>,
) {
    let outside = local.len();
    for statement in statements {
        match statement {
            Statement::Declare { names, value, .. } => {
                if let Some(node) = value {
                    collect(node, local, reads);
                }
                local.extend(names.iter().map(String::as_str));
            }
            Statement::Assign { target, value } => {
                keys(target, local, reads);
                collect(value, local, reads);
            }
            Statement::Push { target, values, .. } => {
                keys(target, local, reads);
                for item in values {
                    collect(&item.node, local, reads);
                }
            }
            Statement::Remove(target) => keys(target, local, reads),
            Statement::Branch { cases, otherwise } => {
                for (condition, inside) in cases {
                    collect(condition, local, reads);
                    block(inside, local, reads);
                }
                block(otherwise, local, reads);
            }
            Statement::Loop { names, list, body, .. } => {
                collect(list, local, reads);
                let before = local.len();
                local.extend(names.iter().map(String::as_str));
                block(body, local, reads);
                local.truncate(before);
            }
            Statement::Block(inside) => block(inside, local, reads),
            Statement::Return(value) => value.iter().for_each(|node| collect(node, local, reads)),
            Statement::Break | Statement::Continue => {}
        }
    }
    local.truncate(outside);
}

/// Collects the reads in the brackets of what is changed, which is a name of the function.
fn keys<'node>(
    target: &'node ChangeTarget,
    local: &mut Vec<&'node str>,
    reads: &mut BTreeSet<String>,
) {
    for step in &target.steps {
        match step {
            TargetStep::Member(_) => {}
            TargetStep::Index(node) => collect(node, local, reads),
        }
    }
}

/// Notes a path up to the first step that is not a name, or that is `length`.
fn read(root: &str, steps: &[PathStep], local: &[&str], reads: &mut BTreeSet<String>) {
    if local.contains(&root) {
        return;
    }
    let names = steps.iter().map_while(|step| match &step.take {
        PathAccess::Member(name) => Some(name.as_str()),
        PathAccess::Index(place, _) => place.as_literal().and_then(Value::as_str),
        PathAccess::Method { .. } => None,
    });
    let mut path = root.to_owned();
    for name in names.take_while(|&name| name != "length") {
        path.push('.');
        path.push_str(name);
    }
    reads.insert(path);
}

// Paths: the steps into a value, and the plain path that a text may refer to.

/// The name that the fields of the state stand below, unless there is a variable of this name.
pub(super) const STATE: &str = "state";

/// Returns the member of a value with a name; null if there is none.
pub(super) fn member<'value>(
    of: Cow<'value, Value>,
    name: &str,
    fuel: &mut Fuel,
) -> Result<Cow<'value, Value>, Error> {
    let found = match of {
        Cow::Borrowed(Value::Object(map)) if name != "length" || map.contains_key(name) => {
            map.get(name).map(Cow::Borrowed)
        }
        Cow::Owned(Value::Object(mut map)) if name != "length" || map.contains_key(name) => {
            map.remove(name).map(Cow::Owned)
        }
        other if name == "length" && (as_text(&other).is_some() || !other.is_object()) => {
            value::length(&other, fuel)?.map(|length| Cow::Owned(value::count(length)))
        }
        _ => None,
    };
    Ok(found.unwrap_or(Cow::Owned(Value::Null)))
}

/// Returns the text or the chosen option of a person's answer, if these steps lead to it: `raw.text`, `raw.selected`.
pub(super) fn part_of_answer<'value>(
    answer: &Cow<'value, Value>,
    first: &PathAccess,
    second: Option<&PathStep>,
) -> Option<Cow<'value, Value>> {
    let (PathAccess::Member(raw), PathAccess::Member(part)) = (first, &second?.take) else {
        return None;
    };
    if raw != "raw" {
        return None;
    }
    Some(match answer {
        Cow::Borrowed(answer) => Cow::Borrowed(raw_part(answer, part)?),
        Cow::Owned(answer) => Cow::Owned(raw_part(answer, part)?.clone()),
    })
}

/// Returns the value at an index of a list or a text, or under a key of a map; null if there is none.
pub(super) fn index<'value>(
    of: Cow<'value, Value>,
    at: &Value,
    fuel: &mut Fuel,
) -> Result<Cow<'value, Value>, Error> {
    let found = match (of, at) {
        (Cow::Borrowed(Value::Array(list)), Value::Number(number)) => {
            place(number, list.len()).and_then(|at| list.get(at)).map(Cow::Borrowed)
        }
        (Cow::Owned(Value::Array(mut list)), Value::Number(number)) => {
            place(number, list.len()).map(|at| Cow::Owned(list.swap_remove(at)))
        }
        (of, Value::Number(number)) if of.is_string() => {
            let length = value::length(&of, fuel)?.unwrap_or(0);
            let char =
                of.as_str().zip(place(number, length)).and_then(|(of, at)| of.chars().nth(at));
            char.map(|char| Cow::Owned(Value::from(char.to_string())))
        }
        (of, at) if of.is_object() && as_text(at).is_some() => {
            return member(of, as_text(at).unwrap_or_default(), fuel);
        }
        (of, Value::Number(number)) if of.is_object() => {
            return member(of, &number.to_string(), fuel);
        }
        (of, at) => match &*of {
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            Value::Object(_) => return Err(refuse("a map", "a text", at)),
            of => return Err(refuse(kind(of), "a number", at)),
        },
    };
    Ok(found.unwrap_or(Cow::Owned(Value::Null)))
}

fn refuse(of: &str, takes: &str, at: &Value) -> Error {
    Error::Evaluation(format!("the index of {of} is {takes}, but got {}", kind(at)))
}

/// A path of only names and indices, which has to exist.
#[derive(Debug, Clone)]
pub(super) struct PlainPath {
    root: String,
    members: Vec<PathKey>,
    /// The path as it is written.
    shown: String,
}

#[derive(Debug, Clone)]
enum PathKey {
    Name(String),
    Place(Value),
}

impl PlainPath {
    /// Returns the path of an expression that is only names after dots, and texts and numbers in brackets.
    pub(super) fn of(expression: &Expression) -> Option<Self> {
        let (base, steps): (&ExpressionNode, &[PathStep]) = match &*expression.root {
            ExpressionNode::Path { base, steps } => (base, steps),
            name => (name, &[]),
        };
        let ExpressionNode::Name(root) = base else { return None };
        let members = steps.iter().map(|step| match &step.take {
            _ if step.optional => None,
            PathAccess::Member(name) => Some(PathKey::Name(name.clone())),
            PathAccess::Index(ExpressionNode::Prefixed { prefixes, operand, .. }, _)
                if *prefixes == [PrefixOperator::Minus] =>
            {
                let Value::Number(number) = operand.as_literal()? else { return None };
                Some(PathKey::Place(Value::from(number.as_i64()?.checked_neg()?)))
            }
            PathAccess::Index(place, _) => match place.as_literal()? {
                Value::String(name) => Some(PathKey::Name(name.clone())),
                place @ Value::Number(_) => Some(PathKey::Place(place.clone())),
                _ => None,
            },
            PathAccess::Method { .. } => None,
        });
        let members = members.collect::<Option<_>>()?;
        Some(Self { root: root.clone(), members, shown: expression.text.trim().to_owned() })
    }

    /// Returns the value at the path.
    pub(super) fn resolve<'value>(
        &self,
        scope: &'value dyn NameScope,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        let unresolved = || Error::Unresolved(self.shown.clone());
        fuel.spend(1)?;
        let mut keys = self.members.iter();
        let field = match (scope.root(&self.root), self.members.first()) {
            (None, Some(PathKey::Name(field))) if self.root == STATE => {
                keys.next();
                scope.field(field)
            }
            (found, _) => found,
        };
        let mut found = Cow::Borrowed(field.ok_or_else(unresolved)?);
        while let Some(key) = keys.next() {
            fuel.spend(1)?;
            if let (PathKey::Name(raw), Some(PathKey::Name(part))) = (key, keys.as_slice().first())
                && raw == "raw"
                && let Some(part) = raw_part(&found, part).cloned()
            {
                found = Cow::Owned(part);
                keys.next();
                continue;
            }
            let there = match (&*found, key) {
                (Value::Object(map), PathKey::Name(name)) => {
                    map.contains_key(name) || (name == "length" && as_text(&found).is_some())
                }
                (Value::Array(_) | Value::String(_), PathKey::Name(name)) => name == "length",
                (Value::Array(list), PathKey::Place(Value::Number(number))) => {
                    place(number, list.len()).is_some()
                }
                (Value::String(text), PathKey::Place(Value::Number(number))) => {
                    place(number, text.chars().count()).is_some()
                }
                (Value::Object(map), PathKey::Place(place)) => map.contains_key(&place.to_string()),
                _ => false,
            };
            if !there {
                return Err(unresolved());
            }
            found = match key {
                PathKey::Name(name) => member(found, name, fuel)?,
                PathKey::Place(place) => index(found, place, fuel)?,
            };
        }
        Ok(found)
    }
}
