//! The arguments of `clean` and `man`, and their help.
//!
//! The arguments of `worktrees`, and their help.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::args::{DirArgs, OneRunArgs};
use crate::cli::candidates::complete_runs;
use crate::domain::id::RunId;
use crate::domain::time::millis;

/// The milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;

pub(super) const CLEAN_HELP: &str = "Examples:
  raymond clean --older-than 7d --dry-run
                                         show the runs that ended more than a week ago, and their size
  raymond clean --older-than 7d          remove them, after asking
  raymond clean RUN --yes                remove one run without asking

Removes only runs that have ended: the run's directory and its seal. A run stays if it has worktrees, which
`raymond worktrees RUN --prune` removes, or if some of its processes are left. The age of a run counts from its last
event. A run that is selected by age also stays if its directory does not prove that it has ended.

--json prints { dry_run, bytes, removed, kept }: a removed run has run, status and bytes, a kept one run and why.";

pub(super) const MAN_HELP: &str = "Examples:
  raymond man ~/.local/share/man/man1    then: man raymond-run
  raymond man pages && man pages/raymond.1";

/// Options of `clean`.
#[derive(Debug, Clone, Args)]
pub struct CleanArgs {
    /// The runs to remove: ids, or the beginnings of ids
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub runs: Vec<RunId>,
    /// Only runs that ended longer ago than this: 12h, 7d, 4w
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Option<u64>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove without asking
    #[arg(long, short)]
    pub yes: bool,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The directory to write the pages to; created if missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Reads an age as milliseconds: a duration, also in days and weeks.
fn age(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let days = text.strip_suffix('d').map(|days| (days, 1));
    let weeks = || text.strip_suffix('w').map(|weeks| (weeks, 7));
    let Some((number, days)) = days.or_else(weeks) else {
        let read = (!text.ends_with(|c: char| c.is_ascii_digit())).then(|| millis(text).ok());
        return read.flatten().ok_or_else(|| wrong(text));
    };
    let number = number.trim().parse::<u64>().map_err(|_| wrong(text))?;
    Ok(number.saturating_mul(days * DAY))
}

fn wrong(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
        return format!("`{text}` has no unit; write {text}d for days (s, m, h, d or w)");
    }
    format!("`{text}` is not an age; write a number with s, m, h, d or w, such as 12h, 7d or 4w")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_parsed_with_days_and_weeks() {
        let ages = ["90s", "12h", "7d", "2w", "0d"].map(age);
        let expected = [90_000, 43_200_000, 7 * DAY, 14 * DAY, 0].map(Ok);
        assert_eq!(ages, expected);
        for bad in ["7", "d", "-1d", "1.5w", "week", ""] {
            assert!(age(bad).is_err(), "{bad:?}");
        }
        assert!(age("7").is_err_and(|text| text.contains("write 7d for days")));
    }
}
