//! Where a world is, and with what it is equipped.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::gate::NameLookup;
use super::registry::OwnTypeRegistry;
use crate::domain::allowed_address::AllowedAddress;
use crate::process::command::EnvironmentMarker;
use crate::process::home::WorkingDirs;
use crate::proof::StepProofs;

/// What a [`World`](super::perform::WorkspaceExecutor) is made from.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The homes of the agents: the workspace, and their worktrees. Nothing outside an agent's own is read or
    /// written.
    pub homes: WorkingDirs,
    /// The environment of the programs it runs, and of its requests' proxies: see [`passed_on`](crate::process::environment::passed_on).
    pub environment: Vec<(OsString, OsString)>,
    /// The run's directory for files of single steps, where the notes of operations are kept.
    pub steps: PathBuf,
    /// What the notes are proven with.
    pub proofs: StepProofs,
    /// What its programs are found by.
    pub marker: EnvironmentMarker,
    /// What pages may be fetched from besides the public internet.
    pub allowed_addresses: Vec<AllowedAddress>,
    /// How the names of hosts are looked up.
    pub lookup: NameLookup,
    /// The types that a program using the library has added.
    pub own: OwnTypeRegistry,
}

impl Workspace {
    /// Where programs are looked for.
    #[must_use]
    pub fn path(&self) -> Option<&OsStr> {
        self.variable("PATH")
    }

    /// A variable of the environment.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }
}
