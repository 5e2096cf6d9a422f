//! The values of the names in an expression, for all of it and for the functions in it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::ast::{
    ArgumentNode, ChangeTarget, EntryNode, Expression, ExpressionNode, ItemNode, Lambda,
    LambdaBody, PathAccess, PathStep, Statement, TargetStep, TextSpan,
};
use super::diagnosis::Error;

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
        let text = &self.text[span.start..span.end];
        let end = text.floor_char_boundary(MAX_QUOTE_BYTES);
        let more = if end < text.len() { "…" } else { "" };
        Error::Evaluation(format!("in `{}{more}`: {message}", &text[..end]))
    }
}

// The limits of an evaluation, so that no graph can block the process it runs in.
//
// Each evaluation of a part costs a step; reading or creating a value costs steps by its size. So a `reduce` that
// doubles a text ends after a few rounds, and every value in the journal can be read back.

/// The largest nesting depth of lists and maps in a new value.
const MAX_DEPTH: usize = 64;

/// The number of text bytes that cost a step.
const BYTES_PER_STEP: usize = 64;

/// The remaining steps of a computation, and the largest size of a text or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fuel {
    /// The remaining steps.
    pub steps: u64,
    /// The most bytes in one text.
    pub text: usize,
    /// The most elements in one list.
    pub list: usize,
}

impl Default for Fuel {
    /// Returns 5,000,000 steps, which take less than a second, a text of 1 MiB, and a list of 100,000 elements.
    fn default() -> Self {
        Self { steps: 5_000_000, text: 1024 * 1024, list: 100_000 }
    }
}

impl Fuel {
    /// Spends some steps.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Error> {
        let left = self.steps.checked_sub(steps as u64);
        self.steps = left.unwrap_or(0);
        let why = || Error::Evaluation("the expression takes too many steps".to_owned());
        left.map(|_| ()).ok_or_else(why)
    }

    /// Spends the cost of reading a text.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), Error> {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }

    /// Spends the cost of a new text of this size, unless it is too long.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Error> {
        self.fits(bytes)?;
        self.read(bytes)
    }

    /// Checks that a text of this size is not too long.
    pub(super) fn fits(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.text {
            return Err(Error::Evaluation(format!("the text is longer than {} bytes", self.text)));
        }
        Ok(())
    }

    /// Spends the cost of finding one match of a regular expression in so many bytes. A search with many
    /// matches may read the same text many times, so the rest of the text costs a little.
    pub(super) fn search(&mut self, bytes: usize) -> Result<(), Error> {
        self.spend(1 + bytes / 4096)
    }

    /// Spends the cost of a new list of this size, unless it is too long.
    pub(super) fn list(&mut self, elements: usize) -> Result<(), Error> {
        self.room(elements)?;
        self.spend(elements)
    }

    /// Checks that a list of this size is not too long.
    pub(super) fn room(&self, elements: usize) -> Result<(), Error> {
        if elements > self.list {
            let most = self.list;
            return Err(Error::Evaluation(format!("the list has more than {most} elements")));
        }
        Ok(())
    }

    /// Copies a value.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Error> {
        self.spend(weigh(value).cost)?;
        Ok(value.clone())
    }

    /// Returns an owned value; a borrowed one is copied.
    pub(super) fn own(&mut self, value: Cow<'_, Value>) -> Result<Value, Error> {
        match value {
            Cow::Borrowed(value) => self.copy(value),
            Cow::Owned(value) => Ok(value),
        }
    }

    /// Spends the cost of putting a value so deep into another one, unless it nests too deep there.
    pub(super) fn nest(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let weight = weigh(value);
        self.spend(weight.cost)?;
        Self::check_depth(weight.depth + depth)
    }

    /// Spends the cost of a new list or map, and checks its depth.
    pub(super) fn made(&mut self, value: Value) -> Result<Value, Error> {
        let weight = weigh(&value);
        self.spend(weight.cost)?;
        Self::check_depth(weight.depth).map(|()| value)
    }

    fn check_depth(depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            let why =
                format!("the value nests more than {MAX_DEPTH} lists and maps in one another");
            return Err(Error::Evaluation(why));
        }
        Ok(())
    }
}

/// The cost of copying a value, and its nesting depth.
struct ValueSize {
    cost: usize,
    depth: usize,
}

fn weigh(value: &Value) -> ValueSize {
    let all = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(weigh).fold(ValueSize { cost: 1, depth: 1 }, |sum, part| ValueSize {
            cost: sum.cost + part.cost,
            depth: sum.depth.max(part.depth + 1),
        })
    };
    match value {
        Value::String(text) => ValueSize { cost: 1 + text.len() / BYTES_PER_STEP, depth: 0 },
        Value::Array(list) => all(&mut list.iter()),
        Value::Object(map) => all(&mut map.values()),
        _ => ValueSize { cost: 1, depth: 0 },
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
    own: &mut Vec<&'node str>,
    reads: &mut BTreeSet<String>,
) {
    let mut all = |nodes: &mut dyn Iterator<Item = &'node ExpressionNode>| {
        nodes.for_each(|node| collect(node, own, reads));
    };
    match node {
        ExpressionNode::Literal(_) | ExpressionNode::Now => {}
        ExpressionNode::Name(name) => read(name, &[], own, reads),
        ExpressionNode::List(items) | ExpressionNode::Call { arguments: items, .. } => {
            all(&mut items.iter().map(|ItemNode { node, .. }| node));
        }
        ExpressionNode::Map(entries) => {
            for entry in entries {
                match entry {
                    EntryNode::Field(_, node) | EntryNode::Spread(node) => {
                        all(&mut [node].into_iter());
                    }
                    EntryNode::Computed(key, node) => all(&mut [key, node].into_iter()),
                }
            }
        }
        ExpressionNode::Prefixed { operand, .. } => all(&mut [&**operand].into_iter()),
        ExpressionNode::Arithmetic { first, rest, .. } => {
            all(&mut [&**first].into_iter().chain(rest.iter().map(|(_, node)| node)));
        }
        ExpressionNode::Logic { first, rest } => {
            all(&mut [&**first].into_iter().chain(rest.iter().map(|(_, node)| node)));
        }
        ExpressionNode::Comparison { sides, .. } => all(&mut [&sides.0, &sides.1].into_iter()),
        ExpressionNode::Choice { cases, otherwise } => {
            let cases = cases.iter().flat_map(|(condition, then)| [condition, then]);
            all(&mut cases.chain([&**otherwise]));
        }
        ExpressionNode::Path { base, steps } => {
            match &**base {
                ExpressionNode::Name(name) => read(name, steps, own, reads),
                base => collect(base, own, reads),
            }
            for step in steps {
                inside(step, own, reads);
            }
        }
    }
}

/// Collects the reads in the brackets of a step.
fn inside<'node>(step: &'node PathStep, own: &mut Vec<&'node str>, reads: &mut BTreeSet<String>) {
    match &step.take {
        PathAccess::Member(_) => {}
        PathAccess::Index(place, _) => collect(place, own, reads),
        PathAccess::Method { arguments, .. } => {
            for argument in arguments {
                match argument {
                    ArgumentNode::Value(node) | ArgumentNode::Spread(node) => {
                        collect(node, own, reads);
                    }
                    ArgumentNode::Pattern(_) => {}
                    ArgumentNode::Lambda(Lambda { names, body, .. }) => {
                        let outside = own.len();
                        own.extend(names.iter().map(String::as_str));
                        match body {
                            LambdaBody::Expression(body) => collect(body, own, reads),
                            LambdaBody::Block(statements) => block(statements, own, reads),
                        }
                        own.truncate(outside);
                    }
                }
            }
        }
    }
}

/// Collects the reads of statements, whose own names end with them.
fn block<'node>(
    statements: &'node [Statement],
    own: &mut Vec<&'node str>,
    reads: &mut BTreeSet<String>,
) {
    let outside = own.len();
    for statement in statements {
        match statement {
            Statement::Declare { names, value, .. } => {
                if let Some(node) = value {
                    collect(node, own, reads);
                }
                own.extend(names.iter().map(String::as_str));
            }
            Statement::Assign { target, value } => {
                keys(target, own, reads);
                collect(value, own, reads);
            }
            Statement::Push { target, values, .. } => {
                keys(target, own, reads);
                for item in values {
                    collect(&item.node, own, reads);
                }
            }
            Statement::Remove(target) => keys(target, own, reads),
            Statement::Branch { cases, otherwise } => {
                for (condition, inside) in cases {
                    collect(condition, own, reads);
                    block(inside, own, reads);
                }
                block(otherwise, own, reads);
            }
            Statement::Loop { names, list, body, .. } => {
                collect(list, own, reads);
                let before = own.len();
                own.extend(names.iter().map(String::as_str));
                block(body, own, reads);
                own.truncate(before);
            }
            Statement::Block(inside) => block(inside, own, reads),
            Statement::Return(value) => value.iter().for_each(|node| collect(node, own, reads)),
            Statement::Break | Statement::Continue => {}
        }
    }
    own.truncate(outside);
}

/// Collects the reads in the brackets of what is changed, which is a name of the function.
fn keys<'node>(
    target: &'node ChangeTarget,
    own: &mut Vec<&'node str>,
    reads: &mut BTreeSet<String>,
) {
    for step in &target.steps {
        match step {
            TargetStep::Member(_) => {}
            TargetStep::Index(node) => collect(node, own, reads),
        }
    }
}

/// Notes a path up to the first step that is not a name, or that is `length`.
fn read(root: &str, steps: &[PathStep], own: &[&str], reads: &mut BTreeSet<String>) {
    if own.contains(&root) {
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
