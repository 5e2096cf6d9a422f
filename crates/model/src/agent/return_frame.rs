//! The pending returns of an agent.
//!
//! The folder of an agent's state, which is a scope of its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::budget::CallBudget;
use crate::id::{Folder, InvalidName, MessageId, ScopePath, SessionId, StateName};
use crate::session::KeptSession;
use crate::session::{Session, SessionOrigin};

/// A pending return: the caller that gets the `<result>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnFrame {
    /// The caller's session.
    pub session: SessionId,
    /// The state the caller resumes in.
    pub state: StateName,
    /// The folder that the caller had gone to, from the run's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopePath>,
    /// The caller's last message, to which its session can be cut back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
    /// The origin of that session, if the caller has had no turn in it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbegun: Option<SessionOrigin>,
    /// The checksum of the manifest under which an engine keeps the history of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Arc<str>>,
    /// The sessions whose history that session begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<SessionId>,
    /// The budget of the call, if the called state gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CallBudget>,
}

impl ReturnFrame {
    /// Creates the return to a caller that resumes in a state, in its current session.
    pub(crate) fn of(caller: &Agent, state: StateName, budget: Option<CallBudget>) -> Self {
        let Session { id, origin, checkpoint, kept, ancestors } = caller.session.clone();
        let unbegun = (origin != SessionOrigin::Resumed).then_some(origin);
        let scope = caller.scope.clone();
        Self { session: id, state, scope, checkpoint, unbegun, kept, ancestors, budget }
    }

    /// Returns the caller's session as it is resumed.
    pub(crate) fn back(self) -> Session {
        let origin = self.unbegun.unwrap_or(SessionOrigin::Resumed);
        let Self { session: id, checkpoint, kept, ancestors, .. } = self;
        Session { id, origin, checkpoint, kept, ancestors }
    }

    /// Takes in that an engine keeps a session, if the caller's history is that one.
    pub(crate) fn note_kept(&mut self, kept: &KeptSession) {
        let history = match &self.unbegun {
            None => Some(&self.session),
            Some(SessionOrigin::Branch { from, .. }) => Some(from),
            Some(SessionOrigin::Fresh | SessionOrigin::Rebuilt | SessionOrigin::Resumed) => None,
        };
        if history == Some(&kept.session_id) {
            self.kept = Some(Arc::clone(&kept.manifest));
        }
    }
}

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
    pub(crate) fn go_to(&mut self, folder: Option<&Folder>) {
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
