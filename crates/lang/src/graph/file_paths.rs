//! Checks the paths of files in a graph, as far as they are written out.
//!
//! The workspace is known only when the graph runs. A path that leads up from it is an error in any workspace; an
//! absolute one is fine in a workspace that has it, so `check` warns of it, whatever directory it is called in.

use super::parameters::GivenParameters;
use super::reader::GraphReader;
use super::vocabulary::parameter_kind;
use crate::position::SourcePlace;
use crate::report::quoted;
use crate::yaml::content::{YamlContent, YamlValue};
use raymond_model::graph_types::{PACKS, ParameterKind};

/// The directory of log files, if none is given.
pub(super) const LOGS: &str = "data/logs";

impl GraphReader<'_> {
    /// Checks that no path of a file that is written out leads out of the workspace.
    pub(super) fn check_paths(&mut self, given: &GivenParameters<'_>) -> Option<()> {
        let mut sound = true;
        let kind = given.kind;
        for name in PACKS.iter().flat_map(|pack| pack.paths) {
            if parameter_kind(kind, name) == Some(ParameterKind::Path) {
                continue;
            }
            let Some((at, path)) = given.node(name).and_then(written) else { continue };
            sound &= self.check_path((kind, name), at, path, path);
        }
        if let Some(YamlContent::List(paths)) = given.node("paths").map(|paths| &paths.value) {
            for (at, path) in paths.iter().filter_map(written) {
                sound &= self.check_path((kind, "paths"), at, path, path);
            }
        }
        if kind == "write_log"
            && let Some((at, name)) = given.node("filename").and_then(written)
        {
            let location = given.node("location").and_then(written).map_or(LOGS, |(_, path)| path);
            // A location that leads out itself has been reported.
            if !leads_up(known(location)) && !location.contains("${") {
                let whole = format!("{}/{name}", location.trim_end_matches('/'));
                sound &= self.check_path((kind, "filename"), at, name, &whole);
            }
        }
        sound.then_some(())
    }

    /// Checks a path, which the graph writes as `shown`. Returns false if it leads out of every workspace.
    fn check_path(
        &mut self,
        (kind, name): (&str, &str),
        at: SourcePlace,
        shown: &str,
        path: &str,
    ) -> bool {
        let known = known(path);
        let shown = quoted(shown);
        if leads_up(known) {
            let message = format!("`{name}` of `{kind}` leads out of the workspace: {shown}");
            self.report.error(at, "WF304", message);
            return false;
        }
        if known.starts_with('/') && name != "filename" {
            let message = format!(
                "`{name}` of `{kind}` is absolute, and is refused unless the workspace has it: {shown}; name it below the workspace"
            );
            self.report.warning(at, "WF304", message);
        }
        true
    }
}

/// Returns a text with its place.
fn written(node: &YamlValue) -> Option<(SourcePlace, &str)> {
    node.text().map(|text| (node.at, &*text.text))
}

/// Returns the beginning of a path that is known. `${…}` is one name at least; what it leads to is checked when it is
/// known.
fn known(path: &str) -> &str {
    path.split("${").next().unwrap_or_default()
}

/// Returns whether a path leads above the directory it begins in.
fn leads_up(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" if depth == 0 && path.starts_with('/') => return false,
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}
