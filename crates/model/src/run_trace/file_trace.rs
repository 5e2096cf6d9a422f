//! The files that the turns of a run changed, as far as their streams tell.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TracedFile {
    /// The turns that changed it, in order.
    #[serde(serialize_with = "as_steps")]
    pub by: Vec<TurnId>,
    /// The result of the changes.
    #[serde(flatten)]
    pub content: TracedContent,
}

/// The result of the changes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum TracedContent {
    /// The whole text.
    #[serde(rename = "content")]
    Known(String),
    /// Edits of a text that is not known.
    #[serde(rename = "edits")]
    Edited(Vec<TextEdit>),
}

impl TracedFile {
    /// Returns the steps that changed it, in order: `main.1#2`.
    pub fn steps(&self) -> impl Iterator<Item = String> {
        steps_of(&self.by)
    }
}

fn steps_of(turns: &[TurnId]) -> impl Iterator<Item = String> {
    turns.iter().map(|turn| format!("{}#{}", turn.agent, turn.step))
}

fn as_steps<S: Serializer>(turns: &[TurnId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps_of(turns))
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
