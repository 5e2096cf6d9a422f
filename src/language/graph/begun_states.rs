//! Checks that the states in which a graph has further agents begin are there, as far as they are written out.

use super::reader::GraphReader;
use crate::domain::id::{Folder, StateName};
use crate::language::report::quoted;
use crate::language::source::WorkflowSource;
use crate::language::state_files::is_state;
use crate::language::yaml::content::YamlValue;

/// The state of a folder in which agents begin, unless another one is named.
pub(super) const FIRST_STATE: &str = "START.md";

impl GraphReader<'_> {
    /// Reports a folder or a state that does not exist.
    pub(super) fn begins_in(&mut self, folder: Option<&YamlValue>, state: Option<&YamlValue>) {
        let source = self.source;
        let Some(node) = folder else { return self.state_in(source, state, None) };
        let Some(path) = written_out(node) else { return };
        let within = match Folder::parse(path) {
            Ok(folder) => source.within(&folder).map_err(|error| error.reason()),
            Err(error) => Err(error.to_string()),
        };
        match within {
            Ok(below) => self.state_in(&*below, state, Some(node)),
            Err(why) => self.no_target(node, path, &why),
        }
    }

    /// Reports a state that the folder lacks; `folder` is where the folder is named.
    fn state_in(
        &mut self,
        source: &dyn WorkflowSource,
        state: Option<&YamlValue>,
        folder: Option<&YamlValue>,
    ) {
        let Some(node) = state.or(folder) else { return };
        let name = match state {
            Some(state) => match written_out(state) {
                Some(name) => name,
                None => return,
            },
            None => FIRST_STATE,
        };
        let why = match StateName::parse(name) {
            Ok(name) if name.in_other_folder().is_some() => None,
            Ok(name) => match source.check(&name) {
                Ok(()) if !is_state(&name, source) => Some("this is not a state".to_owned()),
                Ok(()) => None,
                Err(error) => Some(error.reason()),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            self.no_target(node, name, &why);
        }
    }

    fn no_target(&mut self, node: &YamlValue, name: &str, why: &str) {
        let message = format!("no agent can begin in {}: {why}", quoted(name));
        self.report.error(node.at, "WF214", message);
    }
}

/// Returns a text without `${…}`.
fn written_out(node: &YamlValue) -> Option<&str> {
    node.text().map(|text| &*text.text).filter(|text| !text.contains("${"))
}
