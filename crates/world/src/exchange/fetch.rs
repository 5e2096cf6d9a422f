//! Fetches the branches of a run before an agent begins something.
//!
//! Runs git with the directory that reaches the exchange, and with the repository that agents work in.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::git::{ALLOWED_TRANSPORTS, Git, GitCall, is_object};
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use raymond_agents::child::group::ProcessExit;
use raymond_agents::working_dirs::ExchangeCopy;
use raymond_model::exchange_branches::{run_branches, work_branch};
use raymond_model::id::AgentId;
use raymond_model::worktree::{fetched_snapshot_ref, snapshot_ref};

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

/// The number of bytes that are kept of git's output.
const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// The transports that reach an exchange.
pub(super) const TRANSPORTS: &str = "file:ssh:https";

/// Runs git for the exchange of a run at a host.
pub(super) struct ExchangeRemote<'run> {
    pub(super) git: Git<'run>,
    pub(super) copy: &'run ExchangeCopy,
}

impl ExchangeRemote<'_> {
    /// Returns the address of the exchange.
    pub(super) fn address(&self) -> &str {
        self.copy.exchange.address.as_str()
    }

    /// Returns git with the directory that reaches the exchange.
    pub(super) fn control(&self) -> GitCall<'_> {
        let git = self.git.at(&self.copy.home).keeping(MAX_OUTPUT_BYTES);
        git.with("GIT_DIR", self.copy.control())
            .with("GIT_OBJECT_DIRECTORY", self.copy.objects())
            .with(ALLOWED_TRANSPORTS, TRANSPORTS)
    }

    /// Returns git in the repository that agents work in.
    pub(super) fn repository(&self) -> GitCall<'_> {
        let repository = self.copy.repository();
        let git = self.git.at(&repository).keeping(MAX_OUTPUT_BYTES);
        git.with("GIT_DIR", repository.join(".git")).with("GIT_WORK_TREE", repository)
    }

    /// Fetches from the exchange into the directory that reaches it.
    pub(super) async fn fetch(&self, refspecs: &[&str]) -> Result<(), OperationError> {
        let fetch = "fetch --quiet --no-tags --no-write-fetch-head --";
        let words = [&[self.address()], refspecs].concat();
        self.control().text(fetch, words).await.map(drop)
    }

    /// Returns what a ref of the exchange is at.
    pub(super) async fn there(&self, name: &str) -> Result<Option<String>, OperationError> {
        let listed = self.control().text("ls-remote --quiet --", [self.address(), name]).await?;
        let of_name = |line: &str| {
            let (object, found) = line.split_once('\t')?;
            (found == name && is_object(object)).then(|| object.to_owned())
        };
        Ok(listed.lines().find_map(of_name))
    }

    /// Returns whether a commit comes before another one, both in the repository that agents work in.
    pub(super) async fn comes_before(
        &self,
        earlier: &str,
        later: &str,
    ) -> Result<bool, OperationError> {
        let ended = self.repository().ended("merge-base --is-ancestor", [earlier, later]).await?;
        Ok(ended.exit == ProcessExit::Code(0))
    }
}
