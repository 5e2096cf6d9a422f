//! `raymond worktrees`: the git worktrees of a run's agents, and the removal of unused ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use super::exit::{CliExitCode, Error};
use super::{output, settings, table};
use crate::cli::args::readers::WorktreesArgs;
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::domain::tool_call::printable_block;
use crate::domain::worktree::{RemovalRefusal, WorktreeStatus, unused_worktrees};
use crate::domain::worktree_snapshot::SnapshotOutcome;
use crate::process::working_dirs::WorktreeRecord;
use crate::runtime::graphs::{working_dirs, world_of};
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view};
use crate::world::outcome::OperationError;
use crate::world::perform::WorkspaceExecutor;
use crate::world::worktrees::{RemovedWorktree, WorktreeInspection};

/// Runs `raymond worktrees`.
///
/// # Errors
/// [`Error`] if the run or its repository cannot be read.
pub fn worktrees(args: &WorktreesArgs) -> Result<CliExitCode, Error> {
    let root = args.target.dir.real_root()?;
    let id = settings::chosen(&args.target.named, &root)?;
    let view = load_view(&root, &id)?;
    let runtime = git_runtime(&root, &id)?;
    let worktrees = RunWorktrees {
        world: world_of(&root, &id, &view.run.settings),
        unused: unused_worktrees(&view.run),
        view: &view,
        args,
    };
    runtime.block_on(async {
        if args.prune { worktrees.prune().await } else { worktrees.list().await }
    })
}

/// Returns the note about left worktrees for the end of a run; `None` if there are none.
pub fn left(root: &RunsRoot, run: &Run) -> Option<String> {
    let id = &run.workflow_id;
    let left = working_dirs(root, id, &run.settings).count();
    let (trees, them) = match left {
        0 => return None,
        1 => ("a worktree is".to_owned(), "it"),
        many => (format!("{many} worktrees are"), "them"),
    };
    Some(format!("{trees} left of the run; `raymond worktrees {id}` shows what is in {them}"))
}

/// Returns a runtime for the processes of git.
pub(super) fn git_runtime(root: &RunsRoot, id: &RunId) -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::io("look at the worktrees of", root.run(id).path()))
}

/// The worktrees of a run.
struct RunWorktrees<'run> {
    world: WorkspaceExecutor,
    /// The agents whose worktrees are unused.
    unused: BTreeSet<&'run AgentId>,
    view: &'run RunView,
    args: &'run WorktreesArgs,
}

/// A worktree, and the outcome of its removal.
struct PrunedWorktree {
    record: WorktreeRecord,
    outcome: Result<RemovedWorktree, RemovalRefusal>,
}

/// A worktree for programs.
#[derive(Serialize)]
struct WorktreeDocument<'seen> {
    agent: &'seen AgentId,
    live: bool,
    branch: &'seen str,
    directory: PathBuf,
    base: &'seen str,
    snapshot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'seen String>,
    #[serde(flatten)]
    inspection: Option<InspectionView<'seen>>,
}

/// What was seen of a worktree.
#[derive(Serialize)]
struct InspectionView<'seen> {
    head: Option<&'seen str>,
    #[serde(flatten)]
    numbers: &'seen WorktreeStatus,
    condition: &'static str,
    #[serde(flatten)]
    merge: Option<MergeView<'seen>>,
}

/// Where the commits of a worktree's branch are.
#[derive(Serialize)]
struct MergeView<'seen> {
    merged: bool,
    merged_into: Option<&'seen str>,
}

/// The removal of a worktree for programs.
#[derive(Serialize)]
struct RemovalRow<'seen> {
    agent: &'seen AgentId,
    branch: &'seen str,
    directory: PathBuf,
    removed: bool,
    kept: Option<&'seen String>,
    branch_kept: bool,
    why: Option<String>,
}

impl<'seen> InspectionView<'seen> {
    fn of(seen: &'seen WorktreeInspection) -> Self {
        let WorktreeInspection { condition, head, merged_into, .. } = seen;
        let has_branch =
            matches!(condition, WorktreeStatus::Missing { .. } | WorktreeStatus::Present { .. });
        Self {
            head: head.as_deref(),
            numbers: condition,
            condition: condition.into(),
            merge: has_branch.then(|| MergeView {
                merged: merged_into.is_some(),
                merged_into: merged_into.as_deref(),
            }),
        }
    }
}

impl RunWorktrees<'_> {
    fn is_live(&self, agent: &AgentId) -> bool {
        !self.unused.contains(agent)
    }

    fn directory(&self, agent: &AgentId) -> PathBuf {
        self.world.working_dirs().tree(agent)
    }

    async fn list(&self) -> Result<CliExitCode, Error> {
        let trees = done(self.world.trees().await)?;
        let exit = if trees.iter().all(|(_, seen)| seen.is_ok()) {
            CliExitCode::Success
        } else {
            CliExitCode::Io
        };
        if self.args.target.json {
            let worktrees = trees.iter().map(|(record, seen)| self.document(record, seen));
            self.print_json(worktrees.collect::<Vec<_>>())?;
            return Ok(exit);
        }
        if trees.is_empty() {
            self.tell_of_none();
            return Ok(exit);
        }
        let head = ["agent", "", "branch", "ahead", "uncommitted", "merged", "directory"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(trees.iter().map(|(record, seen)| self.row(record, seen)));
        output::print(&table::text(&rows))?;
        for (record, seen) in &trees {
            if let Err(why) = seen {
                output::warn(&format!("{}: {why}", record.agent));
            }
        }
        if trees.iter().any(|(record, _)| !self.is_live(&record.agent)) {
            let id = &self.view.run.workflow_id;
            output::tell(&format!(
                "`raymond worktrees {id} --prune` removes those of ended agents that are clean and merged"
            ));
        }
        Ok(exit)
    }

    async fn prune(&self) -> Result<CliExitCode, Error> {
        let records = self.world.working_dirs().records().map_err(Error::Worktrees)?;
        let mut pruned = Vec::new();
        for record in records {
            let live = self.is_live(&record.agent);
            let removal = self.world.remove_tree(&record.agent, live, self.args.all).await;
            let outcome = match done(removal) {
                Ok(outcome) => outcome,
                Err(error) => Err(RemovalRefusal::Refused(error.to_string())),
            };
            let worktree = PrunedWorktree { record, outcome };
            if !self.args.target.json {
                output::print(&format!("{}\n", printable_block(&self.sentence(&worktree))))?;
            }
            pruned.push(worktree);
        }
        if self.args.target.json {
            self.print_json(
                pruned.iter().map(|worktree| self.removal(worktree)).collect::<Vec<_>>(),
            )?;
        } else if pruned.is_empty() {
            self.tell_of_none();
        }
        let refused =
            |pruned: &PrunedWorktree| matches!(pruned.outcome, Err(RemovalRefusal::Refused(_)));
        Ok(if pruned.iter().any(refused) { CliExitCode::Io } else { CliExitCode::Success })
    }

    fn tell_of_none(&self) {
        let id = &self.view.run.workflow_id;
        let why = if self.args.prune {
            ", so there is nothing to remove"
        } else {
            " now; an agent gets one if the state it starts in says `worktree: true`"
        };
        output::tell(&format!(
            "{id} has no worktrees{why}. Work kept from removed worktrees: git for-each-ref refs/raymond/kept/{id} refs/heads/raymond/{id}"
        ));
    }

    fn row(
        &self,
        record: &WorktreeRecord,
        seen: &Result<WorktreeInspection, String>,
    ) -> Vec<String> {
        let mut row = vec![
            record.agent.to_string(),
            if self.is_live(&record.agent) { "live" } else { "ended" }.to_owned(),
            record.branch.clone(),
        ];
        let merged = |sight: &WorktreeInspection| match &sight.merged_into {
            Some(into) => format!("in {}", short(into)),
            None => "no".to_owned(),
        };
        let cells = match seen {
            Err(_) => ["?", "?", "?"].map(str::to_owned),
            Ok(sight) => match &sight.condition {
                WorktreeStatus::Incomplete => ["", "not finished", ""].map(str::to_owned),
                WorktreeStatus::RemovalBegun => ["", "half removed", ""].map(str::to_owned),
                WorktreeStatus::Missing { .. } => {
                    [String::new(), "removed".to_owned(), merged(sight)]
                }
                WorktreeStatus::Present { ahead, uncommitted, .. } => {
                    [ahead.to_string(), uncommitted.to_string(), merged(sight)]
                }
            },
        };
        row.extend(cells);
        let mut place = below_here(&self.directory(&record.agent));
        if let Ok(WorktreeInspection {
            condition: WorktreeStatus::Present { locked: Some(why), .. },
            ..
        }) = seen
        {
            let _ = write!(place, "  locked{}{why}", if why.is_empty() { "" } else { ": " });
        }
        row.push(place);
        row
    }

    fn document<'seen>(
        &self,
        record: &'seen WorktreeRecord,
        seen: &'seen Result<WorktreeInspection, String>,
    ) -> WorktreeDocument<'seen> {
        let snapshot = self.view.run.worktrees.get(&record.agent).and_then(SnapshotOutcome::taken);
        WorktreeDocument {
            agent: &record.agent,
            live: self.is_live(&record.agent),
            branch: &record.branch,
            directory: self.directory(&record.agent),
            base: &record.base,
            snapshot: snapshot.map(|taken| taken.commit.clone()),
            error: seen.as_ref().err(),
            inspection: seen.as_ref().ok().map(InspectionView::of),
        }
    }

    fn removal<'seen>(&self, pruned: &'seen PrunedWorktree) -> RemovalRow<'seen> {
        let PrunedWorktree { record, outcome } = pruned;
        let removed = outcome.as_ref().ok();
        RemovalRow {
            agent: &record.agent,
            branch: &record.branch,
            directory: self.directory(&record.agent),
            removed: removed.is_some(),
            kept: removed.and_then(|removed| removed.kept.as_ref()),
            branch_kept: removed.is_none_or(|removed| removed.branch.is_some()),
            why: outcome.as_ref().err().map(ToString::to_string),
        }
    }

    /// Formats the outcome of a worktree's removal as a line.
    fn sentence(&self, PrunedWorktree { record, outcome }: &PrunedWorktree) -> String {
        let agent = &record.agent;
        let place = below_here(&self.directory(agent));
        match outcome {
            Err(stay) => format!("{agent} stays: {stay} ({place})\n"),
            Ok(RemovedWorktree { kept, branch }) => {
                let kept = kept
                    .as_ref()
                    .map(|name| format!("; what was not committed is kept: git show {name}"));
                let branch = match branch {
                    Some(branch) => format!("; its branch {branch} is kept"),
                    None => format!(" with its branch {}", record.branch),
                };
                format!("{agent} removed{branch}{}\n", kept.unwrap_or_default())
            }
        }
    }

    fn print_json(&self, worktrees: impl Serialize) -> Result<CliExitCode, Error> {
        let id = &self.view.run.workflow_id;
        output::print_json(&json!({ "run": id, "worktrees": worktrees }))
    }
}

/// Returns what was done, or the error of it.
pub(super) fn done<T>(inspection: Result<T, OperationError>) -> Result<T, Error> {
    inspection.map_err(|error| Error::Worktrees(error.to_string()))
}

/// Returns a branch's name as git shows it.
fn short(name: &str) -> &str {
    let local = name.strip_prefix("refs/heads/");
    local.or_else(|| name.strip_prefix("refs/remotes/")).unwrap_or(name)
}

/// Returns a path relative to the current directory, if it is below it.
fn below_here(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}
