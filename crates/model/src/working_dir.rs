//! The working directory of an agent: the run's own directory, one below it, or a worktree.
//!
//! Claude Code finds a session only from the directory it was made in, so an agent keeps one working directory
//! for its whole life, in all its states. An agent that starts in a state with `worktree: true` gets a git
//! worktree of its own. Agents that it forks live in it too, unless they get one of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, Folder};
use crate::host::Home;

/// The directory an agent's turns run in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkingDir {
    /// The agent that owns the worktree; `None` for the run's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<AgentId>,
    /// No snapshots of the worktree are made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsnapshotted: bool,
    /// The host that has the directory.
    #[serde(default, skip_serializing_if = "Home::is_here")]
    pub home: Home,
    /// The directory below the worktree or the run's directory; `None` for that directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
}

impl WorkingDir {
    /// Returns whether it is the run's own directory.
    pub fn is_usual(&self) -> bool {
        self.tree.is_none() && self.cwd.is_none()
    }

    /// Returns the same directory for another agent, which is given a host of its own: it may need one with a label.
    pub fn without_home(&self) -> Self {
        Self { home: Home::default(), ..self.clone() }
    }

    /// Returns a directory below this one, or this one for `None`.
    pub fn below(&self, directory: Option<&Folder>) -> Self {
        let cwd = match (&self.cwd, directory) {
            (Some(own), Some(below)) => Some(own.join(below)),
            (own, below) => below.or(own.as_ref()).cloned(),
        };
        Self { cwd, ..self.clone() }
    }

    /// Returns the agent that owns the worktree, if snapshots of it are made.
    pub fn snapshot_tree(&self) -> Option<&AgentId> {
        self.tree.as_ref().filter(|_| !self.unsnapshotted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folder_is_appended_to_working_dir() {
        let folder = |text: &str| Folder::parse(text).expect("a folder");
        let working_dir = WorkingDir {
            tree: Some(AgentId::main()),
            unsnapshotted: true,
            home: Home::default(),
            cwd: Some(folder("a")),
        };
        assert_eq!(working_dir.below(None), working_dir);
        let below = working_dir.below(Some(&folder("b/c")));
        assert_eq!(below.cwd, Some(folder("a/b/c")));
        assert_eq!((&below.tree, below.snapshot_tree()), (&working_dir.tree, None));
        assert_eq!(WorkingDir::default().below(Some(&folder("b"))).cwd, Some(folder("b")));
        assert!(WorkingDir::default().is_usual() && !working_dir.is_usual());
    }
}
