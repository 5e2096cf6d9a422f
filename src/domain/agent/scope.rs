//! The folder of an agent's state, which is a scope of its own.

use super::Agent;
use crate::domain::id::{Folder, InvalidName, ScopePath, StateName};

impl Agent {
    /// Returns the folder of its state below the run's root, if it is not the root itself.
    pub fn folder(&self) -> Option<Folder> {
        match &self.scope {
            None => self.spec.folder.clone(),
            Some(scope) => scope.seen_from(None).ok().flatten(),
        }
    }

    /// Returns the folder that a path leads to from its state.
    ///
    /// # Errors
    /// [`InvalidName::BeyondRoot`].
    pub fn folder_at(&self, path: Option<&ScopePath>) -> Result<Option<Folder>, InvalidName> {
        let here = self.folder();
        path.map_or(Ok(here.clone()), |path| path.seen_from(here.as_ref()))
    }

    /// Returns its place, for people: its folder, if that is not the run's root, and its state there.
    pub fn shown_place(&self) -> StateName {
        self.place().shown_in(self.folder().as_ref())
    }

    /// Returns the name under which people see its state.
    pub fn shown_state(&self) -> StateName {
        self.current_state.shown_in(self.folder().as_ref())
    }

    /// Returns whether its result leaves the folder of its state: it ends the agent, or goes to a caller elsewhere.
    pub fn result_leaves_folder(&self) -> bool {
        self.stack.last().is_none_or(|frame| frame.scope != self.scope)
    }

    /// Goes to another folder.
    pub(in crate::domain) fn go_to(&mut self, folder: Option<&Folder>) {
        let is_first = folder == self.spec.folder.as_ref();
        self.scope = (!is_first).then(|| ScopePath::from_root(folder));
    }

    /// Returns the name under which the turns in a state are counted. Two folders can have states of one name.
    pub(super) fn visited(&self, state: &StateName) -> StateName {
        let Some(scope) = &self.scope else { return state.clone() };
        let name = format!("{}#{state}", scope.as_str().replace('/', "#").replace("..", ""));
        StateName::parse(&name).unwrap_or_else(|_| state.clone())
    }
}
