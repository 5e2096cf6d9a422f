//! The workspace of operations, and its equipment.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::gate::NameLookup;
use crate::own_types::OwnTypeRegistry;
use raymond_agents::command::EnvironmentMarker;
use raymond_agents::working_dirs::WorkingDirs;
use raymond_model::allowed_address::AllowedAddress;
use raymond_store::proof::StepProofs;

/// The parameters of a [`WorkspaceExecutor`](super::perform::WorkspaceExecutor).
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The working directories of the agents: the workspace, and their worktrees. An operation never reads or
    /// writes outside its agent's own.
    pub working_dirs: WorkingDirs,
    /// The environment of the programs it runs, and of its requests' proxies: see
    /// [`passed_on`](raymond_agents::helper_environment::passed_on).
    pub environment: Vec<(OsString, OsString)>,
    /// The run's directory for files of single steps, where the notes of operations are kept.
    pub steps: PathBuf,
    /// The proofs of the notes.
    pub proofs: StepProofs,
    /// The mark by which its programs are found.
    pub marker: EnvironmentMarker,
    /// The addresses that pages may be fetched from besides the public internet.
    pub allowed_addresses: Vec<AllowedAddress>,
    /// The lookup of the names of hosts.
    pub lookup: NameLookup,
    /// True if the workflow may write files that programs obey.
    pub is_trusted: bool,
    /// The types that a program using the library has added.
    pub own: OwnTypeRegistry,
}

impl Workspace {
    /// Returns the search path of programs.
    pub fn path(&self) -> Option<&OsStr> {
        self.variable("PATH")
    }

    /// Returns a variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }
}
