//! The arguments of `worktrees`, and their help.

use clap::Args;

use super::OneRunArgs;

pub(super) const WORKTREES_HELP: &str = "Examples:
  raymond worktrees RUN                  each worktree: whose it is, what it holds, whether it is merged
  raymond worktrees RUN --prune          remove those of ended agents that are clean and merged
  raymond worktrees RUN --prune --all    the others of ended agents too; their work is kept
  raymond worktrees RUN --json | jq -r '.worktrees[] | select(.merged | not) | .branch'

An agent that is born in a state with `worktree: true` works on the branch raymond/RUN/AGENT, in
.raymond/worktrees/RUN/AGENT. Merge a branch as any other: git merge raymond/RUN/main.1

--prune takes a worktree with its branch when all is committed and another branch has the commits, or where
the run works has them; what git ignores goes with it. With --all, what is not committed becomes a commit
under refs/raymond/kept/RUN/AGENT first, and a branch that is not merged stays: `git show REF` shows the one, and
`git worktree add DIR BRANCH` brings the other back. A worktree that is locked, or in which an agent is not
at its end, always stays.

--json prints { workflow_id, worktrees }; one has agent, live, branch, directory, base, head, condition
(there, gone, begun or going), and where they are known ahead, unmerged, uncommitted, merged, merged_into,
locked, error. With --prune one has agent, branch, directory, removed, kept (a ref, or null), branch_kept,
why (it stays).";

/// Options of `worktrees`.
#[derive(Debug, Clone, Args)]
pub struct WorktreesArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// Remove those of ended agents that are clean and merged
    #[arg(long)]
    pub prune: bool,
    /// Remove all of ended agents: what is not committed is kept as a commit, what is not merged as a branch
    #[arg(long, requires = "prune")]
    pub all: bool,
}
