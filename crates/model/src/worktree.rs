//! The worktrees of a run's agents: the names of their branches, and the conditions of their removal.
//!
//! No work may be lost. A worktree is removed only if all its content is also somewhere else: in a commit of another
//! branch or, on request, in a commit that was made to keep it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::id::{AgentId, Folder, RunId};
use super::run::Run;
use crate::host::Home;

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

/// Returns the branches beside which git cannot have this one, because it continues their names, each with the reason and
/// the remedy.
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

// Snapshots of worktrees: the files of a worktree at the end of a step, as a separate commit.
//
// A run that branches off after the step restores them. All snapshots of a worktree are reachable from one ref, each
// from the one after it.

/// The largest file that a snapshot includes, in bytes.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The most bytes of changed files that a snapshot includes.
pub const MAX_CHANGED_BYTES: u64 = 256 * 1024 * 1024;

/// The number of left out files that are named.
const NAMED_FILES: usize = 20;

/// A snapshot of a worktree, or the failure to make one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeSnapshot {
    /// The agent that the worktree belongs to.
    pub tree: AgentId,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: SnapshotOutcome,
}

/// The outcome of making a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotOutcome {
    /// The snapshot.
    Taken(SnapshotCommit),
    /// The reason why there is none.
    Failed(String),
}

/// The commit of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotCommit {
    /// The commit with all files, whether they were committed or not.
    pub commit: String,
    /// The commit that the worktree was at.
    pub head: String,
    /// The files that are not in it, or not as they were, because they are too large or in a repository of their own;
    /// of many, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl SnapshotOutcome {
    /// Returns the commit, if there is one.
    pub fn taken(&self) -> Option<&SnapshotCommit> {
        match self {
            Self::Taken(commit) => Some(commit),
            Self::Failed(_) => None,
        }
    }
}

/// The files that have changed since the last snapshot, sorted by whether a snapshot includes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// The paths of the files that it leaves out.
    pub left_out: Vec<String>,
    /// The number of files that it includes.
    count: usize,
    /// The number of their bytes.
    bytes: u64,
}

impl ChangedFiles {
    /// Adds a file, and returns whether a snapshot includes it. The path of a repository inside the worktree ends in a
    /// slash. A file that was removed has no bytes.
    pub fn add(&mut self, path: &str, bytes: u64) -> bool {
        if bytes > MAX_FILE_BYTES || path.ends_with('/') {
            self.left_out.push(path.to_owned());
            return false;
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        true
    }

    /// Checks that a snapshot can include so many bytes.
    ///
    /// # Errors
    /// There are too many.
    pub fn check(&self) -> Result<(), String> {
        if self.bytes <= MAX_CHANGED_BYTES {
            return Ok(());
        }
        Err(format!(
            "{} changed files have {} bytes, and a snapshot takes up {MAX_CHANGED_BYTES}: have git ignore those that are not work, or set `snapshots: false`",
            self.count, self.bytes
        ))
    }

    /// Returns the names of the left out files for the record.
    pub fn named(&self) -> Vec<String> {
        self.left_out.iter().take(NAMED_FILES).cloned().collect()
    }
}

// The working directory of an agent: the run's own directory, one below it, or a worktree.
//
// Claude Code finds a session only from the directory it was made in, so an agent keeps one working directory for its
// whole life, in all its states. An agent that starts in a state with `worktree: true` gets its own git worktree.
// Agents that it forks live in it too, unless they get their own worktrees.

/// The directory an agent's turns run in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkingDir {
    /// The agent that owns the worktree; `None` for the run's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<AgentId>,
    /// No snapshots of the worktree are made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsnapshotted: bool,
    /// The host that has the directory.
    #[serde(default, skip_serializing_if = "Home::is_here")]
    pub home: Home,
    /// The directory below the worktree or the run's directory; `None` for that directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
}

impl WorkingDir {
    /// Returns whether it is the run's own directory.
    pub fn is_usual(&self) -> bool {
        self.tree.is_none() && self.cwd.is_none()
    }

    /// Returns the same directory for another agent, which gets its own host: it may need a host with a label.
    pub fn without_home(&self) -> Self {
        Self { home: Home::default(), ..self.clone() }
    }

    /// Returns a directory below this one, or this one for `None`.
    pub fn below(&self, directory: Option<&Folder>) -> Self {
        let cwd = match (&self.cwd, directory) {
            (Some(own), Some(below)) => Some(own.join(below)),
            (own, below) => below.or(own.as_ref()).cloned(),
        };
        Self { cwd, ..self.clone() }
    }

    /// Returns the agent that owns the worktree, if the worktree has snapshots.
    pub fn snapshot_tree(&self) -> Option<&AgentId> {
        self.tree.as_ref().filter(|_| !self.unsnapshotted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentOptions;
    use crate::apply::begin;
    use crate::event::{Event, Record, RunStarted};
    use crate::id::{SessionId, StateName};
    use crate::money::Usd;
    use crate::run::{AgentEnding, FinishedAgent, LiveAgents};
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

#[cfg(test)]
mod worktree_snapshot_tests {
    use super::*;

    #[test]
    fn large_files_and_repositories_are_left_out() {
        let mut changed = ChangedFiles::default();
        assert!(changed.add("a", MAX_FILE_BYTES) && changed.add("gone", 0));
        assert!(!changed.add("big", MAX_FILE_BYTES + 1) && !changed.add("vendor/x/", 0));
        assert_eq!(
            (changed.count, &*changed.named()),
            (2, &["big".into(), "vendor/x/".into()][..])
        );
        assert_eq!(changed.check(), Ok(()));
        assert!((0..16).all(|_| changed.add("b", MAX_FILE_BYTES)));
        let why = changed.check().expect_err("too many bytes");
        assert!(
            why.starts_with("18 changed files have") && why.contains("snapshots: false"),
            "{why}"
        );
        assert!((0..30).all(|_| !changed.add("c", u64::MAX)));
        assert_eq!(changed.named().len(), NAMED_FILES);
    }

    #[test]
    fn outcomes_are_written_under_a_key_each() {
        let written = |outcome| {
            let snapshot = WorktreeSnapshot { tree: AgentId::main(), outcome };
            let text = serde_json::to_string(&snapshot).expect("JSON");
            assert_eq!(serde_json::from_str::<WorktreeSnapshot>(&text).expect("read"), snapshot);
            text
        };
        let commit = SnapshotCommit { commit: "1".into(), head: "0".into(), left_out: Vec::new() };
        assert_eq!(
            written(SnapshotOutcome::Taken(commit)),
            r#"{"tree":"main","taken":{"commit":"1","head":"0"}}"#
        );
        let failed = SnapshotOutcome::Failed("no disk".into());
        assert_eq!(failed.taken(), None);
        assert_eq!(written(failed), r#"{"tree":"main","failed":"no disk"}"#);
    }
}

#[cfg(test)]
mod working_dir_tests {
    use super::*;

    #[test]
    fn relative_folder_is_appended_to_working_dir() {
        let folder = |text: &str| Folder::parse(text).expect("a folder");
        let working_dir = WorkingDir {
            tree: Some(AgentId::main()),
            unsnapshotted: true,
            home: Home::default(),
            cwd: Some(folder("a")),
        };
        assert_eq!(working_dir.below(None), working_dir);
        let below = working_dir.below(Some(&folder("b/c")));
        assert_eq!(below.cwd, Some(folder("a/b/c")));
        assert_eq!((&below.tree, below.snapshot_tree()), (&working_dir.tree, None));
        assert_eq!(WorkingDir::default().below(Some(&folder("b"))).cwd, Some(folder("b")));
        assert!(WorkingDir::default().is_usual() && !working_dir.is_usual());
    }
}
