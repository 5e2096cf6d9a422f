//! Runs the real git on repositories.
//!
//! git asks nobody, runs no hooks and no remote helper that an address names, and follows no submodules. It works in the
//! repository that [`GitGround`] has found and judged, and runs no program that the repository itself names: no filter, no
//! helper, no transport. It reaches a remote only for a verb that needs one. The user's own configuration stays in effect:
//! credential helpers, keys, proxies, filters such as those of LFS.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::config::clone_of;
use super::context::{OperationContext, OperationProgram, blocking, complaint};
use super::git_place::{GitGround, GitPlace, NoGit, directory, made_at};
pub(super) use super::git_place::{common, link};
use super::outcome::OperationError;
use super::paths::{FileAccess, resolve};
use crate::domain::git_config::FIXED_SETTINGS;
use crate::process::captured_output::ProcessOutput;
use crate::process::child::exit::ProcessExit;

/// The longest time that git may take.
const GIT_TIMEOUT: Duration = Duration::from_mins(10);

/// The number of bytes that are kept of its stdout, and of its stderr.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// The verbs that reach a remote, and the transports that they may use, whatever a configuration says.
const REMOTE_VERBS: [&str; 5] = ["clone", "fetch", "ls-remote", "pull", "push"];
const TRANSPORTS: &str = "file:git:http:https:ssh";

/// The variable with the transports that git may use.
pub(super) const ALLOWED_TRANSPORTS: &str = "GIT_ALLOW_PROTOCOL";

/// The variable with the directories above which git does not look for a repository.
const CEILING: &str = "GIT_CEILING_DIRECTORIES";

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
    format!("`git {}` {}{reason}", verb(words).display(), ended.exit)
}

/// Returns the verb in the arguments of git.
fn verb(words: &[impl AsRef<OsStr>]) -> &OsStr {
    let words = || words.iter().map(AsRef::as_ref);
    let settings =
        words().take_while(|word| *word == "-c" || word.as_encoded_bytes().contains(&b'='));
    let option = |word: &&OsStr| !word.as_encoded_bytes().starts_with(b"-");
    words().skip(settings.count()).find(option).unwrap_or_default()
}

/// Returns the value of a variable.
fn find<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let found = environment.iter().rfind(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

/// Returns whether a text is the name of an object, not an option.
pub(super) fn is_object(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
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
        let above = cwd.parent().map(|above| (CEILING.into(), above.into()));
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
        let mut environment = self.environment();
        for (name, value) in more {
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value));
        }
        let place = self.place(cwd, &environment).await?.map_err(|why| match why {
            NoGit::Bare(why) | NoGit::Refused(why) => OperationError::Failed(why),
        })?;
        let _permit = self.shared.permit().await?;
        let settings = self.settings(&place, &environment).await?;
        let may_reach = verb(words).to_str().is_some_and(|verb| REMOTE_VERBS.contains(&verb));
        let allowed = find(&environment, ALLOWED_TRANSPORTS).filter(|_| may_reach);
        let allowed = allowed.unwrap_or(if may_reach { TRANSPORTS } else { "" }.as_ref());
        let own = [
            (ALLOWED_TRANSPORTS.into(), allowed.to_owned()),
            ("GIT_NO_LAZY_FETCH".into(), "1".into()),
        ];
        let ceiling = place.ceiling.map(|above| (CEILING.into(), above.into_os_string()));
        let run = OperationProgram {
            stem: self.stem,
            program: "git",
            arguments: words.iter().map(OsString::from).collect(),
            cwd: cwd.to_owned(),
            environment: environment
                .into_iter()
                .chain(own)
                .chain(ceiling)
                .chain(settings)
                .collect(),
            longest: GIT_TIMEOUT,
            kept: output_limit,
        };
        self.shared.run(run).await
    }

    /// Returns whether git would take a directory, or one above it, for a repository without a `.git`.
    pub(super) async fn is_bare(&self, cwd: &Path) -> Result<bool, OperationError> {
        let environment: Vec<_> = self.surroundings().collect();
        Ok(matches!(self.place(cwd, &environment).await?, Err(NoGit::Bare(_))))
    }

    /// Finds and judges the repository that git will work in with this environment.
    async fn place(
        &self,
        cwd: &Path,
        environment: &[(OsString, OsString)],
    ) -> Result<Result<GitPlace, NoGit>, OperationError> {
        let [named, ceilings] =
            ["GIT_DIR", CEILING].map(|name| find(environment, name).map(OsStr::to_owned));
        let cwd = cwd.to_owned();
        blocking(self.shared, move |shared| {
            let place = &shared.place;
            let ground = GitGround {
                began: place.steps.parent().and_then(made_at),
                exchange: place.working_dirs.exchange().map(|copy| copy.repository().join(".git")),
                home: place.variable("HOME"),
            };
            match named {
                Some(directory) => ground.named(Path::new(&directory)),
                None => ground.find(&cwd, ceilings.as_deref()),
            }
        })
        .await
    }

    /// Returns the variables that override settings. In place of what the repository names, the user's own value counts.
    async fn settings(
        &self,
        place: &GitPlace,
        environment: &[(OsString, OsString)],
    ) -> Result<Vec<(OsString, OsString)>, OperationError> {
        let mut settings: Vec<(OsString, OsString)> = Vec::new();
        let users = if place.neutral.is_empty() {
            String::new()
        } else {
            let elsewhere = [("GIT_DIR".into(), "/dev/null".into())];
            let run = OperationProgram {
                stem: self.stem,
                program: "git",
                arguments: ["config", "--list", "--null"].map(OsString::from).into(),
                cwd: "/".into(),
                environment: environment.iter().cloned().chain(elsewhere).collect(),
                longest: GIT_TIMEOUT,
                kept: MAX_OUTPUT_BYTES,
            };
            self.shared.run(run).await?.stdout.text()
        };
        for (key, neutral) in &place.neutral {
            let key = OsStr::from_bytes(key);
            settings.push((key.to_owned(), (*neutral).into()));
            for (known, value) in users.split('\0').filter_map(|one| one.split_once('\n')) {
                if key == known {
                    settings.push((key.to_owned(), value.into()));
                }
            }
        }
        settings.extend(FIXED_SETTINGS.map(|(key, value)| (key.into(), value.into())));
        let given = find(environment, "GIT_CONFIG_COUNT").and_then(OsStr::to_str);
        let first: usize = given.and_then(|count| count.parse().ok()).unwrap_or_default();
        let count = ("GIT_CONFIG_COUNT".into(), (first + settings.len()).to_string().into());
        let numbered = settings.into_iter().enumerate().flat_map(|(number, (key, value))| {
            let name = |what| format!("GIT_CONFIG_{what}_{}", first + number).into();
            [(name("KEY"), key), (name("VALUE"), value)]
        });
        Ok(numbered.chain([count]).collect())
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
        let ceiling = ceiling.map(|value| (CEILING.into(), value.to_owned()));
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
        environment
    }

    /// Returns the path of a repository.
    fn repository(&self, given: &str) -> Result<PathBuf, OperationError> {
        let path = resolve(self.shared.root(), given, FileAccess::Read)?;
        if path.join(".git").exists() {
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
        let _lock = self.shared.lock_path(&common(&directory(&path))?).await?;
        self.run(&path, &["fetch", "--quiet"]).await?;
        Ok(Value::Null)
    }

    /// Brings a repository up to its upstream. The locks of a git that was killed in an earlier try of this
    /// are removed first.
    pub(super) async fn pull(&self, given: &str, again: bool) -> Result<Value, OperationError> {
        let path = self.repository(given)?;
        let own = directory(&path);
        let common = common(&own)?;
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
