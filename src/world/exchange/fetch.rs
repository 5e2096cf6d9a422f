//! Fetches the branches of a run before an agent begins something.

use std::collections::BTreeMap;
use std::time::Instant;

use super::remote::ExchangeRemote;
use crate::domain::exchange_branches::{run_branches, work_branch};
use crate::domain::id::AgentId;
use crate::domain::worktree::{fetched_snapshot_ref, snapshot_ref};
use crate::world::git::{Git, is_object};
use crate::world::outcome::{InspectionOutcome, OperationError};
use crate::world::perform::WorkspaceExecutor;

/// The name under which git fetches.
const STEM: &str = "exchange.fetch";

impl WorkspaceExecutor {
    /// Fetches the branches of the run for an agent in this worktree, or in the run's own directory. Returns what people
    /// should know: that a worktree has to be made again. A run without an exchange has nothing to fetch.
    pub async fn fetch_work(&self, tree: Option<&AgentId>) -> InspectionOutcome<Option<String>> {
        let Some(copy) = self.0.place.working_dirs.exchange() else {
            return InspectionOutcome::Done(Ok(None));
        };
        let remote = ExchangeRemote { git: Git { shared: &self.0, stem: STEM }, copy };
        let fetched = async {
            let asked = Instant::now();
            let _lock = self.0.lock_path(&copy.control()).await?;
            // Many agents begin at once, and what one of them has fetched since is enough.
            if !self.0.has_fetched_since(asked) {
                let began = Instant::now();
                remote.fetch_branches().await?;
                remote.adopt_branches().await?;
                self.0.note_fetch(began);
            }
            match tree {
                Some(agent) => remote.lost_work(agent).await,
                None => remote.follow_trunk().await.map(|()| None),
            }
        };
        let address = &copy.exchange.address;
        let described = |why: &str| format!("cannot fetch from the exchange {address}: {why}");
        fetched.await.map_err(|error| error.described(described)).into()
    }
}

impl ExchangeRemote<'_> {
    /// Fetches the branches of the run.
    pub(super) async fn fetch_branches(&self) -> Result<(), OperationError> {
        let of_run = run_branches(&self.git.shared.place.marker.run)?;
        let branches = format!("+refs/heads/{of_run}*:refs/remotes/{of_run}*");
        self.fetch(&[&branches]).await
    }

    /// Gives the repository that agents work in the branches that were fetched: `git merge raymond/RUN/AGENT` finds them.
    async fn adopt_branches(&self) -> Result<(), OperationError> {
        let of_run = run_branches(&self.git.shared.place.marker.run)?;
        let prefix = format!("refs/remotes/{of_run}");
        let words = ["--format=%(objectname) %(refname)", &prefix];
        let repository = self.repository();
        let fetched = self.control().text("for-each-ref", words).await?;
        let known = repository.text("for-each-ref", words).await?;
        let (fetched, known) = (refs(&fetched), refs(&known));
        for (name, commit) in fetched.iter().filter(|(name, at)| known.get(*name) != Some(*at)) {
            repository.text("update-ref", [name, commit]).await?;
        }
        Ok(())
    }

    /// Fetches the last snapshot of an agent whose work was pushed from another host and whose worktree is not here.
    async fn lost_work(&self, agent: &AgentId) -> Result<Option<String>, OperationError> {
        let shared = self.git.shared;
        let run = &shared.place.marker.run;
        if shared.place.working_dirs.record(agent)?.is_some() {
            return Ok(None);
        }
        let branch = work_branch(run, Some(agent))?;
        let repository = self.repository();
        let Some(commit) = repository.commit(&format!("refs/remotes/{branch}")).await? else {
            return Ok(None);
        };
        let (snapshot, own) = (snapshot_ref(run, agent), fetched_snapshot_ref(run, agent));
        let mut has_snapshot = false;
        if self.there(&snapshot).await?.is_some() {
            let refspec = format!("+{snapshot}:{own}");
            self.fetch(&[&refspec]).await?;
            if let Some(fetched) = self.control().object(&own).await? {
                repository.text("update-ref", [&own, &fetched]).await?;
                let head = repository.commit(&format!("{own}^1")).await?;
                has_snapshot = head.as_ref() == Some(&commit);
            }
        }
        let rest = if has_snapshot {
            "with the files of its last snapshot; what was changed after it is lost"
        } else {
            "without a snapshot of it; what was not committed there is lost"
        };
        Ok(Some(format!(
            "the worktree of {agent} was on a host that it no longer lives on; raymond creates it again at {}, the last pushed commit, {rest}",
            &commit[..12.min(commit.len())]
        )))
    }

    /// Brings the run's own directory to the work of another host that had it, and was lost.
    async fn follow_trunk(&self) -> Result<(), OperationError> {
        let branch = work_branch(&self.git.shared.place.marker.run, None)?;
        let repository = self.repository();
        let Some(theirs) = repository.commit(&format!("refs/remotes/{branch}")).await? else {
            return Ok(());
        };
        let Some(own) = repository.commit("HEAD").await? else { return Ok(()) };
        if own != theirs && self.comes_before(&own, &theirs).await? {
            // Else the configuration of the clone could name a program that verifies signatures.
            let merge = "merge --quiet --ff-only --no-verify-signatures";
            repository.text(merge, [theirs]).await?;
        }
        Ok(())
    }
}

/// Returns the refs of git's list, with what they are at.
fn refs(list: &str) -> BTreeMap<&str, &str> {
    let pairs = list.lines().filter_map(|line| line.split_once(' '));
    pairs.filter(|(at, _)| is_object(at)).map(|(at, name)| (name, at)).collect()
}
