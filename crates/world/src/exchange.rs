//! The exchange of work between hosts: branches of a run are fetched from a git repository, and pushed there.
//!
//! On a host, git reaches the exchange with a directory that only raymond writes, because agents can write the
//! configuration of their repository, which can name programs.

use std::collections::BTreeMap;
use std::io::Result as IoResult;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use raymond_agents::captured_output::ProcessOutput;
use raymond_agents::child::{ProcessExit, orphans};
use raymond_agents::working_dirs::ExchangeCopy;
use raymond_model::exchange_branches::{base_branch, run_branches, work_branch};
use raymond_model::git_exchange::{ExchangeAddress, ExchangeName, GitExchange};
use raymond_model::id::{AgentId, Folder};
use raymond_model::worktree::{fetched_snapshot_ref, snapshot_ref};
use raymond_store::plain_file::{FileReplacement, if_there, sync_directory};

use crate::context::{blocking, complaint};
use crate::git::{ALLOWED_TRANSPORTS, Git, GitCall, NO_WORDS, is_object};
use crate::outcome::OperationError;
use crate::perform::WorkspaceExecutor;
use crate::worktrees::GitRepository;

// Begins the exchange of a new run: the commit that it begins at is pushed from the run's own repository.

/// The name under which git is run.
const BEGIN_STEM: &str = "exchange.begin";

/// The number of bytes that are kept of git's output.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The exchange of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedExchange {
    pub exchange: GitExchange,
    /// True if the commit was pushed now.
    pub is_new: bool,
    /// The number of files that differ from the commit, and that hosts do not get.
    pub uncommitted: usize,
}

impl WorkspaceExecutor {
    /// Pushes the commit that the run's directory is at, where its hosts begin.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn begin_exchange(
        &self,
        name: &ExchangeName,
    ) -> Result<StartedExchange, OperationError> {
        let git = self.git(BEGIN_STEM);
        let repository = GitRepository::of(git, self.root()).await?;
        let base = repository.head(git).await?;
        let directory = match repository.prefix.as_str() {
            "" => None,
            prefix => Some(Folder::parse(prefix).map_err(|error| error.to_string())?),
        };
        let git = &self.exchanging_git();
        let address = self.address(git, name).await?;
        let exchange = GitExchange { address, base, directory };
        let is_new = self.push_base(git, &exchange).await?;
        let status = "status --porcelain --untracked-files=normal --ignore-submodules=dirty";
        let uncommitted = git.text(status, NO_WORDS).await?.lines().count();
        Ok(StartedExchange { exchange, is_new, uncommitted })
    }

    /// Removes the commit from the exchange again, because the run could not be made.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn withdraw_exchange(&self, exchange: &GitExchange) -> Result<(), OperationError> {
        let base = format!("refs/heads/{}", base_branch(&self.0.place.marker.run)?);
        let lease = format!("--force-with-lease={base}:{}", exchange.base);
        let nothing = format!(":{base}");
        let words = [&*lease, "--", exchange.address.as_str(), &nothing];
        self.exchanging_git().text("push --quiet --no-verify", words).await.map(drop)
    }

    async fn address(
        &self,
        git: &GitCall<'_>,
        name: &ExchangeName,
    ) -> Result<ExchangeAddress, OperationError> {
        let remote = match name {
            ExchangeName::Address(address) => return Ok(address.clone()),
            ExchangeName::Remote(remote) => remote,
        };
        let no_remote = || {
            format!(
                "the repository of {} has no remote {remote}: `git remote` lists them; or give an address, such as an absolute path",
                self.root().display()
            )
        };
        let found = match git.text("remote get-url", [remote]).await {
            Err(OperationError::Failed(_)) => return Err(no_remote().into()),
            found => found?,
        };
        let address = ExchangeAddress::parse(found.lines().next().unwrap_or_default());
        Ok(address.map_err(|why| format!("the remote {remote}: {why}"))?)
    }

    /// Pushes the base, unless the exchange has it; returns whether it was pushed. It may not have branches of another
    /// run of this name.
    async fn push_base(
        &self,
        git: &GitCall<'_>,
        exchange: &GitExchange,
    ) -> Result<bool, OperationError> {
        let run = &self.0.place.marker.run;
        let (base, all) = (base_branch(run)?, run_branches(run)?);
        let (address, branch) = (exchange.address.as_str(), format!("refs/heads/{base}"));
        let pattern = format!("refs/heads/{all}*");
        let listed = git.text("ls-remote --quiet --", [address, &pattern]).await?;
        for line in listed.lines() {
            let Some((commit, found)) =
                line.split_once('\t').filter(|(commit, _)| is_object(commit))
            else {
                continue;
            };
            if found != branch || commit != exchange.base {
                let found = found.trim_start_matches("refs/heads/");
                return Err(format!(
                    "the branch {found} already exists in {address}, from another run of this name: choose another --id, or remove it with `git push {address} --delete {found}`"
                )
                .into());
            }
        }
        if !listed.is_empty() {
            return Ok(false);
        }
        let lease = format!("--force-with-lease={branch}:");
        let refspec = format!("{}:{branch}", exchange.base);
        let push = "push --quiet --no-verify --no-follow-tags --recurse-submodules=no";
        git.text(push, [&*lease, "--", address, &refspec]).await.map(|_| true)
    }

    /// Returns git in the run's own directory.
    fn exchanging_git(&self) -> GitCall<'_> {
        let git = self.git(BEGIN_STEM).at(self.root());
        git.with(ALLOWED_TRANSPORTS, TRANSPORTS).keeping(MAX_OUTPUT_BYTES)
    }
}

// Makes the clone of the exchange in which a host works for a run.
//
// It is made beside its place, and put there as a whole. One of an earlier epoch of the host is moved aside: it may
// have work that does not count, and that is nowhere else.

/// The name under which git makes the clone.
const CLONE_STEM: &str = "exchange.clone";

/// The pauses before the exchange is asked again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

impl WorkspaceExecutor {
    /// Makes sure that the clone of the run's exchange is there. Returns where one of an earlier epoch was moved.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn clone_exchange(&self) -> Result<Option<PathBuf>, OperationError> {
        let working_dirs = self.working_dirs();
        let Some(copy) = working_dirs.exchange() else { return Ok(None) };
        let made = async {
            let (found, trees) = (copy.clone(), working_dirs.trees().to_owned());
            let moved = blocking(&self.0, move |_| moved_aside(&found, &trees)).await??;
            if !copy.home.exists() {
                make(self.git(CLONE_STEM), copy).await?;
            }
            Ok(moved)
        };
        let (address, home) = (&copy.exchange.address, copy.home.display());
        let described =
            |why: &str| format!("cannot make the clone of the exchange {address} at {home}: {why}");
        made.await.map_err(|error: OperationError| error.described(described))
    }
}

/// Makes the clone beside its place, and puts it there.
async fn make(git: Git<'_>, copy: &ExchangeCopy) -> Result<(), OperationError> {
    if !is_object(&copy.exchange.base) {
        return Err(format!("`{}` is not a commit", copy.exchange.base).into());
    }
    orphans::sweep(&git.shared.place.marker, |process| process == CLONE_STEM).await;
    let draft = copy.draft();
    let fresh = draft.clone();
    blocking(git.shared, move |_| prepare(&fresh)).await??;
    let remote = ExchangeRemote { git, copy: &draft };
    remote.begin().await?;
    let mut pauses = PAUSES.into_iter();
    while let Err(error) = remote.fetch_all().await {
        let (OperationError::Failed(_), Some(pause)) = (&error, pauses.next()) else {
            return Err(error);
        };
        git.shared.unless_stopped(tokio::time::sleep(pause)).await?;
    }
    remote.check_out().await?;
    let copy = copy.clone();
    Ok(blocking(git.shared, move |_| place(&draft, &copy)).await??)
}

impl ExchangeRemote<'_> {
    /// Makes the two directories, which are empty.
    async fn begin(&self) -> Result<(), OperationError> {
        let format = if self.copy.exchange.base.len() == 64 { "sha256" } else { "sha1" };
        let init = format!("init --quiet --template= --object-format={format}");
        let git = self.git.at(&self.copy.home);
        git.text(&init, [self.copy.repository()]).await?;
        git.text(&format!("{init} --bare"), [self.copy.control()]).await?;
        self.repository().text("remote add origin --", [self.address()]).await.map(drop)
    }

    /// Fetches all branches and tags: those of this run as its own, and not those of other runs.
    async fn fetch_all(&self) -> Result<(), OperationError> {
        self.fetch_branches().await?;
        self.fetch(&[
            "+refs/heads/*:refs/remotes/origin/*",
            "^refs/heads/raymond/*",
            "+refs/tags/*:refs/tags/*",
        ])
        .await
    }

    /// Gives the repository its refs, and checks the files out.
    async fn check_out(&self) -> Result<(), OperationError> {
        self.control().text("pack-refs --all", NO_WORDS).await?;
        let packed = [&self.copy.control(), &self.copy.repository().join(".git")]
            .map(|directory| directory.join("packed-refs"));
        blocking(self.git.shared, move |_| std::fs::copy(&packed[0], &packed[1])).await??;
        let (run, repository) = (&self.git.shared.place.marker.run, self.repository());
        let (trunk, base) = (work_branch(run, None)?, &self.copy.exchange.base);
        if repository.commit(base).await?.is_none() {
            let branch = base_branch(run)?;
            return Err(format!(
                "the exchange no longer has the commit {base} that the run began at, which was pushed as {branch}: push it again"
            )
            .into());
        }
        let begin = repository.commit(&format!("refs/remotes/{trunk}")).await?;
        let begin = begin.as_ref().unwrap_or(base);
        repository.text("checkout --quiet --no-track -B", [&trunk, begin]).await?;
        let root = self.copy.root();
        Ok(blocking(self.git.shared, move |_| std::fs::create_dir_all(root)).await??)
    }
}

/// Removes what an earlier try has left, and makes the directory of the draft.
fn prepare(draft: &ExchangeCopy) -> IoResult<()> {
    if_there(std::fs::remove_dir_all(&draft.home))?;
    std::fs::create_dir_all(&draft.home)
}

/// Puts the finished draft in place.
fn place(draft: &ExchangeCopy, copy: &ExchangeCopy) -> IoResult<()> {
    FileReplacement::of(&draft.epoch_file()).write(copy.epoch.0.to_string().as_bytes())?;
    std::fs::rename(&draft.home, &copy.home)?;
    copy.home.parent().map_or(Ok(()), sync_directory)
}

/// Moves the clone and the worktrees of another epoch aside; returns where the clone is then.
fn moved_aside(copy: &ExchangeCopy, trees: &Path) -> IoResult<Option<PathBuf>> {
    let is_there = std::fs::symlink_metadata(&copy.home).is_ok();
    let epoch = std::fs::read_to_string(copy.epoch_file()).unwrap_or_default();
    if !is_there || epoch == copy.epoch.0.to_string() {
        return Ok(None);
    }
    let (aside, trees_aside) = (free(&copy.home), free(trees));
    // The clone goes last: until then, the next try finds that it has to be moved.
    if_there(std::fs::rename(trees, &trees_aside))?;
    std::fs::rename(&copy.home, &aside)?;
    Ok(Some(aside))
}

/// Returns a free path beside another path. No run has this path.
fn free(path: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("~{number}"));
        PathBuf::from(name)
    };
    let is_taken = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok();
    (1..u32::MAX).map(named).find(|path| !is_taken(path)).unwrap_or_else(|| named(u32::MAX))
}

// Fetches the branches of a run before an agent begins something.

/// The name under which git fetches.
const FETCH_STEM: &str = "exchange.fetch";

impl WorkspaceExecutor {
    /// Fetches the branches of the run for an agent in this worktree, or in the run's own directory. Returns what
    /// people should know: that a worktree has to be made again. A run without an exchange has nothing to fetch.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn fetch_work(
        &self,
        tree: Option<&AgentId>,
    ) -> Result<Option<String>, OperationError> {
        let Some(copy) = self.working_dirs().exchange() else { return Ok(None) };
        let remote = ExchangeRemote { git: self.git(FETCH_STEM), copy };
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
        fetched.await.map_err(|error: OperationError| error.described(described))
    }
}

impl ExchangeRemote<'_> {
    /// Fetches the branches of the run.
    async fn fetch_branches(&self) -> Result<(), OperationError> {
        let of_run = run_branches(&self.git.shared.place.marker.run)?;
        let branches = format!("+refs/heads/{of_run}*:refs/remotes/{of_run}*");
        self.fetch(&[&branches]).await
    }

    /// Gives the repository that agents work in the branches that were fetched: `git merge raymond/RUN/AGENT` finds
    /// them.
    async fn adopt_branches(&self) -> Result<(), OperationError> {
        let of_run = run_branches(&self.git.shared.place.marker.run)?;
        let prefix = format!("refs/remotes/{of_run}");
        let words = ["--format=%(objectname) %(refname)", &prefix];
        let repository = self.repository();
        let fetched = self.control().text("for-each-ref", words).await?;
        let known = repository.text("for-each-ref", words).await?;
        let (fetched, known) = (refs(&fetched), refs(&known));
        for (name, commit) in fetched.iter().filter(|(name, at)| known.get(*name) != Some(*at)) {
            repository.set_ref(name, commit).await?;
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
        let (snapshot, fetched_ref) = (snapshot_ref(run, agent), fetched_snapshot_ref(run, agent));
        let mut has_snapshot = false;
        if self.there(&snapshot).await?.is_some() {
            let refspec = format!("+{snapshot}:{fetched_ref}");
            self.fetch(&[&refspec]).await?;
            if let Some(fetched) = self.control().object(&fetched_ref).await? {
                repository.set_ref(&fetched_ref, &fetched).await?;
                let head = repository.commit(&format!("{fetched_ref}^1")).await?;
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
        let Some(ours) = repository.commit("HEAD").await? else { return Ok(()) };
        if ours != theirs && self.comes_before(&ours, &theirs).await? {
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

// Runs git with the directory that reaches the exchange, and with the repository that agents work in.

/// The number of bytes that are kept of git's output.
const MAX_FETCH_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// The transports that reach an exchange.
const TRANSPORTS: &str = "file:ssh:https";

/// Runs git for the exchange of a run at a host.
struct ExchangeRemote<'run> {
    git: Git<'run>,
    copy: &'run ExchangeCopy,
}

impl ExchangeRemote<'_> {
    /// Returns the address of the exchange.
    fn address(&self) -> &str {
        self.copy.exchange.address.as_str()
    }

    /// Returns git with the directory that reaches the exchange.
    fn control(&self) -> GitCall<'_> {
        let git = self.git.at(&self.copy.home).keeping(MAX_FETCH_OUTPUT_BYTES);
        git.with("GIT_DIR", self.copy.control())
            .with("GIT_OBJECT_DIRECTORY", self.copy.objects())
            .with(ALLOWED_TRANSPORTS, TRANSPORTS)
    }

    /// Returns git in the repository that agents work in.
    fn repository(&self) -> GitCall<'_> {
        let repository = self.copy.repository();
        let git = self.git.at(&repository).keeping(MAX_FETCH_OUTPUT_BYTES);
        git.with("GIT_DIR", repository.join(".git")).with("GIT_WORK_TREE", repository)
    }

    /// Fetches from the exchange into the directory that reaches it.
    async fn fetch(&self, refspecs: &[&str]) -> Result<(), OperationError> {
        let fetch = "fetch --quiet --no-tags --no-write-fetch-head --";
        let words = [&[self.address()], refspecs].concat();
        self.control().text(fetch, words).await.map(drop)
    }

    /// Returns what a ref of the exchange is at.
    async fn there(&self, name: &str) -> Result<Option<String>, OperationError> {
        let listed = self.control().text("ls-remote --quiet --", [self.address(), name]).await?;
        let of_name = |line: &str| {
            let (object, found) = line.split_once('\t')?;
            (found == name && is_object(object)).then(|| object.to_owned())
        };
        Ok(listed.lines().find_map(of_name))
    }

    /// Returns whether a commit comes before another one, both in the repository that agents work in.
    async fn comes_before(&self, earlier: &str, later: &str) -> Result<bool, OperationError> {
        let ended = self.repository().ended("merge-base --is-ancestor", [earlier, later]).await?;
        Ok(ended.exit == ProcessExit::Code(0))
    }
}

// Pushes the work of an agent once a turn or an activity of it is over: its commits, and the snapshot of its worktree.
//
// The branch is the agent's own, so it may be set back, too; but only from what this host has pushed or fetched before.

/// The refs of raymond's own directory that note what was pushed.
const PUSHED: &str = "refs/raymond/pushed";

/// The command of each push.
const PUSH: &str = "push --quiet --porcelain --no-verify --no-follow-tags --recurse-submodules=no";

impl WorkspaceExecutor {
    /// Pushes the work in an agent's worktree, or in the run's own directory. Returns what people should know: that the
    /// exchange takes no snapshots. A run without an exchange has nothing to push.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn push_work(
        &self,
        tree: Option<&AgentId>,
    ) -> Result<Option<String>, OperationError> {
        let Some(copy) = self.working_dirs().exchange() else { return Ok(None) };
        let stem = match tree {
            Some(agent) => format!("{}.push", agent.file_name()),
            None => "trunk.push".to_owned(),
        };
        let remote = ExchangeRemote { git: self.git(&stem), copy };
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
        pushed.await.map_err(|error: OperationError| error.described(described))
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
        let notice = match &work.snapshot {
            Some((name, now)) => match refused(&ended, name)? {
                // An exchange that refuses this one would refuse it again.
                refused @ (Some(_) | None) => {
                    self.control().set_ref(&pushed_snapshot(name), now).await?;
                    refused.map(|why| {
                        format!("the exchange does not accept snapshots, so uncommitted files stay on their host: {why}")
                    })
                }
            },
            None => None,
        };
        let pushed = format!("{PUSHED}/{}", work.branch);
        self.control().set_ref(&pushed, &work.head).await?;
        let _lock = self.git.shared.lock_path(&self.copy.control()).await?;
        let fetched = format!("refs/remotes/{}", work.branch);
        self.repository().set_ref(&fetched, &work.head).await?;
        Ok(notice)
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

    /// Checks that the branch in the exchange may be replaced, after it was found at another commit than this host
    /// knew.
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
