//! Keeps the uncommitted content of a worktree: as a commit of its own, under a ref by which it is found.
//!
//! The commit is made with an index of its own, so the worktree stays unchanged. Changes that were staged and then
//! changed again are kept too, as that commit's second parent.

use std::path::PathBuf;

use crate::context::blocking;
use crate::git::{CEILING, Git, GitCall, NO_WORDS, copy_index, link, succeeded};
use crate::outcome::OperationError;
use raymond_agents::child::group::ProcessExit;
use raymond_agents::working_dirs::WorktreeRecord;
use raymond_model::worktree::backup_ref;

/// The number of bytes that are kept of git's output.
const MAX_GIT_OUTPUT_BYTES: usize = 1024 * 1024;

/// The settings for adding files, which override all configurations; objects are synced to the disk before git
/// reports success.
const SETTINGS: &str = "\
    advice.addEmbeddedRepo=false core.safecrlf=false core.splitIndex=false core.fsync=all \
    core.fsyncMethod=fsync add.ignoreErrors=false";

/// Keeps the content of a worktree.
pub(super) struct WorktreeKeeper<'keep> {
    pub(super) git: Git<'keep>,
    pub(super) record: &'keep WorktreeRecord,
    /// The commit it is at.
    pub(super) head: &'keep str,
    /// True if no branch has that commit.
    pub(super) is_alone: bool,
}

/// The commit that keeps the content of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptCommit {
    /// The commit with all of it.
    pub(super) commit: String,
    /// The ref it is found by, if that was made for it.
    pub(super) found_by: Option<String>,
}

impl WorktreeKeeper<'_> {
    fn tree(&self) -> PathBuf {
        self.git.shared.place.working_dirs.tree(&self.record.agent)
    }

    /// Returns the path of the index of its own.
    fn index(&self) -> PathBuf {
        let mut path = self.tree().into_os_string();
        path.push(".index");
        path.into()
    }

    /// Keeps the content.
    pub(super) async fn keep(&self) -> Result<KeptCommit, OperationError> {
        let head_tree = self.git().text("rev-parse", [format!("{}^{{tree}}", self.head)]).await?;
        let (staged, all) = self.trees().await?;
        let staged = staged.filter(|staged| *staged != head_tree && *staged != all);
        if all == head_tree && staged.is_none() {
            let commit = self.head.to_owned();
            let found_by =
                if self.is_alone { Some(self.name(&commit, &all, &[]).await?) } else { None };
            return Ok(KeptCommit { commit, found_by });
        }
        self.refuse_repositories(&head_tree, &all).await?;
        let branch = &self.record.branch;
        let mut parents = vec![self.head.to_owned()];
        if let Some(staged) = staged {
            let message = format!("What was staged in the worktree of {branch}");
            parents.push(self.commit(&staged, &parents, &message).await?);
        }
        let message = format!("What was not committed in the worktree of {branch}");
        let commit = self.commit(&all, &parents, &message).await?;
        let found_by = Some(self.name(&commit, &all, &parents).await?);
        Ok(KeptCommit { commit, found_by })
    }

    /// Returns whether a commit has all of the current content.
    pub(super) async fn is_within(&self, commit: &str) -> Result<bool, OperationError> {
        let (_, all) = self.trees().await?;
        let diff = "diff-tree -r --quiet --no-renames --diff-filter=d";
        let ended = self.git().ended(diff, [commit, &all]).await?;
        Ok(ended.exit == ProcessExit::Code(0))
    }

    /// Returns the tree of the staged files, if there is no conflict, and the tree of all files.
    async fn trees(&self) -> Result<(Option<String>, String), OperationError> {
        let (index, own) = (link(&self.tree()).map(|known| known.join("index")), self.index());
        let copied = blocking(self.git.shared, move |_| copy_index(index.as_deref(), &own)).await?;
        copied.map_err(|error| format!("cannot copy its index: {error}"))?;
        let trees = async {
            let git = self.git();
            let staged = git.ended("write-tree", NO_WORDS).await?;
            let staged = (staged.exit == ProcessExit::Code(0)).then(|| staged.stdout.text());
            succeeded("add", git.add("--all --sparse", &[]).await?)?;
            let all = git.text("write-tree", NO_WORDS).await?;
            Ok((staged.map(|tree| tree.trim_end().to_owned()), all))
        };
        let trees = trees.await;
        let _ = std::fs::remove_file(self.index());
        trees
    }

    /// Refuses a repository inside the worktree: git would keep only the name of its commit, not its content.
    async fn refuse_repositories(&self, head_tree: &str, all: &str) -> Result<(), OperationError> {
        let diff = "diff-tree -r --no-renames --diff-filter=d -z";
        let output = self.git().output(diff, [head_tree, all]).await?.stdout.text();
        let mut fields = output.split('\0');
        while let (Some(entry), Some(path)) = (fields.next(), fields.next()) {
            let is_link = entry.split(' ').nth(1) == Some("160000");
            if is_link && self.tree().join(path).join(".git").exists() {
                return Err(format!(
                    "{} contains another repository, which no commit of this one can keep: move it away, or remove it",
                    self.tree().join(path).display()
                )
                .into());
            }
        }
        Ok(())
    }

    async fn commit(
        &self,
        tree: &str,
        parents: &[String],
        what: &str,
    ) -> Result<String, OperationError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        self.git().text("commit-tree", [tree, "-m", what].into_iter().chain(parents)).await
    }

    /// Names a commit by a new ref, unless a ref names the same content; then checks that the ref is there.
    async fn name(
        &self,
        commit: &str,
        tree: &str,
        parents: &[String],
    ) -> Result<String, OperationError> {
        let run = &self.git.shared.place.marker.run;
        let mut number = 0;
        let name = loop {
            let name = backup_ref(run, &self.record.agent, number);
            let Some(other) = self.git().commit(&name).await? else { break name };
            let of = |what: &str| format!("{other}{what}");
            let [other_tree, other_parents] = [
                self.git().text("rev-parse", [of("^{tree}")]).await?,
                self.git().text("rev-parse", [of("^@")]).await?,
            ];
            let is_same = other_tree == tree && other_parents.lines().eq(parents);
            if other == commit || (is_same && !parents.is_empty()) {
                return Ok(name);
            }
            number += 1;
        };
        let none = "0".repeat(commit.len());
        self.git().text("update-ref", [&*name, commit, &none]).await?;
        if self.git().commit(&name).await?.as_deref() == Some(commit) {
            return Ok(name);
        }
        Err(format!("git has not kept {commit} as {name}").into())
    }

    fn git(&self) -> GitCall<'_> {
        let git = self.git.at(&self.tree()).set(SETTINGS).keeping(MAX_GIT_OUTPUT_BYTES);
        // If the worktree has lost its link, git must not use a repository above it.
        let git = git.with(CEILING, self.git.shared.place.working_dirs.trees());
        as_raymond(git).with("GIT_INDEX_FILE", self.index())
    }
}

/// Has git commit in raymond's name: the user may have none.
pub(super) fn as_raymond(git: GitCall<'_>) -> GitCall<'_> {
    ["AUTHOR", "COMMITTER"].iter().fold(git, |git, role| {
        git.with(&format!("GIT_{role}_NAME"), "raymond")
            .with(&format!("GIT_{role}_EMAIL"), "raymond@localhost")
    })
}
