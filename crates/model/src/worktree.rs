//! The worktrees of a run's agents: the names of their branches, and the conditions of their removal.
//!
//! No work may be lost. A worktree is removed only if all its content is also somewhere else: in a commit of another
//! branch or, on request, in a commit that was made to keep it.

use std::collections::BTreeSet;

use serde::Serialize;
use strum::IntoStaticStr;

use super::id::{AgentId, RunId};
use super::run::Run;

/// The namespace of the branches, and of the refs that keep the content of removed worktrees.
const NAMESPACE: &str = "raymond";

/// The warning about worktrees of a repository with submodules.
pub const EMPTY_SUBMODULES: &str = "the repository has submodules, and git leaves them empty in the worktrees of agents: where they are needed, have the prompt begin with `git submodule update --init --recursive`";

/// Returns the branch of an agent's worktree.
///
/// # Errors
/// The reason why git would refuse a branch with the run's name, and the remedy.
pub fn branch(run: &RunId, agent: &AgentId) -> Result<String, String> {
    let id = run.as_str();
    let wrong = if id.contains("..") {
        "contains `..`"
    } else if id.rsplit_once('.').is_some_and(|(_, end)| end == "lock") {
        "ends in `.lock`"
    } else {
        return Ok(format!("{NAMESPACE}/{id}/{}", last(agent)));
    };
    Err(format!(
        "git does not accept the branch {NAMESPACE}/{id}/{agent}, because the run's id {wrong}: choose another --id"
    ))
}

/// Returns the branches beside which git cannot have this one, because it continues their names, each with the reason
/// and the remedy.
pub fn blocking_branches(branch: &str) -> impl Iterator<Item = (&str, String)> {
    branch.match_indices('/').map(|(at, _)| &branch[..at]).map(move |other| {
        (other, format!("the repository has a branch `{other}`, and git cannot have the branch {branch} beside it: rename it with `git branch -m {other} NAME`"))
    })
}

/// Returns the ref that keeps the content of an agent's removed worktree; `number` counts earlier ones. Git
/// must not take the ref for the branch if only the end of a name is given.
pub fn backup_ref(run: &RunId, agent: &AgentId, number: u32) -> String {
    let name = format!("refs/{NAMESPACE}/kept/{run}/{}", last(agent));
    if number == 0 { name } else { format!("{name}-{number}") }
}

/// Returns the ref from which all snapshots of an agent's worktree are reachable.
pub fn snapshot_ref(run: &RunId, agent: &AgentId) -> String {
    format!("{}{}", snapshot_refs(run), last(agent))
}

/// Returns the ref of the last snapshot of an agent's worktree on another host, as it was fetched.
pub fn fetched_snapshot_ref(run: &RunId, agent: &AgentId) -> String {
    format!("refs/{NAMESPACE}/fetched/{run}/{}", last(agent))
}

/// Returns the prefix of the refs of the snapshots of a run's worktrees.
pub fn snapshot_refs(run: &RunId) -> String {
    format!("refs/{NAMESPACE}/snapshots/{run}/")
}

/// Returns an agent as the last part of a branch's name, without `~`.
fn last(agent: &AgentId) -> String {
    agent.file_name().replace('~', "-")
}

/// The state of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(untagged)]
#[strum(serialize_all = "snake_case")]
pub enum WorktreeStatus {
    /// Its creation was not finished, and nobody has worked in it.
    Incomplete,
    /// Its removal was not finished.
    RemovalBegun,
    /// Its directory is gone, for any reason. Its branch may still exist.
    Missing {
        /// The number of commits of its branch that are on no other branch.
        unmerged: u64,
    },
    /// Its directory exists.
    Present {
        /// The number of commits since its base.
        ahead: u64,
        /// The number of its commits that are on no other branch.
        unmerged: u64,
        /// The number of files that differ from its last commit.
        uncommitted: usize,
        /// The reason for the lock, if it is locked.
        locked: Option<String>,
    },
}

/// The reason a worktree stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemovalRefusal {
    /// Somebody works in it.
    #[error("an agent that works in it is still live")]
    Live,
    /// Somebody locked it.
    #[error("it is locked{}; unlock it with `git worktree unlock`", if .0.is_empty() { String::new() } else { format!(" ({})", .0) })]
    Locked(String),
    /// Not everything in it is in a commit.
    #[error("{0} {are} not committed; commit {them}, or have {them} kept with --prune --all", are = if *.0 == 1 { "file is" } else { "files are" }, them = if *.0 == 1 { "it" } else { "them" })]
    Uncommitted(usize),
    /// Not every commit of it is on another branch.
    #[error("{0} {are} on no other branch; merge its branch, or remove only the worktree with --prune --all", are = if *.0 == 1 { "commit is" } else { "commits are" })]
    Unmerged(u64),
    /// Git refuses the removal.
    #[error("{0}")]
    Refused(String),
}

/// Checks whether a worktree may be removed. `live` says that somebody works in it. `all` says that it may also
/// be removed if a commit has to be made to keep its content.
///
/// # Errors
/// The reason it stays.
pub fn check_removable(
    status: &WorktreeStatus,
    live: bool,
    all: bool,
) -> Result<(), RemovalRefusal> {
    if live {
        return Err(RemovalRefusal::Live);
    }
    let (unmerged, uncommitted) = match status {
        WorktreeStatus::Incomplete | WorktreeStatus::RemovalBegun => return Ok(()),
        WorktreeStatus::Missing { unmerged } => (*unmerged, 0),
        WorktreeStatus::Present { locked: Some(why), .. } => {
            return Err(RemovalRefusal::Locked(why.clone()));
        }
        WorktreeStatus::Present { unmerged, uncommitted, .. } => (*unmerged, *uncommitted),
    };
    if uncommitted > 0 && !all {
        return Err(RemovalRefusal::Uncommitted(uncommitted));
    }
    if unmerged > 0 && !all {
        return Err(RemovalRefusal::Unmerged(unmerged));
    }
    Ok(())
}

/// Returns the ended agents in whose worktrees nobody works any more.
pub fn unused_worktrees(run: &Run) -> BTreeSet<&AgentId> {
    let mut ended: BTreeSet<&AgentId> = run.finished.iter().map(|agent| &agent.id).collect();
    for agent in run.agents.values() {
        ended.remove(&agent.id);
        if let Some(tree) = &agent.spec.working_dir.tree {
            ended.remove(tree);
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentOptions;
    use crate::agents::LiveAgents;
    use crate::apply::begin;
    use crate::event::{Event, Record, RunStarted};
    use crate::id::{SessionId, StateName};
    use crate::money::Usd;
    use crate::run::{AgentEnding, FinishedAgent};
    use crate::settings::Settings;
    use crate::time::Timestamp;
    use crate::transition::Variables;

    fn there(unmerged: u64, uncommitted: usize) -> WorktreeStatus {
        WorktreeStatus::Present { ahead: unmerged, unmerged, uncommitted, locked: None }
    }

    #[test]
    fn idle_worktree_is_removable_if_clean_and_merged_or_all_is_set() {
        let clean = there(0, 0);
        assert_eq!(check_removable(&clean, false, false), Ok(()));
        assert_eq!(check_removable(&WorktreeStatus::Missing { unmerged: 0 }, false, false), Ok(()));
        assert_eq!(check_removable(&WorktreeStatus::Incomplete, false, false), Ok(()));
        for condition in [&clean, &WorktreeStatus::Incomplete, &WorktreeStatus::RemovalBegun] {
            assert_eq!(check_removable(condition, true, true), Err(RemovalRefusal::Live));
        }
        assert_eq!(
            check_removable(&there(2, 3), false, false),
            Err(RemovalRefusal::Uncommitted(3))
        );
        assert_eq!(check_removable(&there(2, 0), false, false), Err(RemovalRefusal::Unmerged(2)));
        assert_eq!(
            check_removable(&WorktreeStatus::Missing { unmerged: 1 }, false, false),
            Err(RemovalRefusal::Unmerged(1))
        );
        assert_eq!(check_removable(&there(2, 3), false, true), Ok(()));
        assert_eq!(check_removable(&there(0, 3), false, true), Ok(()));
    }

    #[test]
    fn locked_worktree_is_never_removable() {
        let locked = WorktreeStatus::Present {
            ahead: 0,
            unmerged: 0,
            uncommitted: 0,
            locked: Some("on a stick".into()),
        };
        let stay = check_removable(&locked, false, true).expect_err("it stays");
        assert_eq!(
            stay.to_string(),
            "it is locked (on a stick); unlock it with `git worktree unlock`"
        );
    }

    #[test]
    fn removal_refusal_states_reason_and_remedy() {
        assert_eq!(
            RemovalRefusal::Uncommitted(1).to_string(),
            "1 file is not committed; commit it, or have it kept with --prune --all"
        );
        assert_eq!(
            RemovalRefusal::Unmerged(2).to_string(),
            "2 commits are on no other branch; merge its branch, or remove only the worktree with --prune --all"
        );
    }

    fn run(id: &str) -> RunId {
        RunId::parse(id).expect("an id")
    }

    #[test]
    fn worktree_without_live_agents_is_unused() {
        let started = RunStarted {
            workflow_id: run("r"),
            scope_dir: "w".into(),
            folder: None,
            entry: StateName::parse("A.md").expect("a state"),
            session: SessionId::new("s"),
            definition: None,
            variables: Variables::new(),
            options: AgentOptions { worktree: true, ..AgentOptions::default() },
            settings: Settings::default(),
        };
        let event = Event::RunStarted(Box::new(started));
        let (mut run, _) = begin(&Record {
            kept_session: None,
            seq: 1,
            at: Timestamp(1),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        })
        .expect("it begins");
        assert!(unused_worktrees(&run).is_empty());
        let ended = |id: AgentId| FinishedAgent {
            id,
            state: None,
            folder: None,
            failed_in: None,
            failed_folder: None,
            ending: AgentEnding::Result(String::new()),
            structured: false,
            cause: None,
            cost_usd: Usd::ZERO,
            unbilled_turn: None,
            variables: None,
            parent_notified: false,
            untold: Vec::new(),
            retryable: None,
        };
        let (main, other) = (AgentId::main(), AgentId::main().child(1));
        run.finished = vec![ended(main.clone()), ended(other.clone())];
        assert_eq!(unused_worktrees(&run), [&other].into(), "somebody lives in that of the first");
        run.agents = LiveAgents::default();
        assert_eq!(unused_worktrees(&run), [&main, &other].into());
    }

    #[test]
    fn branch_name_is_built_from_run_and_agent_id() {
        let agent = AgentId::main().child(2);
        assert_eq!(branch(&run("tour-1.x"), &agent), Ok("raymond/tour-1.x/main.2".to_owned()));
        let far = (0..200).fold(AgentId::main(), |agent, _| agent.child(1));
        let name = branch(&run("r"), &far).expect("a branch");
        assert!(!name.contains('~') && name.len() < 120, "{name}");
        for (id, wrong) in [("a..b", "contains `..`"), ("a.lock", "ends in `.lock`")] {
            let why = branch(&run(id), &agent).expect_err("refused");
            assert!(why.contains(wrong) && why.ends_with("choose another --id"), "{why}");
        }
    }

    #[test]
    fn blocking_branch_is_named_with_remedy() {
        let all: Vec<(&str, String)> = blocking_branches("raymond/x/main.1").collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["raymond", "raymond/x"]);
        for (name, why) in all {
            assert!(
                why.starts_with(&format!("the repository has a branch `{name}`, and")),
                "{why}"
            );
            assert!(why.ends_with(&format!("rename it with `git branch -m {name} NAME`")), "{why}");
        }
    }

    #[test]
    fn refs_of_a_run_have_its_prefix() {
        let name = snapshot_ref(&run("r"), &AgentId::main().child(2));
        assert_eq!(name, "refs/raymond/snapshots/r/main.2");
        assert!(name.starts_with(&snapshot_refs(&run("r"))));
    }

    #[test]
    fn repeated_backup_gets_numbered_ref() {
        let keeping = |number| backup_ref(&run("r"), &AgentId::main(), number);
        assert_eq!(keeping(0), "refs/raymond/kept/r/main");
        assert_eq!(keeping(2), "refs/raymond/kept/r/main-2");
    }
}
