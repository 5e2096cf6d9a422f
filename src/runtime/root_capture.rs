//! The files of a run's root, with the folders beside it that explicit tags in them name.

use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::id::{Folder, StateKind, StateName};
use crate::domain::transition::Transition;
use crate::language::prompt::named::why_no_entry;
use crate::language::prompt::workflow_map::FolderPrompt;
use crate::store::Error;
use crate::store::capture::WorkflowCapture;
use crate::store::workflow::WorkflowDir;

/// Reads the root of a run, with the folders beside it that explicit tags in the files lead to.
///
/// # Errors
/// As [`WorkflowCapture::of`].
pub(super) fn capture_root(root: &Path, apart: &Path) -> Result<WorkflowCapture, Error> {
    let mut capture = WorkflowCapture::of(root, apart)?;
    let Ok(top) = WorkflowDir::open(root) else { return Ok(capture) };
    let mut seen = BTreeSet::new();
    loop {
        let files = capture.files.iter();
        let mut named =
            files.flat_map(|(path, file)| named_in(path, &file.content, &top).unwrap_or_default());
        let Some(sibling) = named.find(|sibling| !seen.contains(sibling)) else {
            return Ok(capture);
        };
        if let Ok(folder) = top.below(&sibling) {
            capture.read(folder.root(), &format!("{sibling}/"), apart)?;
        }
        seen.insert(sibling);
    }
}

/// Returns the folders beside the root with a state that a prompt or a script leads to.
fn named_in(path: &str, content: &[u8], top: &WorkflowDir) -> Option<Vec<Folder>> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let take_apart = match StateKind::of(&StateName::parse(name).ok()?)? {
        StateKind::Prompt => FolderPrompt::of,
        StateKind::Script => FolderPrompt::of_script,
        StateKind::Graph | StateKind::Program => return None,
    };
    let text = str::from_utf8(content).ok().filter(|text| text.contains("-workflow"))?;
    let folder = Folder::parse(folder).ok();
    let here = folder.as_ref().map_or_else(|| Ok(top.clone()), |folder| top.below(folder)).ok()?;
    let mut prompt = take_apart(text);
    prompt.resolve_names(&here);
    let of_ways = prompt.ways.iter().flat_map(|way| way.transition.states());
    let shown = prompt.shown.iter().filter_map(|tag| tag.transition.as_ref().ok());
    let shown = shown.flat_map(Transition::crossings);
    let shown = shown.map(|(path, state)| (path.clone(), state.clone()));
    let named = of_ways.filter_map(StateName::in_other_folder).chain(shown);
    let entered = named.filter(|(path, state)| why_no_entry(path, state, &here).is_none());
    let folders = entered.filter_map(|(path, _)| path.seen_from(folder.as_ref()).ok()?);
    Some(folders.filter_map(|folder| folder.sibling()).collect())
}
