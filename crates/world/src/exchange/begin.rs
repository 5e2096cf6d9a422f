//! Begins the exchange of a new run: the commit that it begins at is pushed from the run's own repository.

use crate::exchange::fetch::TRANSPORTS;
use crate::git::{ALLOWED_TRANSPORTS, Git, GitCall, NO_WORDS, is_object};
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use crate::worktrees::GitRepository;
use raymond_model::exchange_branches::{base_branch, run_branches};
use raymond_model::git_exchange::{ExchangeAddress, ExchangeName, GitExchange};
use raymond_model::id::Folder;

/// The name under which git is run.
const STEM: &str = "exchange.begin";

/// The number of bytes that are kept of git's output.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The exchange of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunExchange {
    /// The exchange.
    pub exchange: GitExchange,
    /// True if the commit was pushed now.
    pub is_new: bool,
    /// The number of files that differ from the commit, and that hosts do not get.
    pub uncommitted: usize,
}

impl WorkspaceExecutor {
    /// Pushes the commit that the run's directory is at, where its hosts begin.
    pub async fn begin_exchange(&self, name: &ExchangeName) -> InspectionOutcome<BegunExchange> {
        let git = Git { shared: &self.0, stem: STEM };
        let begun = async {
            let repository = GitRepository::of(git, self.root()).await?;
            let base = repository.head(git).await?;
            let directory = match repository.prefix.as_str() {
                "" => None,
                prefix => Some(Folder::parse(prefix).map_err(|error| error.to_string())?),
            };
            let git = &self.git();
            let address = self.address(git, name).await?;
            let exchange = GitExchange { address, base, directory };
            let is_new = self.push_base(git, &exchange).await?;
            let status = "status --porcelain --untracked-files=normal --ignore-submodules=dirty";
            let uncommitted = git.text(status, NO_WORDS).await?.lines().count();
            Ok(BegunExchange { exchange, is_new, uncommitted })
        };
        begun.await.into()
    }

    /// Removes the commit from the exchange again, because the run could not be made.
    pub async fn withdraw_exchange(&self, exchange: &GitExchange) -> InspectionOutcome<()> {
        let removed = async {
            let base = format!("refs/heads/{}", base_branch(&self.0.place.marker.run)?);
            let lease = format!("--force-with-lease={base}:{}", exchange.base);
            let nothing = format!(":{base}");
            let words = [&*lease, "--", exchange.address.as_str(), &nothing];
            self.git().text("push --quiet --no-verify", words).await.map(drop)
        };
        removed.await.into()
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

    /// Pushes the base, unless the exchange has it; returns whether it was pushed. It may not have branches of another run of this name.
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
            let Some((commit, found)) = line.split_once('\t').filter(|(one, _)| is_object(one))
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
    fn git(&self) -> GitCall<'_> {
        let git = Git { shared: &self.0, stem: STEM }.at(self.root());
        git.with(ALLOWED_TRANSPORTS, TRANSPORTS).keeping(MAX_OUTPUT_BYTES)
    }
}
