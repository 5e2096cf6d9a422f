//! Checks that every variable that a graph reads is written somewhere.
//!
//! The order does not matter: in a loop, a later node may write what an earlier one reads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::diagnostic::{FileDiagnostics, Severity, quoted};
use crate::expression::COMMAND_RESULT;
use crate::source::SourcePlace;
use crate::yaml::{YamlContent, YamlValue};

/// The names that every state has.
const BUILT_IN: [&str; 17] = [
    "error",
    "CLAUDE_PLUGIN_ROOT",
    "ARGUMENTS",
    "PWD",
    "cwd",
    "history",
    "checkpoints",
    "state",
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

/// The parameters that name where a result is stored, also in graphs for other engines.
const STORING: [&str; 5] = ["store_as", "store_in", "store_path_as", "collect_as", "output"];

/// The name that other engines give to the answer to a question.
const ANSWER: &str = "response";

/// The name of the text of `--input` in prompts.
const INPUT: &str = "input";

struct VariableRead {
    at: SourcePlace,
    path: String,
    optional: bool,
}

/// The variables that are read, and those that are written.
#[derive(Default)]
pub(super) struct VariableUses {
    reads: Vec<VariableRead>,
    /// The names of the items of the loops around, the outermost first.
    pub(super) locals: Vec<String>,
    computed: BTreeSet<String>,
    flags: BTreeSet<String>,
    prompts: BTreeSet<String>,
    fields: BTreeSet<String>,
    /// The placeholders of prompts, which are text here: `{{name}}`.
    pub(super) braces: Vec<(SourcePlace, String)>,
    /// How often each name below `computed` is written after the beginning.
    writes: BTreeMap<String, usize>,
    /// How often each name below `computed` is given the result of a command.
    commands: BTreeMap<String, usize>,
    /// The first names of the paths in parameters that are read.
    paths: BTreeSet<String>,
    /// True if something writes below `computed` under a name known only at run time.
    any_computed: bool,
    /// True if something writes to a path known only at run time.
    anything: bool,
}

impl VariableUses {
    /// Notes that a path is read; an optional one may be missing.
    pub(super) fn read(&mut self, at: SourcePlace, path: String, optional: bool) {
        let (name, below) = split(&path);
        if name == "state" && !below.is_empty() && !self.fields.contains(name) {
            let field = split(below).0;
            let kept = if ["computed", "flags", "user_responses"].contains(&field) {
                below
            } else {
                field
            };
            return self.read(at, kept.to_owned(), optional);
        }
        if !self.locals.iter().any(|local| local == name) {
            self.reads.push(VariableRead { at, path, optional });
        }
    }

    /// Notes the initial state.
    pub(super) fn begins_with(&mut self, initial: &Map<String, Value>) {
        self.write("computed.last_error");
        for (name, value) in initial {
            self.write(name);
            for below in value.as_object().into_iter().flat_map(Map::keys) {
                self.write(&format!("{name}.{below}"));
            }
        }
        self.writes.clear();
    }

    /// Notes that the result of a command is stored at a path.
    pub(super) fn stores_command(&mut self, path: &str) {
        self.stores(path);
        let path = path.trim().trim_start_matches('.');
        let (name, below) = split(path.strip_prefix("computed.").unwrap_or(path));
        if below.is_empty() && !name.contains("${") {
            *self.commands.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Notes that a path of a parameter is read.
    pub(super) fn read_path(&mut self, path: &str) {
        let path = path.trim().trim_start_matches('.');
        let (name, below) = split(path);
        self.paths.insert(if name == "state" { split(below).0 } else { name }.to_owned());
    }

    /// Returns whether the graph reads a name that the runtime provides, and that is not a field of the graph.
    pub(super) fn reads_builtin(&self, name: &str) -> bool {
        let is_read = self.reads.iter().any(|read| split(&read.path).0 == name);
        (is_read || self.paths.contains(name)) && !self.fields.contains(name)
    }

    /// Notes that a result is stored at a path: at that of a field, or else below `computed`.
    pub(super) fn stores(&mut self, path: &str) {
        let path = path.trim().trim_start_matches('.');
        let (name, below) = split(path);
        match name {
            "computed" | "flags" | "user_responses" if !below.is_empty() => self.write(path),
            name => {
                let is_field = self.fields.contains(name);
                self.computes(path);
                if is_field {
                    self.write(path);
                }
            }
        }
    }

    /// Notes that a path is written.
    pub(super) fn write(&mut self, path: &str) {
        let path = path.trim().trim_start_matches('.');
        let known = path.find("${").map_or(path, |at| &path[..at]);
        let whole = known.len() == path.len();
        let (name, rest) = split(known);
        match (name, split(rest).0) {
            ("computed", "") => self.any_computed |= !whole,
            ("computed", below) => {
                self.computed.insert(below.to_owned());
                *self.writes.entry(below.to_owned()).or_default() += 1;
            }
            ("flags", below) if !below.is_empty() => drop(self.flags.insert(below.to_owned())),
            ("user_responses", below) if !below.is_empty() => self.asks(below),
            _ if !whole => self.anything = true,
            _ => drop(self.fields.insert(name.to_owned())),
        }
    }

    /// Notes that a path below `computed` is written; the path may lack that word.
    pub(super) fn computes(&mut self, path: &str) {
        let path = path.trim().trim_start_matches('.');
        let below = path.strip_prefix("computed.").unwrap_or(path);
        self.write(&format!("computed.{below}"));
    }

    /// Notes that a flag is set.
    pub(super) fn flags(&mut self, flag: &str) {
        let flag = flag.trim().trim_start_matches('.');
        self.write(&format!("flags.{}", flag.strip_prefix("flags.").unwrap_or(flag)));
    }

    /// Returns the number of reads that are noted.
    pub(super) fn reads_so_far(&self) -> usize {
        self.reads.len()
    }

    /// Forgets the reads that were noted after so many.
    pub(super) fn forget_reads(&mut self, after: usize) {
        self.reads.truncate(after);
    }

    /// Notes what a node or a consequence with a mistake seems to write, also in the lists in it, so that its mistake
    /// does not look like one of all that read it.
    pub(super) fn writes_of_faulty(&mut self, node: &YamlValue) {
        match &node.value {
            YamlContent::List(list) => list.iter().for_each(|part| self.writes_of_faulty(part)),
            YamlContent::Map(entries) => {
                for entry in entries.iter() {
                    match (&*entry.key, entry.value.text()) {
                        ("flag" | "set_flag", Some(text)) => self.flags(&text.text),
                        ("field", Some(text)) => self.write(&text.text),
                        // The name of a branch.
                        ("name", Some(text)) => self.computes(&text.text),
                        (key, Some(text)) if STORING.contains(&key) => self.stores(&text.text),
                        _ => self.writes_of_faulty(&entry.value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that a person answers under this name.
    pub(super) fn asks(&mut self, node: &str) {
        self.prompts.insert(node.to_owned());
    }

    /// Notes that a map is merged into this path.
    pub(super) fn merges(&mut self, path: &str) {
        match split(path).0 {
            "computed" => self.any_computed = true,
            name if name == path && !["flags", "user_responses"].contains(&name) => {
                self.write(path);
            }
            _ => self.anything = true,
        }
    }

    /// Reports the variables that are read but never written.
    pub(super) fn check(&self, report: &mut FileDiagnostics) {
        for (at, name) in &self.braces {
            let meant = if name == INPUT { "arguments" } else { name.as_str() };
            if self.is_known(meant) {
                let message =
                    format!("`{{{{{name}}}}}` is plain text in a graph; write `${{{meant}}}`");
                report.add(*at, "WF330", Severity::Warning, message);
            }
        }
        for VariableRead { at, path, optional } in &self.reads {
            let (name, rest) = split(path);
            let below = split(rest).0;
            let (known, perhaps) = match name {
                "computed" if !below.is_empty() => {
                    (self.computed.contains(below), self.any_computed)
                }
                "flags" if !below.is_empty() => (self.flags.contains(below), false),
                "user_responses" if !below.is_empty() => (self.prompts.contains(below), false),
                name => (self.is_known(name), self.any_computed),
            };
            if known || name.is_empty() {
                if let Some(key) = self.no_part_of_command(path) {
                    let severity = if *optional { Severity::Warning } else { Severity::Error };
                    let message = format!(
                        "variable {}: the result of a command has no {}; it has `exit_code`, `stdout` and `stderr`, and is its output where a text is used",
                        quoted(path),
                        quoted(key)
                    );
                    report.add(*at, "WF330", severity, message);
                }
                continue;
            }
            let perhaps = perhaps || self.anything;
            let severity = if !perhaps && !optional { Severity::Error } else { Severity::Warning };
            let why = match (perhaps, optional) {
                (true, _) => "nothing writes it by this name, but something might",
                (false, false) => {
                    "nothing writes it; write it before, or put it into `initial_state`"
                }
                (false, true) => {
                    "nothing writes it, so it is always null; put it into `initial_state`"
                }
            };
            let mut hint = report.hint(leaf(name, below), self.names(name, below), String::new);
            if name == ANSWER {
                "; the answer to a question is `user_responses.NODE`".clone_into(&mut hint);
            } else if name == INPUT {
                "; the text of --input is `${arguments}`".clone_into(&mut hint);
            }
            report.add(*at, "WF330", severity, format!("variable {}: {why}{hint}", quoted(path)));
        }
    }

    /// Returns the part of a command's result that a path reads, if there is no such part. Of a name that something
    /// else may write, too, nothing is known.
    fn no_part_of_command<'path>(&self, path: &'path str) -> Option<&'path str> {
        let (name, rest) = split(path.strip_prefix("computed.").unwrap_or(path));
        let is_open = self.any_computed
            || self.anything
            || !path.starts_with("computed.") && self.fields.contains(name);
        let is_result = !is_open
            && self.commands.get(name).is_some_and(|count| self.writes.get(name) == Some(count));
        let key = split(rest).0;
        let is_part = key.is_empty() || key == "length" || COMMAND_RESULT.contains(&key);
        (is_result && !is_part).then_some(key)
    }

    /// Returns whether a name is a field of this state, or a field that every state has.
    pub(super) fn is_field(&self, name: &str) -> bool {
        self.is_known(name)
    }

    fn is_known(&self, name: &str) -> bool {
        BUILT_IN.contains(&name)
            || [&self.computed, &self.flags, &self.prompts, &self.fields]
                .into_iter()
                .any(|names| names.contains(name))
    }

    /// Returns the known names that a wrong one may have meant.
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

/// Splits a path into its first name and the rest.
fn split(path: &str) -> (&str, &str) {
    let at = path.find(['.', '[', '?']).unwrap_or(path.len());
    (&path[..at], path[at..].trim_start_matches(['.', '?']))
}
