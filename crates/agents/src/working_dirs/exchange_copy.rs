//! The clone of a run's exchange at a host: the repository of its agents, and the directory that reaches the exchange.
//!
//! Agents can write the configuration of their repository, which can name programs. So git is told another directory,
//! which only raymond writes, when it reaches the exchange; only the objects are those of the repository.

use std::path::{Path, PathBuf};

use raymond_model::git_exchange::GitExchange;
use raymond_model::host::HostEpoch;

/// The clone of a run's exchange at a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeCopy {
    /// The exchange.
    pub exchange: GitExchange,
    /// The epoch of the host. A clone of an earlier one may have work that does not count.
    pub epoch: HostEpoch,
    /// The directory of the clone, which is put in place as a whole.
    pub home: PathBuf,
}

impl ExchangeCopy {
    /// Returns the repository that agents work in.
    pub fn repository(&self) -> PathBuf {
        self.home.join("repository")
    }

    /// Returns the directory with which raymond reaches the exchange.
    pub fn control(&self) -> PathBuf {
        self.home.join("control")
    }

    /// Returns the directory of the objects of both.
    pub fn objects(&self) -> PathBuf {
        self.repository().join(".git/objects")
    }

    /// Returns the file with the number of the epoch.
    pub fn epoch_file(&self) -> PathBuf {
        self.home.join("epoch")
    }

    /// Returns the directory of the run: the repository, or a directory below it.
    pub fn root(&self) -> PathBuf {
        match &self.exchange.directory {
            Some(below) => self.repository().join(below.as_str()),
            None => self.repository(),
        }
    }

    /// Returns the same clone as it is while it is made.
    pub fn draft(&self) -> Self {
        Self { home: beside(&self.home, "draft"), ..self.clone() }
    }
}

/// Returns the path beside another one that no run has, because the name of none has this sign.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push("~");
    path.push(what);
    path.into()
}
