//! Clones: made aside and put in place as a whole, so that a partial clone never has the name.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::context::{OperationContext, blocking};
use super::git::{Git, NO_WORDS};
use super::outcome::OperationError;
use super::paths::{FileAccess, resolve};
use crate::plain_file::replace::sync_directory;
use crate::world::web::{check_branch, check_remote, masked};

/// A clone that is to be made.
pub(super) struct GitClone<'clone> {
    pub(super) url: &'clone str,
    pub(super) dest: &'clone str,
    pub(super) branch: Option<&'clone str>,
    /// The number of commits; 0 for all.
    pub(super) depth: u32,
}

/// The current content of the destination.
enum CloneDestination {
    Nothing,
    Repository,
    Other,
}

impl GitClone<'_> {
    /// Makes the clone. An existing clone of the same address is fine.
    pub(super) async fn perform(
        &self,
        shared: &Arc<OperationContext>,
        stem: &str,
    ) -> Result<Value, OperationError> {
        check_remote(self.url)?;
        self.branch.map_or(Ok(()), check_branch)?;
        let path = resolve(shared.root(), self.dest, FileAccess::Write)?;
        let _lock = shared.lock_path(&path).await?;
        let git = Git { shared, stem };
        let inspected = path.clone();
        match blocking(shared, move |_| inspect(&inspected)).await? {
            CloneDestination::Repository => return self.is_same(git, &path).await,
            CloneDestination::Other => {
                return Err(self.refused("something else has that name"));
            }
            CloneDestination::Nothing => {}
        }
        let draft = path.with_file_name(format!(".{stem}.raymond-clone"));
        let fresh = draft.clone();
        let prepared = blocking(shared, move |_| prepare(&fresh)).await?;
        prepared.map_err(|error| self.refused(&error.to_string()))?;
        // Local clones go through git's own transport, too, because direct copies have no depth.
        let clone = "clone --quiet --no-local --template=";
        let cloned = git.only_at(shared.root()).output(clone, self.words(&draft)).await;
        let placed = blocking(shared, move |_| match cloned {
            Ok(_) => Ok(put(&draft, &path)),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&draft);
                Err(error)
            }
        });
        placed.await??.map_err(|error| self.refused(&error.to_string()))?;
        Ok(Value::Null)
    }

    fn words(&self, draft: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.depth > 0 {
            words.push(format!("--depth={}", self.depth).into());
        }
        if let Some(branch) = self.branch {
            words.push(format!("--branch={branch}").into());
        }
        words.extend(["--".into(), self.url.into(), draft.into()]);
        words
    }

    /// Checks that the existing clone has the same address.
    async fn is_same(&self, git: Git<'_>, path: &Path) -> Result<Value, OperationError> {
        let origin = match git.only_at(path).text("config --get remote.origin.url", NO_WORDS).await
        {
            Err(OperationError::Failed(_)) => String::new(),
            origin => origin?,
        };
        if origin == self.url {
            return Ok(Value::Null);
        }
        let of = if origin.is_empty() { "nothing".to_owned() } else { masked(&origin) };
        Err(self.refused(&format!("it is a clone of {of}")))
    }

    fn refused(&self, why: &str) -> OperationError {
        let (url, dest) = (masked(self.url), self.dest);
        OperationError::Failed(format!("cannot clone {url} to `{dest}`: {why}"))
    }
}

fn inspect(path: &Path) -> CloneDestination {
    match std::fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => CloneDestination::Nothing,
        Err(_) => CloneDestination::Other,
        Ok(_) if path.join(".git").exists() => CloneDestination::Repository,
        Ok(mut entries) => match entries.next() {
            None => CloneDestination::Nothing,
            Some(_) => CloneDestination::Other,
        },
    }
}

/// Makes the parent of a draft, and removes the draft of an earlier try.
fn prepare(draft: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    draft.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn put(draft: &PathBuf, path: &Path) -> std::io::Result<()> {
    std::fs::rename(draft, path).inspect_err(|_| {
        let _ = std::fs::remove_dir_all(draft);
    })?;
    path.parent().map_or(Ok(()), sync_directory)
}
