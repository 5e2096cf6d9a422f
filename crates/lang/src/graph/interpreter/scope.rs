//! Resolves names in a graph: loops first, then an explicit root, then the first map with a bare name.

use serde_json::{Map, Value};

use super::GraphInterpreter;
use crate::expression::NameScope;
use raymond_model::graph_execution::LoopFrame;
use raymond_model::value_path::ValuePath;

/// The root names whose values are maps.
pub(super) const ROOTS: [&str; 3] = ["computed", "flags", "user_responses"];

/// The scope of a graph's nodes.
pub(super) struct GraphScope<'state> {
    fields: &'state Map<String, Value>,
    levels: &'state [LoopFrame],
    names: &'state Map<String, Value>,
    builtins: &'state Map<String, Value>,
    now: &'state Value,
}

impl GraphInterpreter<'_> {
    pub(super) fn scope(&self) -> GraphScope<'_> {
        GraphScope {
            fields: &self.state.fields,
            levels: &self.state.cursor.levels,
            names: &self.names,
            builtins: &self.around.builtins,
            now: &self.now_text,
        }
    }

    /// Returns the value at a path; `None` if it is missing.
    pub(super) fn at(&self, path: &ValuePath) -> Option<Value> {
        let scope = self.scope();
        let name = path.root()?;
        if let Some(found) = scope.root(name) {
            return path.rest_of(found).cloned();
        }
        let path = path.without("state")?;
        path.rest_of(scope.field(path.root()?)?).cloned()
    }
}

impl NameScope for GraphScope<'_> {
    fn root(&self, name: &str) -> Option<&Value> {
        let mut loops = self.levels.iter().rev().filter_map(|level| level.each.as_ref());
        if let Some(each) = loops.find(|each| each.name == name) {
            return each.items.get(each.at);
        }
        if ROOTS.contains(&name) {
            return self.fields.get(name);
        }
        let mut maps = ROOTS.into_iter().filter_map(|root| self.fields.get(root)?.get(name));
        let own = maps.next().or_else(|| self.fields.get(name));
        let builtin = match name {
            "cwd" => "PWD",
            "ARGUMENTS" => "arguments",
            name => name,
        };
        own.or_else(|| self.names.get(name)).or_else(|| self.builtins.get(builtin))
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).or_else(|| self.names.get(name))
    }

    fn now(&self) -> Option<&Value> {
        Some(self.now)
    }
}
