//! Runs git with the directory that reaches the exchange, and with the repository that agents work in.

use crate::process::child::exit::ProcessExit;
use crate::process::working_dirs::ExchangeCopy;
use crate::world::git::{ALLOWED_TRANSPORTS, Git, GitCall, is_object};
use crate::world::outcome::OperationError;

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
