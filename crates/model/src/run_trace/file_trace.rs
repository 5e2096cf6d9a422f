//! The files that the turns of a run changed, as far as their streams tell.

use std::collections::BTreeMap;

use crate::cassette::{FilePatch, RecordedChange, TextEdit};
use crate::id::AgentId;
use crate::turn::TurnId;
use crate::working_dir::WorkingDir;

/// The changed files of a run. The agent is the owner of the worktree that has the file, if it is not in the run's own
/// directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTrace {
    /// The files.
    pub files: BTreeMap<(Option<AgentId>, String), TracedFile>,
    /// The number of commands that were run. What they changed is not known.
    pub commands: u64,
}

/// A file that turns changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedFile {
    /// The result of the changes.
    pub content: TracedContent,
    /// The turns that changed it, in order.
    pub by: Vec<TurnId>,
}

/// The result of the changes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracedContent {
    /// The whole text.
    Known(String),
    /// Edits of a text that is not known.
    Edited(Vec<TextEdit>),
}

impl FileTrace {
    /// Adds the changes of a turn.
    pub fn add(&mut self, turn: &TurnId, dir: &WorkingDir, changes: Vec<RecordedChange>) {
        for RecordedChange { path, patch, .. } in changes {
            let path = dir.cwd.as_ref().map_or_else(|| path.clone(), |cwd| format!("{cwd}/{path}"));
            let key = (dir.tree.clone(), path);
            let none = TracedFile { content: TracedContent::Edited(Vec::new()), by: Vec::new() };
            let file = self.files.entry(key).or_insert(none);
            if file.by.last() != Some(turn) {
                file.by.push(turn.clone());
            }
            file.content.change(patch);
        }
    }
}

impl TracedContent {
    fn change(&mut self, patch: FilePatch) {
        match (&mut *self, patch) {
            (_, FilePatch::Content(text)) => *self = Self::Known(text),
            (Self::Edited(edits), FilePatch::Edits(more)) => edits.extend(more),
            (Self::Known(text), FilePatch::Edits(edits)) => {
                let changed = FilePatch::Edits(edits.clone()).apply(Some(text));
                // If an edit does not apply, something else changed the file in between.
                *self = changed.map_or(Self::Edited(edits), Self::Known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Folder;

    fn turn(step: u64) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn: 0 }
    }

    fn change(patch: FilePatch) -> Vec<RecordedChange> {
        vec![RecordedChange { path: "a".to_owned(), tool: "Edit".to_owned(), patch }]
    }

    fn edit(old: &str, new: &str) -> FilePatch {
        FilePatch::Edits(vec![TextEdit { old: old.to_owned(), new: new.to_owned(), all: false }])
    }

    #[test]
    fn text_is_known_from_the_turn_that_wrote_the_whole_file() {
        let mut trace = FileTrace::default();
        let dir = WorkingDir {
            tree: None,
            unsnapshotted: false,
            cwd: Some(Folder::parse("sub").expect("a folder")),
            ..WorkingDir::default()
        };
        trace.add(&turn(1), &dir, change(edit("x", "y")));
        trace.add(&turn(2), &dir, change(FilePatch::Content("one".to_owned())));
        trace.add(&turn(3), &dir, change(edit("one", "two")));
        let file = &trace.files[&(None, "sub/a".to_owned())];
        assert_eq!(file.content, TracedContent::Known("two".to_owned()));
        assert_eq!(file.by, [turn(1), turn(2), turn(3)]);
        trace.add(&turn(4), &dir, change(edit("gone", "two")));
        let file = &trace.files[&(None, "sub/a".to_owned())];
        assert!(matches!(file.content, TracedContent::Edited(_)), "another has changed it");
    }
}
