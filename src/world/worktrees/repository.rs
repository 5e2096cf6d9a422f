//! The repository that a run works in, and the reasons why there may be none.

use std::path::{Path, PathBuf};

use crate::domain::worktree::blocking_branches;
use crate::process::child::group::ProcessExit;
use crate::world::git::{Git, NO_WORDS, succeeded};
use crate::world::outcome::OperationError;

/// The command that asks git about a repository; each answer is a line.
const QUESTIONS: &str = "\
    rev-parse --is-bare-repository --is-inside-work-tree --path-format=absolute --git-common-dir \
    --show-prefix";

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::world) struct GitRepository {
    /// The directory it was found from.
    pub(in crate::world) at: PathBuf,
    /// The directory that all its worktrees share.
    pub(in crate::world) common: PathBuf,
    /// The path of that directory below its top; empty at the top.
    pub(in crate::world) prefix: String,
}

impl GitRepository {
    /// Returns the repository that a directory is in.
    pub(in crate::world) async fn of(git: Git<'_>, at: &Path) -> Result<Self, OperationError> {
        let (shown, ended) = (at.display(), git.at(at).ended(QUESTIONS, NO_WORDS).await?);
        if ended.exit != ProcessExit::Code(0)
            && ended.stderr.text().contains("not a git repository")
        {
            return Err(format!(
                "{shown} is not in a git repository: create one with `git init`, or run elsewhere with --cwd"
            )
            .into());
        }
        let output = succeeded(QUESTIONS, ended)?.stdout.text();
        let mut lines = output.lines();
        let mut next = || lines.next().unwrap_or_default();
        let (bare, inside, common, prefix) = (next(), next(), next(), next());
        if inside != "true" {
            let what =
                if bare == "true" { "is a bare repository" } else { "belongs to git itself" };
            return Err(
                format!("{shown} {what}: run in a clone or a worktree of it, with --cwd").into()
            );
        }
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(Self { at: at.to_owned(), common: PathBuf::from(common), prefix })
    }

    /// Returns why git cannot make worktrees in it, if it cannot: another branch is in the way of the one that is needed,
    /// or a setting of its main worktree counts for each of them, so that git would work elsewhere.
    pub(in crate::world) async fn obstacle(
        &self,
        git: Git<'_>,
        branch: &str,
    ) -> Result<Option<String>, OperationError> {
        for (other, why) in blocking_branches(branch) {
            if git.at(&self.at).commit(&format!("refs/heads/{other}")).await?.is_some() {
                return Ok(Some(why));
            }
        }
        let config = self.common.join("config").display().to_string();
        let keys = r"^(core\.worktree|extensions\.worktreeconfig)$";
        let words = [&config, "--type=bool-or-str", "--get-regexp", keys];
        let found = git.at(&self.at).ended("config --file", words).await?;
        let is_set = |key: &str| found.stdout.text().lines().any(|line| line.starts_with(key));
        let is_elsewhere = is_set("core.worktree ") && is_set("extensions.worktreeconfig true");
        Ok(is_elsewhere.then(|| {
            format!(
                "git would work elsewhere in it, because {config} has `extensions.worktreeConfig`, so that its `core.worktree` counts for each worktree: run `git config --worktree core.worktree DIR` and `git config --file {config} --unset core.worktree`, or unset the extension"
            )
        }))
    }

    /// Returns the commit it is at.
    pub(in crate::world) async fn head(&self, git: Git<'_>) -> Result<String, OperationError> {
        let none = || {
            let at = self.at.display();
            format!(
                "the repository of {at} has no commit yet to start a worktree from: make one with `git commit`"
            )
        };
        Ok(git.at(&self.at).commit("HEAD").await?.ok_or_else(none)?)
    }
}
