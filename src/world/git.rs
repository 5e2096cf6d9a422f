//! Runs the real git on repositories.
//!
//! git asks nobody, runs no hooks and no remote helper that an address names, and follows no submodules. It looks for
//! a repository only in the given directory, never above. The user's own configuration for reaching a remote stays in
//! effect: credential helpers, keys, proxies, filters such as those of LFS.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::config::clone_of;
use super::context::{OperationContext, OperationProgram, complaint};
use super::outcome::OperationError;
use super::paths::{FileAccess, resolve};
use crate::process::captured_output::ProcessOutput;
use crate::process::child::exit::ProcessExit;

/// The longest time that git may take.
const GIT_TIMEOUT: Duration = Duration::from_mins(10);

/// The number of bytes that are kept of its stdout, and of its stderr.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// The settings that override all configurations.
const SETTINGS: [&str; 7] = [
    "protocol.ext.allow=never",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The variables that keep git from asking: nobody is there to answer.
const UNATTENDED: [(&str, &str); 6] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_EDITOR", "false"),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
];

/// The prefixes of git's variables that are passed on: those for reaching a remote, not those that name
/// a repository, which are set when raymond was started by a git hook.
const KEPT_VARIABLES: [&str; 5] = ["GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_"];

/// The lock files that a killed git leaves behind: in a worktree, and in the directory that worktrees share.
const LOCKS: [&str; 2] = ["index.lock", "HEAD.lock"];
const COMMON_LOCKS: [&str; 2] = ["shallow.lock", "config.lock"];

/// Returns the message for a git that failed.
pub(super) fn refusal(words: &[impl AsRef<OsStr>], ended: &ProcessOutput) -> String {
    let reason = complaint(&ended.stderr);
    let words = || words.iter().map(AsRef::as_ref);
    let settings =
        words().take_while(|word| *word == "-c" || word.as_encoded_bytes().contains(&b'='));
    let option = |word: &&OsStr| !word.as_encoded_bytes().starts_with(b"-");
    let name = words().skip(settings.count()).find(option).unwrap_or_default().display();
    format!("`git {name}` {}{reason}", ended.exit)
}

/// Returns whether a text is the name of an object, not an option.
pub(super) fn is_object(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns git's directory for a linked worktree.
pub(super) fn link(tree: &Path) -> Option<PathBuf> {
    let link = std::fs::read_to_string(tree.join(".git")).ok()?;
    Some(tree.join(link.strip_prefix("gitdir: ")?.trim_end()))
}

/// Returns git's directory for a worktree.
fn directory(tree: &Path) -> PathBuf {
    link(tree).unwrap_or_else(|| tree.join(".git"))
}

/// Returns the directory that all worktrees of a repository share.
pub(super) fn common(directory: &Path) -> PathBuf {
    let common = std::fs::read_to_string(directory.join("commondir"));
    let common = common.map(|common| directory.join(common.trim_end()));
    let real = common.and_then(|common| common.canonicalize());
    real.unwrap_or_else(|_| directory.to_owned())
}

/// Runs git for an operation.
#[derive(Clone, Copy)]
pub(super) struct GitRunner<'git> {
    pub(super) shared: &'git Arc<OperationContext>,
    /// The operation.
    pub(super) stem: &'git str,
}

impl GitRunner<'_> {
    /// Runs git in a directory; returns its stdout without the last line's end.
    pub(super) async fn run(
        &self,
        cwd: &Path,
        words: &[impl AsRef<OsStr>],
    ) -> Result<String, OperationError> {
        let above = cwd.parent().map(|above| ("GIT_CEILING_DIRECTORIES".into(), above.into()));
        let ended = self.run_raw(cwd, words, above, MAX_OUTPUT_BYTES).await?;
        if ended.exit == ProcessExit::Code(0) {
            return Ok(ended.stdout.text().trim_end().to_owned());
        }
        Err(refusal(words, &ended).into())
    }

    /// Runs git in a directory and returns any result, with `more` in its environment.
    pub(super) async fn run_raw(
        &self,
        cwd: &Path,
        words: &[impl AsRef<OsStr>],
        more: impl IntoIterator<Item = (OsString, OsString)>,
        output_limit: usize,
    ) -> Result<ProcessOutput, OperationError> {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(OsString::from);
        let run = OperationProgram {
            stem: self.stem,
            program: "git",
            arguments: settings.chain(words.iter().map(OsString::from)).collect(),
            cwd: cwd.to_owned(),
            environment: self.environment().into_iter().chain(more).collect(),
            longest: GIT_TIMEOUT,
            kept: output_limit,
        };
        let _permit = self.shared.permit().await?;
        self.shared.run(run).await
    }

    /// Runs git to inspect a directory, whose repository may begin above.
    pub(super) async fn inspect(
        &self,
        cwd: &Path,
        words: &[impl AsRef<OsStr>],
    ) -> Result<ProcessOutput, OperationError> {
        self.run_raw(cwd, words, self.surroundings(), MAX_OUTPUT_BYTES).await
    }

    /// Inspects a directory like [`inspect`](Self::inspect); returns git's stdout without the last line's end.
    pub(super) async fn inspect_stdout(
        &self,
        cwd: &Path,
        words: &[impl AsRef<OsStr>],
    ) -> Result<String, OperationError> {
        let ended = self.inspect(cwd, words).await?;
        match ended.exit {
            ProcessExit::Code(0) => Ok(ended.stdout.text().trim_end().to_owned()),
            _ => Err(refusal(words, &ended).into()),
        }
    }

    /// Returns the commit of a name, if it names one.
    pub(super) async fn resolve_commit(
        &self,
        cwd: &Path,
        name: &str,
    ) -> Result<Option<String>, OperationError> {
        let wanted = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let ended = self.inspect(cwd, &words).await?;
        let commit = ended.stdout.text().trim_end().to_owned();
        Ok(Some(commit).filter(|commit| ended.exit == ProcessExit::Code(0) && is_object(commit)))
    }

    /// Returns the variables for the language of git's messages, and for the directories in which it may look for a
    /// repository: not above a worktree, and otherwise as the user has set.
    pub(super) fn surroundings(&self) -> impl Iterator<Item = (OsString, OsString)> + use<> {
        let ceiling = self.shared.ceiling();
        let ceiling = ceiling.map(|value| ("GIT_CEILING_DIRECTORIES".into(), value.to_owned()));
        [("LC_ALL".into(), "C".into())].into_iter().chain(ceiling)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let is_kept = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            let has_prefix = |prefix: &&str| name.starts_with(prefix.as_bytes());
            !name.starts_with(b"GIT_")
                || (KEPT_VARIABLES.iter().any(has_prefix) && name != b"GIT_CONFIG_PARAMETERS")
        };
        let callers = self.shared.place.environment.iter().filter(|(name, _)| is_kept(name));
        let mut environment: Vec<_> = callers.cloned().collect();
        environment.extend(UNATTENDED.map(|(name, value)| (name.into(), value.into())));
        if self.shared.place.working_dirs.exchange().is_some() {
            // Agents can write the clone's configuration, which may name a program that would fetch what is missing.
            environment.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
        }
        environment
    }

    /// Returns the path of a repository.
    fn repository(&self, given: &str) -> Result<PathBuf, OperationError> {
        let path = resolve(self.shared.root(), given, FileAccess::Read)?;
        if path.join(".git").exists() || path.join("objects").is_dir() {
            return Ok(path);
        }
        let root = self.shared.root().display();
        Err(format!("there is no git repository at `{given}` in {root}: clone it first").into())
    }

    /// Returns the commit a repository is at.
    pub(super) async fn sha(&self, given: &str) -> Result<Value, OperationError> {
        let path = self.repository(given)?;
        let words = ["rev-parse", "--verify", "HEAD^{commit}"];
        Ok(Value::String(self.run(&path, &words).await?))
    }

    /// Fetches from the remote.
    pub(super) async fn fetch(&self, given: &str) -> Result<Value, OperationError> {
        let path = self.repository(given)?;
        let _lock = self.shared.lock_path(&common(&directory(&path))).await?;
        self.run(&path, &["fetch", "--quiet"]).await?;
        Ok(Value::Null)
    }

    /// Brings a repository up to its upstream. The locks of a git that was killed in an earlier try of this
    /// are removed first.
    pub(super) async fn pull(&self, given: &str, again: bool) -> Result<Value, OperationError> {
        let path = self.repository(given)?;
        let own = directory(&path);
        let common = common(&own);
        let _lock = self.shared.lock_path(&common).await?;
        if again {
            // A lock that several worktrees share may belong to another one.
            let shared = COMMON_LOCKS.iter().filter(|_| common == own);
            for lock in LOCKS.iter().chain(shared) {
                let _ = std::fs::remove_file(own.join(lock));
            }
        }
        let words = ["pull", "--quiet", "--ff-only", "--no-rebase"];
        self.run(&path, &words).await?;
        let commit = self.run(&path, &["rev-parse", "HEAD"]).await?;
        Ok(Value::String(commit.trim().to_owned()))
    }

    /// Returns whether the upstream of a source's clone has new commits.
    pub(super) async fn has_updates(&self, id: &str) -> Result<Value, OperationError> {
        let given = clone_of(id)?;
        self.fetch(&given).await?;
        let path = self.repository(&given)?;
        let output = self.run(&path, &["rev-parse", "HEAD", "@{u}"]).await?;
        let mut commits = output.lines();
        Ok(Value::Bool(commits.next() != commits.next()))
    }
}
