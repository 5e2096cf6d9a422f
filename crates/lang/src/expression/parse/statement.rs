//! Reads the body of a function with braces, the parameters of functions, and the targets of declarations.

use crate::expression::ast::{
    ArgumentNode, ChangeTarget, EntryNode, ExpressionNode, LambdaParameter, LoopKind, PathAccess,
    PathStep, Statement, TargetStep, TextSpan,
};
use crate::expression::fuel::SyntaxError;
use crate::expression::grammar::Rule;
use crate::expression::method::BuiltinMethod;
use crate::expression::parse::collection::items;
use crate::expression::parse::{RulePair, expression, operand, operand_of, span};

type Statements = Result<Vec<Statement>, SyntaxError>;

/// Reads the statements of a block, whose names end with it.
pub(super) fn block(piece: RulePair<'_>, names: &mut LocalNames) -> Statements {
    let outside = names.len();
    let mut statements = Vec::new();
    for part in piece.into_inner() {
        statement(part, names, &mut statements)?;
    }
    names.truncate(outside);
    Ok(statements)
}

/// Adds a statement; a declaration of two names is two.
fn statement(
    piece: RulePair<'_>,
    names: &mut LocalNames,
    statements: &mut Vec<Statement>,
) -> Result<(), SyntaxError> {
    match piece.as_rule() {
        Rule::block => statements.push(Statement::Block(block(piece, names)?)),
        Rule::branch => statements.push(branch(piece, names)?),
        Rule::each_of => statements.push(for_of(piece, names)?),
        Rule::declaration => declaration(piece, names, statements)?,
        Rule::leave => statements.push(leave(piece)?),
        Rule::removal => {
            for part in piece.into_inner().filter(|part| part.as_rule() == Rule::operand) {
                let target = changed(&part)?;
                names.change(&target)?;
                statements.push(Statement::Remove(target));
            }
        }
        Rule::action => statements.push(action(piece, names)?),
        _ => {}
    }
    Ok(())
}

/// Reads a block, or one statement without braces.
fn body(piece: RulePair<'_>, names: &mut LocalNames) -> Statements {
    let outside = names.len();
    let mut statements = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::block => statements = block(part, names)?,
            _ => statement(part, names, &mut statements)?,
        }
    }
    names.truncate(outside);
    Ok(statements)
}

fn branch(piece: RulePair<'_>, names: &mut LocalNames) -> Result<Statement, SyntaxError> {
    let (mut cases, mut condition) = (Vec::new(), None);
    let mut otherwise = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::expression => condition = Some(expression(part)?),
            Rule::body => match condition.take() {
                Some(condition) => cases.push((condition, body(part, names)?)),
                None => otherwise = body(part, names)?,
            },
            _ => {}
        }
    }
    Ok(Statement::Branch { cases, otherwise })
}

fn for_of(piece: RulePair<'_>, names: &mut LocalNames) -> Result<Statement, SyntaxError> {
    let place = span(&piece);
    let outside = names.len();
    let (mut parameters, mut bound) = (Vec::new(), Vec::new());
    let (mut list, mut statements) = (None, Vec::new());
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::name | Rule::list_parameter | Rule::map_parameter => {
                parameters.push(parameter(part, &mut bound)?);
            }
            Rule::expression => list = Some((span(&part), expression(part)?)),
            Rule::body => {
                names.add_copies(&bound);
                statements = body(part, names)?;
            }
            _ => {}
        }
    }
    names.truncate(outside);
    let Some((span, list)) = list else {
        return Err(SyntaxError::syntax(place.start, "the loop has no list"));
    };
    let kind = LoopKind::ForOf;
    Ok(Statement::Loop { kind, parameters, names: bound, list, body: statements, span })
}

fn declaration(
    piece: RulePair<'_>,
    names: &mut LocalNames,
    statements: &mut Vec<Statement>,
) -> Result<(), SyntaxError> {
    let mut parts = piece.into_inner();
    let is_constant = parts.next().is_some_and(|word| word.as_str() == "const");
    for binding in parts.filter(|part| part.as_rule() == Rule::binding) {
        let span = span(&binding);
        let (mut target, mut value, mut bound) = (None, None, Vec::new());
        for part in binding.into_inner() {
            match part.as_rule() {
                Rule::expression => value = Some(expression(part)?),
                Rule::assign => {}
                _ => target = Some(parameter(part, &mut bound)?),
            }
        }
        let Some(parameter) = target else { continue };
        for name in &bound {
            names.declare(name, is_constant, value.as_ref(), span.start)?;
        }
        statements.push(Statement::Declare { parameter, names: bound, value, span });
    }
    Ok(())
}

fn leave(piece: RulePair<'_>) -> Result<Statement, SyntaxError> {
    let mut value = None;
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::expression => value = Some(expression(part)?),
            Rule::leave_word if part.as_str() == "break" => return Ok(Statement::Break),
            Rule::leave_word => return Ok(Statement::Continue),
            _ => {}
        }
    }
    Ok(Statement::Return(value))
}

/// Reads an assignment, `a++`, `list.push(…)` or `list.forEach(…)`.
fn action(piece: RulePair<'_>, names: &mut LocalNames) -> Result<Statement, SyntaxError> {
    let place = piece.as_span().start();
    let mut parts = piece.into_inner().filter(|part| part.as_rule() != Rule::reserved);
    let old = parts.next().ok_or_else(|| SyntaxError::syntax(place, "no statement"))?;
    let Some(sign) = parts.next() else { return effect(&old, names) };
    let (sign, given) = if sign.as_rule() == Rule::one_step {
        (&sign.as_str()[..1], ExpressionNode::literal(1))
    } else {
        let Some(given) = parts.next() else {
            return Err(SyntaxError::syntax(place, "the assigned value is missing"));
        };
        (sign.as_str().trim_end_matches('='), expression(given)?)
    };
    let target = changed(&old)?;
    let span = target.span;
    let value = if sign.is_empty() {
        given
    } else {
        let first = Box::new(operand(old)?);
        match (sign.parse(), sign.parse()) {
            (Ok(logic), _) => ExpressionNode::Logic { first, rest: vec![(logic, given)] },
            (_, Ok(arithmetic)) => {
                ExpressionNode::Arithmetic { first, rest: vec![(arithmetic, given)], span }
            }
            _ => return Err(SyntaxError::syntax(place, "unknown operator")),
        }
    };
    names.assign(&target, &value)?;
    Ok(Statement::Assign { target, value })
}

/// Reads the target that a piece is.
fn changed(piece: &RulePair<'_>) -> Result<ChangeTarget, SyntaxError> {
    let parts: Vec<_> = piece.clone().into_inner().collect();
    target(&parts, span(piece))
}

/// Reads the target of a change: a name, and steps to a part of its value.
fn target(parts: &[RulePair<'_>], span: TextSpan) -> Result<ChangeTarget, SyntaxError> {
    let refuse = || {
        let why = "a change is of a name or its parts, as in `acc[key].count = 1`";
        SyntaxError::syntax(span.start, why)
    };
    let [first, rest @ ..] = parts else { return Err(refuse()) };
    if first.as_rule() != Rule::name {
        return Err(refuse());
    }
    let mut steps = Vec::new();
    for part in rest {
        let mut inside = part.clone().into_inner();
        steps.push(match part.as_rule() {
            Rule::member => {
                let name = inside.last().ok_or_else(refuse)?;
                TargetStep::Member(name.as_str().to_owned())
            }
            Rule::index => {
                let at = inside.find(|part| part.as_rule() == Rule::expression);
                TargetStep::Index(expression(at.ok_or_else(refuse)?)?)
            }
            _ => return Err(refuse()),
        });
    }
    Ok(ChangeTarget { name: first.as_str().to_owned(), steps, span })
}

/// Reads a call that stands for itself.
fn effect(piece: &RulePair<'_>, names: &mut LocalNames) -> Result<Statement, SyntaxError> {
    let place = span(piece);
    let refuse = || {
        let why = "this has no effect; a statement is `name = …`, `list.push(x)`, \
                   `list.forEach(x => …)`, `if`, `for (const x of list)` or `return`";
        SyntaxError::syntax(place.start, why)
    };
    let parts: Vec<_> = piece.clone().into_inner().collect();
    let [before @ .., method] = parts.as_slice() else { return Err(refuse()) };
    if method.as_rule() != Rule::method {
        return Err(refuse());
    }
    let mut of_method = method.clone().into_inner().filter(|part| part.as_rule() != Rule::dot);
    let (Some(name), Some(call)) = (of_method.next(), of_method.next()) else {
        return Err(refuse());
    };
    match name.as_str() {
        name @ ("push" | "unshift") => {
            let target = target(before, place)?;
            names.change(&target)?;
            let values = items(call)?;
            if values.is_empty() {
                return Err(SyntaxError::syntax(place.start, format!("{name} takes a value")));
            }
            Ok(Statement::Push { target, values, at_start: name == "unshift" })
        }
        "forEach" => for_each(before, call, names, place),
        _ => Err(refuse()),
    }
}

fn for_each(
    before: &[RulePair<'_>],
    call: RulePair<'_>,
    names: &mut LocalNames,
    span: TextSpan,
) -> Result<Statement, SyntaxError> {
    let refuse = || {
        let why = "forEach takes a function, as in `list.forEach(x => { acc[x.id] = x; })`";
        SyntaxError::syntax(span.start, why)
    };
    let list = operand_of(before.iter().cloned(), span)?;
    let function = call.into_inner().find(|part| part.as_rule() == Rule::lambda);
    let outside = names.len();
    let (mut parameters, mut bound, mut statements) = (Vec::new(), Vec::new(), None);
    for part in function.ok_or_else(refuse)?.into_inner() {
        match part.as_rule() {
            Rule::name | Rule::list_parameter | Rule::map_parameter => {
                parameters.push(parameter(part, &mut bound)?);
            }
            Rule::block => {
                names.add_copies(&bound);
                statements = Some(block(part, names)?);
            }
            Rule::expression => {
                names.add_copies(&bound);
                let lone = only(part).and_then(only).ok_or_else(refuse)?;
                statements = Some(vec![effect(&lone, names)?]);
            }
            _ => {}
        }
    }
    names.truncate(outside);
    if !(1..=2).contains(&parameters.len()) {
        return Err(refuse());
    }
    let body = statements.ok_or_else(refuse)?;
    Ok(Statement::Loop { kind: LoopKind::ForEach, parameters, names: bound, list, body, span })
}

/// Returns the piece in another, if there is only this one.
fn only(piece: RulePair<'_>) -> Option<RulePair<'_>> {
    let mut parts = piece.into_inner();
    parts.next().filter(|_| parts.next().is_none())
}

/// Reads a parameter of a function, or the target of a declaration: a name, or names within a list or a map. Adds the
/// names in the order in which they are bound.
pub(super) fn parameter(
    piece: RulePair<'_>,
    names: &mut Vec<String>,
) -> Result<LambdaParameter, SyntaxError> {
    let parameters = |piece: RulePair<'_>, names: &mut Vec<String>| {
        let is_parameter = |part: &RulePair<'_>| {
            matches!(part.as_rule(), Rule::name | Rule::list_parameter | Rule::map_parameter)
        };
        let parts = piece.into_inner().filter(is_parameter);
        parts.map(|part| parameter(part, names)).collect::<Result<Vec<_>, _>>()
    };
    match piece.as_rule() {
        Rule::list_parameter => parameters(piece, names).map(LambdaParameter::List),
        Rule::map_parameter => {
            let mut fields = Vec::new();
            for field in piece.into_inner().filter(|part| part.as_rule() == Rule::field) {
                let mut parts = field.into_inner().filter(|part| part.as_rule() != Rule::colon);
                let Some(key) = parts.next() else { continue };
                let target = parts.next().unwrap_or_else(|| key.clone());
                fields.push((key.as_str().to_owned(), parameter(target, names)?));
            }
            Ok(LambdaParameter::Map(fields))
        }
        _ => {
            let (place, name) = (piece.as_span().start(), piece.as_str());
            if names.iter().any(|known| known == name) {
                let why = format!("the function has two parameters of the name {name}");
                return Err(SyntaxError::syntax(place, why));
            }
            names.push(name.to_owned());
            Ok(LambdaParameter::Name)
        }
    }
}

// The names of a function with braces, while it is read: which of them may be changed, and how.
//
// Values are copied, not shared as in JavaScript. A change of a copy that goes nowhere would be lost, so it
// is an error.

/// The names that a place in a function knows, the innermost last.
#[derive(Debug, Default)]
pub(in super::super::parse) struct LocalNames {
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
    pub(in super::super::parse) fn of(parameters: &[String]) -> Self {
        let known = parameters.iter().map(|name| LocalName {
            name: name.clone(),
            is_constant: false,
            is_copy: false,
        });
        Self { known: known.collect(), changed_copies: Vec::new() }
    }

    fn len(&self) -> usize {
        self.known.len()
    }

    /// Forgets the names of a block.
    fn truncate(&mut self, count: usize) {
        self.known.truncate(count);
    }

    /// Adds the names of an element that a loop comes to.
    fn add_copies(&mut self, names: &[String]) {
        self.known.extend(names.iter().map(|name| LocalName {
            name: name.clone(),
            is_constant: true,
            is_copy: true,
        }));
    }

    /// Adds a name that is declared.
    fn declare(
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
    fn assign(&mut self, target: &ChangeTarget, value: &ExpressionNode) -> Result<(), SyntaxError> {
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
    fn change(&mut self, target: &ChangeTarget) -> Result<(), SyntaxError> {
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
    pub(in super::super::parse) fn refuse_lost_changes(
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

/// Returns whether a value may be part of another value, rather than a separate value.
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
    match node {
        ExpressionNode::Name(given) => given == name,
        ExpressionNode::Prefixed { .. } | ExpressionNode::Comparison { .. } => false,
        ExpressionNode::Map(entries) => entries.iter().any(|entry| match entry {
            EntryNode::Field(_, node) | EntryNode::Computed(_, node) | EntryNode::Spread(node) => {
                gives(node, name)
            }
        }),
        ExpressionNode::Choice { cases, otherwise } => {
            gives(otherwise, name) || cases.iter().any(|(_, then)| gives(then, name))
        }
        ExpressionNode::Path { base, steps } => {
            gives(base, name) || steps.iter().any(|step| takes(step, name))
        }
        node => node.parts().into_iter().any(|part| gives(part, name)),
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
