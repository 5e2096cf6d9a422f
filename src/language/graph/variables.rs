//! Which variables a graph reads and which ones something writes.
//!
//! Order does not matter here: a loop may well write what an earlier node reads the next time.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::tree::{SourcePlace, quoted};
use crate::language::diagnostic::Severity;
use crate::language::report::FileDiagnostics;

/// What a state has without being told to.
const BUILT_IN: [&str; 10] = [
    "PWD",
    "HOME",
    "arguments",
    "workflow_name",
    "workflow_version",
    "current_node",
    "previous_node",
    "user_responses",
    "computed",
    "flags",
];

struct VariableRead {
    at: SourcePlace,
    path: String,
    optional: bool,
}

/// What is read and what is written.
#[derive(Default)]
pub(super) struct VariableUses {
    reads: Vec<VariableRead>,
    /// The names that actions have given to what they go through, from the outermost.
    pub(super) locals: Vec<String>,
    computed: BTreeSet<String>,
    flags: BTreeSet<String>,
    prompts: BTreeSet<String>,
    fields: BTreeSet<String>,
    /// Something writes below `computed` whose name is known only then.
    any_computed: bool,
    /// Something writes whose path is known only then.
    anything: bool,
}

impl VariableUses {
    /// A path is read; an optional one may lead nowhere.
    pub(super) fn read(&mut self, at: SourcePlace, path: String, optional: bool) {
        let (name, _) = split(&path);
        if !self.locals.iter().any(|local| local == name) {
            self.reads.push(VariableRead { at, path, optional });
        }
    }

    /// The state that it begins with.
    pub(super) fn begins_with(&mut self, initial: &Map<String, Value>) {
        self.write("computed.last_error");
        for (name, value) in initial {
            self.write(name);
            for below in value.as_object().into_iter().flat_map(Map::keys) {
                self.write(&format!("{name}.{below}"));
            }
        }
    }

    /// A path is written.
    pub(super) fn write(&mut self, path: &str) {
        let known = path.find("${").map_or(path, |at| &path[..at]);
        let whole = known.len() == path.len();
        let (name, rest) = split(known);
        match (name, split(rest).0) {
            ("computed", "") => self.any_computed |= !whole,
            ("computed", below) => drop(self.computed.insert(below.to_owned())),
            ("flags", below) if !below.is_empty() => drop(self.flags.insert(below.to_owned())),
            ("user_responses", below) if !below.is_empty() => self.asks(below),
            _ if !whole => self.anything = true,
            _ => drop(self.fields.insert(name.to_owned())),
        }
    }

    /// A path below `computed` is written, with or without that word.
    pub(super) fn computes(&mut self, path: &str) {
        let below = path.strip_prefix("computed.").unwrap_or(path);
        self.write(&format!("computed.{below}"));
    }

    /// A flag is set.
    pub(super) fn flags(&mut self, flag: &str) {
        self.write(&format!("flags.{}", flag.strip_prefix("flags.").unwrap_or(flag)));
    }

    /// A person answers under this name.
    pub(super) fn asks(&mut self, node: &str) {
        self.prompts.insert(node.to_owned());
    }

    /// Whatever something gives is merged into this path.
    pub(super) fn merges(&mut self, path: &str) {
        match split(path).0 {
            "computed" => self.any_computed = true,
            name if name == path && !["flags", "user_responses"].contains(&name) => {
                self.write(path);
            }
            _ => self.anything = true,
        }
    }

    /// Reports what nothing writes.
    pub(super) fn check(&self, report: &mut FileDiagnostics) {
        for VariableRead { at, path, optional } in &self.reads {
            let (name, rest) = split(path);
            let below = split(rest).0;
            let (known, perhaps) = match name {
                "computed" if !below.is_empty() => {
                    (self.computed.contains(below), self.any_computed)
                }
                "flags" if !below.is_empty() => (self.flags.contains(below), false),
                "user_responses" if !below.is_empty() => (self.prompts.contains(below), false),
                name => (self.has(name), self.any_computed),
            };
            if known || name.is_empty() {
                continue;
            }
            let perhaps = perhaps || self.anything;
            let severity = if !perhaps && !optional { Severity::Error } else { Severity::Warning };
            let why = match (perhaps, optional) {
                (true, _) => "nothing writes it by this name, but something may",
                (false, false) => {
                    "nothing writes it; write it before, or put it into `initial_state`"
                }
                (false, true) => {
                    "nothing writes it, so it is always null; put it into `initial_state`"
                }
            };
            let hint = report.hint(leaf(name, below), self.names(name, below), String::new);
            report.add(*at, "WF330", severity, format!("variable {}: {why}{hint}", quoted(path)));
        }
    }

    fn has(&self, name: &str) -> bool {
        BUILT_IN.contains(&name)
            || [&self.computed, &self.flags, &self.prompts, &self.fields]
                .into_iter()
                .any(|names| names.contains(name))
    }

    /// The names that one beside them may have been meant for.
    fn names(&self, name: &str, below: &str) -> Vec<&str> {
        let sets = match name {
            "computed" if !below.is_empty() => vec![&self.computed],
            "flags" if !below.is_empty() => vec![&self.flags],
            "user_responses" if !below.is_empty() => vec![&self.prompts],
            _ => vec![&self.computed, &self.flags, &self.prompts, &self.fields],
        };
        sets.into_iter().flatten().map(String::as_str).collect()
    }
}

fn leaf<'path>(name: &'path str, below: &'path str) -> &'path str {
    let rooted = ["computed", "flags", "user_responses"].contains(&name) && !below.is_empty();
    if rooted { below } else { name }
}

/// The first name of a path, and the rest.
fn split(path: &str) -> (&str, &str) {
    let at = path.find(['.', '[', '?']).unwrap_or(path.len());
    (&path[..at], path[at..].trim_start_matches(['.', '?']))
}
