//! What an expression reads, for the check that something writes it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ast::{Argument, Expression, Lambda, Node, Step, Take};

/// A path that is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The path, with dots between its names, as far as it is written in names: `computed.config.sources`.
    pub path: String,
    /// Whether nothing may be there, which is null then; or else that is
    /// [`Error::Unresolved`](super::Error::Unresolved).
    pub optional: bool,
}

impl Expression {
    /// The paths it reads, such as `computed.config.sources`, without those of its own functions. What
    /// an expression does not find is null, so all of them are optional.
    #[must_use]
    pub fn reads(&self) -> Vec<Read> {
        let mut reads = BTreeSet::new();
        collect(&self.root, &mut Vec::new(), &mut reads);
        reads.into_iter().map(|path| Read { path, optional: true }).collect()
    }
}

/// Goes through all parts; `own` are the parameters of the functions around.
fn collect<'node>(node: &'node Node, own: &mut Vec<&'node str>, reads: &mut BTreeSet<String>) {
    let mut all = |nodes: &mut dyn Iterator<Item = &'node Node>| {
        nodes.for_each(|node| collect(node, own, reads));
    };
    match node {
        Node::Literal(_) => {}
        Node::Name(name) => read(name, &[], own, reads),
        Node::List(elements) => all(&mut elements.iter()),
        Node::Map(entries) => all(&mut entries.iter().map(|(_, node)| node)),
        Node::Prefixed { operand, .. } => all(&mut [&**operand].into_iter()),
        Node::Call { arguments, .. } => all(&mut arguments.iter()),
        Node::Arithmetic { first, rest, .. } => {
            all(&mut [&**first].into_iter().chain(rest.iter().map(|(_, node)| node)));
        }
        Node::Logic { first, rest } => {
            all(&mut [&**first].into_iter().chain(rest.iter().map(|(_, node)| node)));
        }
        Node::Comparison { sides, .. } => all(&mut [&sides.0, &sides.1].into_iter()),
        Node::Choice { cases, otherwise } => {
            let cases = cases.iter().flat_map(|(condition, then)| [condition, then]);
            all(&mut cases.chain([&**otherwise]));
        }
        Node::Path { base, steps } => {
            match &**base {
                Node::Name(name) => read(name, steps, own, reads),
                base => collect(base, own, reads),
            }
            for step in steps {
                inside(step, own, reads);
            }
        }
    }
}

/// What is read in the brackets of a step.
fn inside<'node>(step: &'node Step, own: &mut Vec<&'node str>, reads: &mut BTreeSet<String>) {
    match &step.take {
        Take::Member(_) => {}
        Take::Index(place, _) => collect(place, own, reads),
        Take::Method { arguments, .. } => {
            for argument in arguments {
                match argument {
                    Argument::Value(node) => collect(node, own, reads),
                    Argument::Pattern(_) => {}
                    Argument::Lambda(Lambda { parameters, body }) => {
                        let outside = own.len();
                        own.extend(parameters.iter().map(String::as_str));
                        collect(body, own, reads);
                        own.truncate(outside);
                    }
                }
            }
        }
    }
}

/// Notes a path up to the first step that is no name, or that is how long it is.
fn read(root: &str, steps: &[Step], own: &[&str], reads: &mut BTreeSet<String>) {
    if own.contains(&root) {
        return;
    }
    let names = steps.iter().map_while(|step| match &step.take {
        Take::Member(name) | Take::Index(Node::Literal(Value::String(name)), _) => Some(name),
        _ => None,
    });
    let mut path = root.to_owned();
    for name in names.take_while(|name| *name != "length") {
        path.push('.');
        path.push_str(name);
    }
    reads.insert(path);
}
