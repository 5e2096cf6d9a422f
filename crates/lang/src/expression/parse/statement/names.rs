//! The names of a function with braces, while it is read: which of them may be changed, and how.
//!
//! Values are copied, not shared as in JavaScript. A change of a copy that goes nowhere would be lost, so it
//! is an error.

use crate::expression::ast::{
    ArgumentNode, ChangeTarget, EntryNode, ExpressionNode, PathAccess, PathStep, Statement,
};
use crate::expression::flaw::SyntaxError;
use crate::expression::method::BuiltinMethod;

/// The names that a place in a function knows, the innermost last.
#[derive(Debug, Default)]
pub(in super::super) struct LocalNames {
    known: Vec<LocalName>,
    /// Copies whose parts are changed, with the places of the changes.
    changed_copies: Vec<(String, usize)>,
}

#[derive(Debug)]
struct LocalName {
    name: String,
    is_constant: bool,
    /// True if its value may be a part of another one.
    is_copy: bool,
}

impl LocalNames {
    /// Returns the names of a function with these parameters.
    pub(in super::super) fn of(parameters: &[String]) -> Self {
        let known = parameters.iter().map(|name| LocalName {
            name: name.clone(),
            is_constant: false,
            is_copy: false,
        });
        Self { known: known.collect(), changed_copies: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Forgets the names of a block.
    pub(super) fn truncate(&mut self, count: usize) {
        self.known.truncate(count);
    }

    /// Adds the names of an element that a loop comes to.
    pub(super) fn add_copies(&mut self, names: &[String]) {
        self.known.extend(names.iter().map(|name| LocalName {
            name: name.clone(),
            is_constant: true,
            is_copy: true,
        }));
    }

    /// Adds a name that is declared.
    pub(super) fn declare(
        &mut self,
        name: &str,
        is_constant: bool,
        value: Option<&ExpressionNode>,
        place: usize,
    ) -> Result<(), SyntaxError> {
        if is_constant && value.is_none() {
            return Err(SyntaxError::syntax(place, format!("the const {name} has no value")));
        }
        let is_copy = value.is_some_and(may_be_part);
        self.known.push(LocalName { name: name.to_owned(), is_constant, is_copy });
        Ok(())
    }

    /// Notes an assignment.
    pub(super) fn assign(
        &mut self,
        target: &ChangeTarget,
        value: &ExpressionNode,
    ) -> Result<(), SyntaxError> {
        if !target.steps.is_empty() {
            return self.change(target);
        }
        let local = self.find(target)?;
        if local.is_constant {
            let why = format!("{} cannot change here; declare it with `let`", target.name);
            return Err(SyntaxError::syntax(target.span.start, why));
        }
        local.is_copy |= may_be_part(value);
        Ok(())
    }

    /// Notes a change of a part of a value.
    pub(super) fn change(&mut self, target: &ChangeTarget) -> Result<(), SyntaxError> {
        if self.find(target)?.is_copy {
            self.changed_copies.push((target.name.clone(), target.span.start));
        }
        Ok(())
    }

    fn find(&mut self, target: &ChangeTarget) -> Result<&mut LocalName, SyntaxError> {
        let local = self.known.iter_mut().rev().find(|local| local.name == target.name);
        local.ok_or_else(|| {
            let why = format!(
                "{} is not a name of this function; a function changes only its parameters and what \
                 it declares with `let` or `const`",
                target.name
            );
            SyntaxError::syntax(target.span.start, why)
        })
    }

    /// Refuses the first change of a copy that is put nowhere afterwards.
    pub(in super::super) fn refuse_lost_changes(
        &self,
        statements: &[Statement],
    ) -> Result<(), SyntaxError> {
        let lost = self.changed_copies.iter().find(|(name, _)| !is_given(name, statements));
        let Some((name, place)) = lost else { return Ok(()) };
        let why = format!(
            "{name} is a copy, so this change would be lost; change the value in its place, as in \
             `acc[key].push(x)`, or put {name} back"
        );
        Err(SyntaxError::syntax(*place, why))
    }
}

/// Returns whether a value may be a part of another one, and not one of its own.
fn may_be_part(node: &ExpressionNode) -> bool {
    match node {
        ExpressionNode::Name(_) => true,
        ExpressionNode::Path { steps, .. } => match steps.last().map(|step| &step.take) {
            Some(PathAccess::Method { method, .. }) => {
                matches!(method, BuiltinMethod::Find | BuiltinMethod::Pop)
            }
            Some(PathAccess::Member(_) | PathAccess::Index(..)) => true,
            None => false,
        },
        ExpressionNode::Logic { first, rest } => {
            may_be_part(first) || rest.iter().any(|(_, node)| may_be_part(node))
        }
        ExpressionNode::Choice { cases, otherwise } => {
            may_be_part(otherwise) || cases.iter().any(|(_, then)| may_be_part(then))
        }
        _ => false,
    }
}

/// Returns whether a statement returns the value of a name, or puts it somewhere.
fn is_given(name: &str, statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Declare { value, .. } => value.as_ref().is_some_and(|node| gives(node, name)),
        Statement::Assign { value, .. } => gives(value, name),
        Statement::Push { values, .. } => values.iter().any(|item| gives(&item.node, name)),
        Statement::Return(value) => value.as_ref().is_some_and(|node| gives(node, name)),
        Statement::Branch { cases, otherwise } => {
            is_given(name, otherwise) || cases.iter().any(|(_, inside)| is_given(name, inside))
        }
        Statement::Loop { body, .. } => is_given(name, body),
        Statement::Block(inside) => is_given(name, inside),
        Statement::Remove(_) | Statement::Break | Statement::Continue => false,
    })
}

/// Returns whether the value of a name is in the value of an expression.
fn gives(node: &ExpressionNode, name: &str) -> bool {
    let any = |node: &ExpressionNode| gives(node, name);
    match node {
        ExpressionNode::Name(given) => given == name,
        ExpressionNode::List(items) | ExpressionNode::Call { arguments: items, .. } => {
            items.iter().any(|item| any(&item.node))
        }
        ExpressionNode::Map(entries) => entries.iter().any(|entry| match entry {
            EntryNode::Field(_, node) | EntryNode::Computed(_, node) | EntryNode::Spread(node) => {
                any(node)
            }
        }),
        ExpressionNode::Logic { first, rest } => {
            any(first) || rest.iter().any(|(_, node)| any(node))
        }
        ExpressionNode::Choice { cases, otherwise } => {
            any(otherwise) || cases.iter().any(|(_, then)| any(then))
        }
        ExpressionNode::Arithmetic { first, rest, .. } => {
            any(first) || rest.iter().any(|(_, node)| any(node))
        }
        ExpressionNode::Path { base, steps } => {
            any(base) || steps.iter().any(|step| takes(step, name))
        }
        ExpressionNode::Literal(_)
        | ExpressionNode::Now
        | ExpressionNode::Prefixed { .. }
        | ExpressionNode::Comparison { .. } => false,
    }
}

/// Returns whether a method takes the value of a name.
fn takes(step: &PathStep, name: &str) -> bool {
    let PathAccess::Method { arguments, .. } = &step.take else { return false };
    arguments.iter().any(|argument| match argument {
        ArgumentNode::Value(node) | ArgumentNode::Spread(node) => gives(node, name),
        ArgumentNode::Lambda(_) | ArgumentNode::Pattern(_) => false,
    })
}
