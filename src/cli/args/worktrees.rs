//! The arguments of `worktrees`, and their help.

use clap::Args;

use super::OneRunArgs;

pub(super) const WORKTREES_HELP: &str = "Examples:
  raymond worktrees RUN                  each worktree: agent, changes, whether it is merged
  raymond worktrees RUN --prune          remove clean and merged worktrees of ended agents
  raymond worktrees RUN --prune --all    remove all worktrees of ended agents; their work is kept
  raymond worktrees RUN --json | jq -r '.worktrees[] | select(.merged | not) | .branch'

An agent that begins in a state with `worktree: true` works on the branch raymond/RUN/AGENT, in
.raymond/worktrees/RUN/AGENT. Merge a branch like any other: git merge raymond/RUN/main.1

--prune removes a worktree and its branch if everything is committed and another branch or the run's working
directory has the commits; ignored files are removed with it. With --all, uncommitted changes first become a
commit under refs/raymond/kept/RUN/AGENT, and unmerged branches stay: `git show REF` shows the commit, and
`git worktree add DIR BRANCH` restores a branch. Locked worktrees, and those of live agents, always stay.

--json prints { run, worktrees }; one has agent, live, branch, directory, base, head, condition
(present, missing, incomplete or removal_begun), and if known ahead, unmerged, uncommitted, merged, merged_into,
locked, error. With --prune one has agent, branch, directory, removed, kept (a ref, or null), branch_kept,
why (it was kept).";

/// Options of `worktrees`.
#[derive(Debug, Clone, Args)]
pub struct WorktreesArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Remove clean and merged worktrees of ended agents
    #[arg(long)]
    pub prune: bool,
    /// Remove all worktrees of ended agents; uncommitted work is kept as a commit, unmerged work as a branch
    #[arg(long, requires = "prune")]
    pub all: bool,
}
