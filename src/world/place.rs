//! Where a world is, and with what it is equipped.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::gate::NameLookup;
use super::registry::Registry;
use crate::domain::allowed_address::AllowedAddress;
use crate::process::command::Marker;
use crate::process::home::Homes;
use crate::proof::StepProofs;

/// What a [`World`](super::perform::World) is made from.
#[derive(Debug, Clone)]
pub struct Place {
    /// The homes of the agents: the workspace, and their worktrees. Nothing outside an agent's own is read or
    /// written.
    pub homes: Homes,
    /// The environment of the programs it runs, and of its requests' proxies: see [`passed_on`](crate::process::environment::passed_on).
    pub environment: Vec<(OsString, OsString)>,
    /// The run's directory for files of single steps, where the notes of operations are kept.
    pub steps: PathBuf,
    /// What the notes are proven with.
    pub proofs: StepProofs,
    /// What its programs are found by.
    pub marker: Marker,
    /// What pages may be fetched from besides the public internet.
    pub allowed_addresses: Vec<AllowedAddress>,
    /// How the names of hosts are looked up.
    pub lookup: NameLookup,
    /// The types that a program using the library has added.
    pub own: Registry,
}

impl Place {
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
