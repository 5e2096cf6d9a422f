//! Makes the clone of the exchange in which a host works for a run.
//!
//! It is made beside its place, and put there as a whole. One of an earlier epoch of the host is moved aside: it may have
//! work that does not count, and that is nowhere else.

use std::io::{ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::context::blocking;
use crate::exchange::fetch::ExchangeRemote;
use crate::git::{Git, NO_WORDS, is_object};
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use raymond_agents::child::orphans;
use raymond_agents::working_dirs::ExchangeCopy;
use raymond_model::exchange_branches::{base_branch, work_branch};
use raymond_store::plain_file::replace::{FileReplacement, sync_directory};

/// The name under which git makes the clone.
const STEM: &str = "exchange.clone";

/// The pauses before the exchange is asked again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

impl WorkspaceExecutor {
    /// Makes sure that the clone of the run's exchange is there. Returns where one of an earlier epoch was moved.
    pub async fn clone_exchange(&self) -> InspectionOutcome<Option<PathBuf>> {
        let working_dirs = &self.0.place.working_dirs;
        let Some(copy) = working_dirs.exchange() else {
            return InspectionOutcome::Done(Ok(None));
        };
        let git = Git { shared: &self.0, stem: STEM };
        let made = async {
            let (found, trees) = (copy.clone(), working_dirs.trees().to_owned());
            let moved = blocking(&self.0, move |_| moved_aside(&found, &trees)).await?;
            let moved = moved.map_err(|error| error.to_string())?;
            if !copy.home.exists() {
                make(git, copy).await?;
            }
            Ok(moved)
        };
        let (address, home) = (&copy.exchange.address, copy.home.display());
        let described =
            |why: &str| format!("cannot make the clone of the exchange {address} at {home}: {why}");
        made.await.map_err(|error: OperationError| error.described(described)).into()
    }
}

/// Makes the clone beside its place, and puts it there.
async fn make(git: Git<'_>, copy: &ExchangeCopy) -> Result<(), OperationError> {
    if !is_object(&copy.exchange.base) {
        return Err(format!("`{}` is not a commit", copy.exchange.base).into());
    }
    orphans::sweep(&git.shared.place.marker, |process| process == STEM).await;
    let draft = copy.draft();
    let fresh = draft.clone();
    let prepared = blocking(git.shared, move |_| prepare(&fresh)).await?;
    prepared.map_err(|error| error.to_string())?;
    let remote = ExchangeRemote { git, copy: &draft };
    remote.begin().await?;
    let mut pauses = PAUSES.into_iter();
    while let Err(error) = remote.fetch_all().await {
        let (OperationError::Failed(_), Some(pause)) = (&error, pauses.next()) else {
            return Err(error);
        };
        git.shared.unless_stopped(tokio::time::sleep(pause)).await?;
    }
    remote.check_out().await?;
    let copy = copy.clone();
    let placed = blocking(git.shared, move |_| place(&draft, &copy)).await?;
    Ok(placed.map_err(|error| error.to_string())?)
}

impl ExchangeRemote<'_> {
    /// Makes the two directories, which are empty.
    async fn begin(&self) -> Result<(), OperationError> {
        let format = if self.copy.exchange.base.len() == 64 { "sha256" } else { "sha1" };
        let init = format!("init --quiet --template= --object-format={format}");
        let git = self.git.at(&self.copy.home);
        git.text(&init, [self.copy.repository()]).await?;
        git.text(&format!("{init} --bare"), [self.copy.control()]).await?;
        self.repository().text("remote add origin --", [self.address()]).await.map(drop)
    }

    /// Fetches all branches and tags: those of this run as its own, and not those of other runs.
    async fn fetch_all(&self) -> Result<(), OperationError> {
        self.fetch_branches().await?;
        self.fetch(&[
            "+refs/heads/*:refs/remotes/origin/*",
            "^refs/heads/raymond/*",
            "+refs/tags/*:refs/tags/*",
        ])
        .await
    }

    /// Gives the repository its refs, and checks the files out.
    async fn check_out(&self) -> Result<(), OperationError> {
        self.control().text("pack-refs --all", NO_WORDS).await?;
        let packed = [&self.copy.control(), &self.copy.repository().join(".git")]
            .map(|directory| directory.join("packed-refs"));
        let copied = blocking(self.git.shared, move |_| std::fs::copy(&packed[0], &packed[1]));
        copied.await?.map_err(|error| error.to_string())?;
        let (run, repository) = (&self.git.shared.place.marker.run, self.repository());
        let (trunk, base) = (work_branch(run, None)?, &self.copy.exchange.base);
        if repository.commit(base).await?.is_none() {
            let branch = base_branch(run)?;
            return Err(format!(
                "the exchange no longer has the commit {base} that the run began at, which was pushed as {branch}: push it again"
            )
            .into());
        }
        let begin = repository.commit(&format!("refs/remotes/{trunk}")).await?;
        let begin = begin.as_ref().unwrap_or(base);
        repository.text("checkout --quiet --no-track -B", [&trunk, begin]).await?;
        let root = self.copy.root();
        let made = blocking(self.git.shared, move |_| std::fs::create_dir_all(root)).await?;
        Ok(made.map_err(|error| error.to_string())?)
    }
}

/// Removes what an earlier try has left, and makes the directory of the draft.
fn prepare(draft: &ExchangeCopy) -> IoResult<()> {
    match std::fs::remove_dir_all(&draft.home) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir_all(&draft.home)
}

/// Puts the finished draft in place.
fn place(draft: &ExchangeCopy, copy: &ExchangeCopy) -> IoResult<()> {
    FileReplacement::of(&draft.epoch_file()).write(copy.epoch.0.to_string().as_bytes())?;
    std::fs::rename(&draft.home, &copy.home)?;
    copy.home.parent().map_or(Ok(()), sync_directory)
}

/// Moves the clone and the worktrees of another epoch aside; returns where the clone is then.
fn moved_aside(copy: &ExchangeCopy, trees: &Path) -> IoResult<Option<PathBuf>> {
    let is_there = std::fs::symlink_metadata(&copy.home).is_ok();
    let epoch = std::fs::read_to_string(copy.epoch_file()).unwrap_or_default();
    if !is_there || epoch == copy.epoch.0.to_string() {
        return Ok(None);
    }
    let (aside, trees_aside) = (free(&copy.home), free(trees));
    // The clone goes last: until then, the next try finds that it has to be moved.
    match std::fs::rename(trees, &trees_aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::rename(&copy.home, &aside)?;
    Ok(Some(aside))
}

/// Returns a path beside another one that is free, and that no run has.
fn free(path: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("~{number}"));
        PathBuf::from(name)
    };
    let taken = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok();
    (1..u32::MAX).map(named).find(|path| !taken(path)).unwrap_or_else(|| named(u32::MAX))
}
