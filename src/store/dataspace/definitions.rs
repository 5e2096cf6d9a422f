//! Programs that were defined: kept as they were then, to be started by their names.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Dataspace, entries, is_absent, name};
use crate::domain::time::Timestamp;
use crate::store::{Error, files};

/// A program as it was when it was defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defined {
    /// Its name.
    pub name: String,
    /// What people are shown, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its file. The folders it runs are looked for beside it.
    pub file: PathBuf,
    /// The checksum of its text.
    pub program: String,
    /// Its text.
    pub text: String,
    /// When it was defined.
    pub at: Timestamp,
}

impl Dataspace {
    /// Keeps a program in the place of the one that had its name; it is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Unfit`] if its name is too long, [`Error::Io`].
    pub fn define(&self, defined: &Defined) -> Result<(), Error> {
        let path = self.definition(&defined.name)?;
        files::make_dir(&self.definitions())?;
        let text = serde_json::to_vec_pretty(defined)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &path))?;
        files::replace(&path, &text)
    }

    /// The program of a name, if it was defined.
    ///
    /// # Errors
    /// [`Error::Io`], also for a file that is none.
    pub fn defined(&self, name: &str) -> Result<Option<Defined>, Error> {
        let path = self.definition(name)?;
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(std::io::Error::other)
                .map_err(Error::io("read", &path)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// All programs that were defined, by name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn all_defined(&self) -> Result<Vec<Defined>, Error> {
        let mut all = Vec::new();
        for path in entries(&self.definitions())? {
            if path.extension().is_some_and(|ending| ending == "json") {
                let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
                let defined: Defined = serde_json::from_slice(&bytes)
                    .map_err(std::io::Error::other)
                    .map_err(Error::io("read", &path))?;
                all.push(defined);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn definitions(&self) -> PathBuf {
        self.path.join("definitions")
    }

    fn definition(&self, name: &str) -> Result<PathBuf, Error> {
        Ok(self.definitions().join(format!("{}.json", name::of_key(name)?)))
    }
}
