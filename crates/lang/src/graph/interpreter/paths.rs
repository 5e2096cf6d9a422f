//! The paths of parameters: where values are read, and where they are written.

use serde_json::Value;

use super::GraphInterpreter;
use super::scope::ROOTS;
use crate::expression::ValueTemplate;
use raymond_model::value_path::ValuePath;

impl GraphInterpreter<'_> {
    /// Returns a path with its values filled in.
    pub(super) fn value_path(&mut self, path: &ValueTemplate) -> Result<ValuePath, String> {
        ValuePath::parse(&self.text(path)?).map_err(|error| format!("WF403 {error}"))
    }

    /// Returns the value at a path, which has to exist.
    pub(super) fn existing(&mut self, path: &ValueTemplate) -> Result<Value, String> {
        let path = self.value_path(path)?;
        self.at(&path).ok_or_else(|| format!("WF402 Unresolved variable: ${{{path}}}"))
    }

    /// Returns the keys of a full path that is written to.
    pub(super) fn path(&mut self, path: &ValueTemplate) -> Result<Vec<String>, String> {
        let path = self.value_path(path)?;
        self.keys(&path)
    }

    /// Returns the keys of a path that a result is stored at: a field that exists already, else one below
    /// `computed`.
    pub(in crate::graph) fn store_path(
        &mut self,
        path: &ValueTemplate,
    ) -> Result<Vec<String>, String> {
        let path = self.value_path(path)?;
        let fields = &self.state.fields;
        let is_field = path.root().is_some_and(|root| {
            let is_computed = fields.get("computed").is_some_and(|all| all.get(root).is_some());
            if ROOTS.contains(&root) {
                path.segments().len() > 1
            } else {
                fields.contains_key(root) && !is_computed
            }
        });
        let is_state = path.root() == Some("state") && !fields.contains_key("state");
        if is_field || is_state { self.keys(&path) } else { self.keys(&path.below("computed")) }
    }

    /// Returns the keys of a flag, which is given with or without the word `flags`.
    pub(super) fn flag(&mut self, flag: &ValueTemplate) -> Result<Vec<String>, String> {
        let path = self.value_path(flag)?.below("flags");
        self.keys(&path)
    }

    fn keys(&self, path: &ValuePath) -> Result<Vec<String>, String> {
        let below = path.without("state").filter(|_| !self.state.fields.contains_key("state"));
        below
            .as_ref()
            .unwrap_or(path)
            .keys_in(&self.state.fields)
            .map_err(|why| format!("WF403 {why}"))
    }

    /// Returns the value at a path that is written to, if there is one.
    pub(in crate::graph) fn written(&self, path: &[String]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.state.fields.get(first)?, |here, key| match here {
            Value::Array(list) => list.get(key.parse::<usize>().ok()?),
            other => other.get(key),
        })
    }
}
