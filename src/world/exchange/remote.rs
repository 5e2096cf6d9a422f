//! Runs git with the directory that reaches the exchange, and with the repository that agents work in.

use std::ffi::{OsStr, OsString};

use crate::process::captured_output::ProcessOutput;
use crate::process::child::exit::ProcessExit;
use crate::process::working_dirs::ExchangeCopy;
use crate::world::git::{ALLOWED_TRANSPORTS, GitRunner, is_object, refusal};
use crate::world::outcome::OperationError;

/// The number of bytes that are kept of git's output.
const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// The transports that reach an exchange.
pub(super) const TRANSPORTS: (&str, &str) = (ALLOWED_TRANSPORTS, "file:ssh:https");

/// Runs git for the exchange of a run at a host.
pub(super) struct ExchangeRemote<'run> {
    pub(super) git: GitRunner<'run>,
    pub(super) copy: &'run ExchangeCopy,
}

impl ExchangeRemote<'_> {
    /// Returns the address of the exchange.
    pub(super) fn address(&self) -> &str {
        self.copy.exchange.address.as_str()
    }

    /// Runs git with the directory that reaches the exchange, and returns any result.
    pub(super) async fn ended(
        &self,
        words: &[impl AsRef<OsStr>],
    ) -> Result<ProcessOutput, OperationError> {
        let own = [
            ("GIT_DIR", self.copy.control().into_os_string()),
            ("GIT_OBJECT_DIRECTORY", self.copy.objects().into_os_string()),
            (TRANSPORTS.0, TRANSPORTS.1.into()),
            ("LC_ALL", "C".into()),
        ];
        let own = own.map(|(name, value)| (OsString::from(name), value));
        self.git.run_raw(&self.copy.home, words, own, MAX_OUTPUT_BYTES).await
    }

    /// Runs git with the directory that reaches the exchange; returns its stdout without the last line's end.
    pub(super) async fn run(&self, words: &[impl AsRef<OsStr>]) -> Result<String, OperationError> {
        stdout(words, &self.ended(words).await?)
    }

    /// Runs git in the repository that agents work in, and returns any result.
    pub(super) async fn ended_in_repository(
        &self,
        words: &[impl AsRef<OsStr>],
    ) -> Result<ProcessOutput, OperationError> {
        let repository = self.copy.repository();
        let own = [
            ("GIT_DIR", repository.join(".git").into_os_string()),
            ("GIT_WORK_TREE", repository.clone().into_os_string()),
            ("LC_ALL", "C".into()),
        ];
        let own = own.map(|(name, value)| (OsString::from(name), value));
        self.git.run_raw(&repository, words, own, MAX_OUTPUT_BYTES).await
    }

    /// Runs git in the repository that agents work in; returns its stdout without the last line's end.
    pub(super) async fn in_repository(
        &self,
        words: &[impl AsRef<OsStr>],
    ) -> Result<String, OperationError> {
        stdout(words, &self.ended_in_repository(words).await?)
    }

    /// Returns the commit of a name in the repository that agents work in.
    pub(super) async fn commit(&self, name: &str) -> Result<Option<String>, OperationError> {
        let wanted = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        Ok(object(&self.ended_in_repository(&words).await?))
    }

    /// Returns what a ref of raymond's own directory is at.
    pub(super) async fn noted(&self, name: &str) -> Result<Option<String>, OperationError> {
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", name];
        Ok(object(&self.ended(&words).await?))
    }

    /// Returns what a ref of the exchange is at.
    pub(super) async fn there(&self, name: &str) -> Result<Option<String>, OperationError> {
        let listed = self.run(&["ls-remote", "--quiet", "--", self.address(), name]).await?;
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
        let words = ["merge-base", "--is-ancestor", earlier, later];
        Ok(self.ended_in_repository(&words).await?.exit == ProcessExit::Code(0))
    }
}

fn object(ended: &ProcessOutput) -> Option<String> {
    let text = ended.stdout.text().trim_end().to_owned();
    Some(text).filter(|text| ended.exit == ProcessExit::Code(0) && is_object(text))
}

fn stdout(words: &[impl AsRef<OsStr>], ended: &ProcessOutput) -> Result<String, OperationError> {
    match ended.exit {
        ProcessExit::Code(0) => Ok(ended.stdout.text().trim_end().to_owned()),
        _ => Err(refusal(words, ended).into()),
    }
}
