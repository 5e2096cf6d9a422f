//! Finds the paths that an expression reads, for the check that something writes them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ast::{
    ArgumentNode, ChangeTarget, EntryNode, Expression, ExpressionNode, ItemNode, Lambda,
    LambdaBody, PathAccess, PathStep, Statement, TargetStep,
};

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
    /// Returns the paths it reads, such as `computed.config.sources`, without those of its own functions.
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

/// Notes a path up to the first step that is no name, or that is `length`.
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
