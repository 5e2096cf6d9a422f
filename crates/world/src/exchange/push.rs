//! Pushes the work of an agent once a turn or an activity of it is over: its commits, and the snapshot of its worktree.
//!
//! The branch is the agent's own, so it may be set back, too; but only from what this host has pushed or fetched before.

use std::path::Path;

use crate::context::complaint;
use crate::exchange::fetch::ExchangeRemote;
use crate::git::Git;
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use raymond_agents::captured_output::ProcessOutput;
use raymond_agents::child::group::ProcessExit;
use raymond_model::exchange_branches::work_branch;
use raymond_model::id::AgentId;
use raymond_model::worktree::snapshot_ref;

/// The refs of raymond's own directory that note what was pushed.
const PUSHED: &str = "refs/raymond/pushed";

/// The command of each push.
const PUSH: &str = "push --quiet --porcelain --no-verify --no-follow-tags --recurse-submodules=no";

impl WorkspaceExecutor {
    /// Pushes the work in an agent's worktree, or in the run's own directory. Returns what people should know: that the
    /// exchange takes no snapshots. A run without an exchange has nothing to push.
    pub async fn push_work(&self, tree: Option<&AgentId>) -> InspectionOutcome<Option<String>> {
        let Some(copy) = self.0.place.working_dirs.exchange() else {
            return InspectionOutcome::Done(Ok(None));
        };
        let stem = match tree {
            Some(agent) => format!("{}.push", agent.file_name()),
            None => "trunk.push".to_owned(),
        };
        let remote = ExchangeRemote { git: Git { shared: &self.0, stem: &stem }, copy };
        let pushed = async {
            let _lock = self.0.lock_path(&copy.control().join(&stem)).await?;
            match remote.work(tree).await? {
                Some(work) => remote.push(&work).await,
                None => Ok(None),
            }
        };
        let whose = tree.map_or_else(|| "the run's directory".to_owned(), ToString::to_string);
        let address = &copy.exchange.address;
        let described =
            |why: &str| format!("cannot push the work of {whose} to the exchange {address}: {why}");
        pushed.await.map_err(|error| error.described(described)).into()
    }
}

/// Work that is not in the exchange yet.
struct UnpushedWork {
    branch: String,
    /// The commit that the directory is at.
    head: String,
    /// The commit of the branch in the exchange, as far as this host knows.
    last: Option<String>,
    /// The ref of the snapshots of the worktree, and the last of them, if that is not in the exchange.
    snapshot: Option<(String, String)>,
}

impl ExchangeRemote<'_> {
    /// Returns the work that is to be pushed, if there is any.
    async fn work(&self, tree: Option<&AgentId>) -> Result<Option<UnpushedWork>, OperationError> {
        let shared = self.git.shared;
        let run = &shared.place.marker.run;
        let branch = work_branch(run, tree)?;
        let at = match tree {
            Some(agent) => shared.place.working_dirs.tree(agent),
            None => self.copy.repository(),
        };
        let head = self.head(&at).await?;
        let control = self.control();
        let last = match control.object(&format!("{PUSHED}/{branch}")).await? {
            Some(pushed) => Some(pushed),
            None => control.object(&format!("refs/remotes/{branch}")).await?,
        };
        let snapshot = match tree {
            Some(agent) => self.unpushed_snapshot(snapshot_ref(run, agent)).await?,
            None => None,
        };
        let is_new = match (&last, tree) {
            (Some(last), _) => *last != head,
            // The base is in the exchange already.
            (None, None) => head != self.copy.exchange.base,
            (None, Some(_)) => true,
        };
        let work = UnpushedWork { branch, head, last, snapshot };
        Ok((is_new || work.snapshot.is_some()).then_some(work))
    }

    async fn head(&self, at: &Path) -> Result<String, OperationError> {
        let head = self.git.at(at).commit("HEAD").await?;
        Ok(head.ok_or_else(|| format!("{} is at no commit", at.display()))?)
    }

    async fn unpushed_snapshot(
        &self,
        name: String,
    ) -> Result<Option<(String, String)>, OperationError> {
        let Some(now) = self.repository().commit(&name).await? else { return Ok(None) };
        let pushed = self.control().object(&pushed_snapshot(&name)).await?;
        Ok((pushed.as_ref() != Some(&now)).then_some((name, now)))
    }

    /// Pushes the work, and notes that it is there.
    async fn push(&self, work: &UnpushedWork) -> Result<Option<String>, OperationError> {
        let mut ended = self.pushed(work, work.last.as_deref()).await?;
        let branch = format!("refs/heads/{}", work.branch);
        if let Some(why) = refused(&ended, &branch)? {
            let there = self.there(&branch).await?;
            self.check_may_replace(work, there.as_deref(), &why).await?;
            ended = self.pushed(work, there.as_deref()).await?;
            if let Some(why) = refused(&ended, &branch)? {
                return Err(why.into());
            }
        }
        let said = match &work.snapshot {
            Some((name, now)) => match refused(&ended, name)? {
                // An exchange that refuses this one would refuse it again.
                refused @ (Some(_) | None) => {
                    self.control().text("update-ref", [&pushed_snapshot(name), now]).await?;
                    refused.map(|why| {
                        format!("the exchange does not accept snapshots, so uncommitted files stay on their host: {why}")
                    })
                }
            },
            None => None,
        };
        let pushed = format!("{PUSHED}/{}", work.branch);
        self.control().text("update-ref", [&pushed, &work.head]).await?;
        let _lock = self.git.shared.lock_path(&self.copy.control()).await?;
        let fetched = format!("refs/remotes/{}", work.branch);
        self.repository().text("update-ref", [&fetched, &work.head]).await?;
        Ok(said)
    }

    /// Runs the push of a branch that is at `last` in the exchange, and nothing else.
    async fn pushed(
        &self,
        work: &UnpushedWork,
        last: Option<&str>,
    ) -> Result<ProcessOutput, OperationError> {
        let lease = last.unwrap_or_default();
        let UnpushedWork { branch, head, snapshot, .. } = work;
        let lease = format!("--force-with-lease=refs/heads/{branch}:{lease}");
        let words = [lease, "--".to_owned(), self.address().to_owned()].into_iter();
        let words = words.chain([format!("{head}:refs/heads/{branch}")]);
        let snapshot = snapshot.iter().map(|(name, now)| format!("+{now}:{name}"));
        self.control().ended(PUSH, words.chain(snapshot)).await
    }

    /// Checks that the branch in the exchange may be replaced, after it was found at another commit than this host knew.
    async fn check_may_replace(
        &self,
        work: &UnpushedWork,
        there: Option<&str>,
        why: &str,
    ) -> Result<(), OperationError> {
        let Some(commit) = there else { return Ok(()) };
        if there == work.last.as_deref() {
            return Err(why.to_owned().into());
        }
        if commit == work.head || self.comes_before(commit, &work.head).await? {
            return Ok(());
        }
        Err(format!(
            "its branch {0} is at {1} there, which this host has not pushed; look at it, then remove it there: git push {2} --delete {0}",
            work.branch,
            &commit[..12.min(commit.len())],
            self.address()
        )
        .into())
    }
}

/// Returns the ref that notes the snapshot that was pushed last.
fn pushed_snapshot(name: &str) -> String {
    format!("{PUSHED}/{}", name.trim_start_matches("refs/"))
}

/// Returns why the exchange did not take a ref, by the output of a push; `None` if it did.
fn refused(ended: &ProcessOutput, name: &str) -> Result<Option<String>, OperationError> {
    let output = ended.stdout.text();
    let of_ref = output.lines().find_map(|line| {
        let (flag, rest) = line.split_once('\t')?;
        let (refs, summary) = rest.split_once('\t')?;
        refs.ends_with(&format!(":{name}")).then_some((flag, summary))
    });
    match of_ref {
        Some(("!", summary)) => {
            Ok(Some(format!("it was not accepted: {summary}{}", complaint(&ended.stderr))))
        }
        Some(_) => Ok(None),
        // With --quiet nothing is printed about what went well.
        None if ended.exit == ProcessExit::Code(0) => Ok(None),
        None => Err(format!("`git push` {}{}", ended.exit, complaint(&ended.stderr)).into()),
    }
}
