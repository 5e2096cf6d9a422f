//! The answers to the prompts of a case: a script, or a cassette beside the case.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::discovery::{CaseMistake, LoadedCase, shown};
use crate::language::cases::{CaseCassette, CaseReplies};
use crate::language::position::SourcePlace;
use crate::language::replies::{self, ScriptedReplies};
use crate::plain_file;
use crate::runtime::{Workflow, replay};
use crate::world::scripted_files::folder_below;

/// Returns the mistakes of the files that answer.
pub(super) fn mistakes(loaded: &LoadedCase) -> Vec<CaseMistake> {
    match &loaded.case.replies {
        CaseReplies::Workflow | CaseReplies::Keys(_) => Vec::new(),
        CaseReplies::File(place, name) => script_mistakes(*place, &loaded.beside(name.as_str())),
        CaseReplies::Cassette(cassette) => {
            let why = cassette_dir(loaded, cassette).and_then(|dir| {
                let workflow = Workflow::open(&loaded.entry_path());
                let checked = workflow.and_then(|workflow| replay::check(&dir, &workflow));
                checked.map_err(|error| error.to_string())
            });
            why.err().into_iter().map(|why| (cassette.at, format!("cassette: {why}"))).collect()
        }
    }
}

fn script_mistakes(place: SourcePlace, path: &Path) -> Vec<CaseMistake> {
    let text = match plain_file::text(path) {
        Ok(text) => text,
        Err(error) => {
            let path = shown(path);
            let why =
                format!("the replies {path} cannot be read: {error}; name a file beside the case");
            return vec![(place, why)];
        }
    };
    let (_, errors) = ScriptedReplies::examine(&text);
    errors.all().iter().map(|error| (place, format!("{}:{error}", shown(path)))).collect()
}

/// Returns the directory of the cassette of a case.
fn cassette_dir(loaded: &LoadedCase, cassette: &CaseCassette) -> Result<PathBuf, String> {
    // A case comes with a workflow that may be untrusted: no link leads the reader elsewhere.
    folder_below(&loaded.beside(""), cassette.dir.as_str())
        .map_err(|why| format!("{why}; make one with `raymond record RUN -o DIR`"))
}

/// Returns the options of `raymond run` that name the source of the answers.
pub(super) fn arguments(loaded: &LoadedCase) -> Vec<OsString> {
    let scripted = vec!["--agent".into(), "scripted".into()];
    let CaseReplies::Cassette(cassette) = &loaded.case.replies else { return scripted };
    // It was there when the case was read; without a name the run is refused.
    let mut replay = OsString::from("replay:");
    replay.push(cassette_dir(loaded, cassette).unwrap_or_default());
    let mut arguments = vec!["--agent".into(), replay];
    arguments.extend(cassette.is_strict.then(|| "--strict-replay".into()));
    arguments
}

/// Returns the script of the case, if it is not the workflow's own.
pub(super) fn script(loaded: &LoadedCase) -> Result<Option<String>, String> {
    match &loaded.case.replies {
        CaseReplies::Workflow | CaseReplies::Cassette(_) => Ok(None),
        CaseReplies::File(_, name) => {
            let path = loaded.beside(name.as_str());
            let read = plain_file::text(&path);
            read.map(Some).map_err(|error| format!("{}: cannot read it: {error}", path.display()))
        }
        CaseReplies::Keys(keys) => {
            let own = own_replies(loaded);
            let mut lines = Vec::new();
            for (key, list) in own {
                if !keys.iter().any(|(_, other, _)| *other == key) {
                    lines.push((key, list));
                }
            }
            lines.extend(keys.iter().map(|(_, key, list)| (key.clone(), list.clone())));
            let line =
                |(key, list): &(String, String)| format!("{}: {list}\n", serde_json::json!(key));
            Ok(Some(lines.iter().map(line).collect()))
        }
    }
}

/// Returns the keys of the workflow's own script, each with its list as JSON.
fn own_replies(loaded: &LoadedCase) -> BTreeMap<String, String> {
    let text = plain_file::text(&loaded.workflow.join(replies::FILE)).unwrap_or_default();
    replies::as_json(&text)
}
