//! Runs the real git on repositories.
//!
//! git asks nobody, runs no hooks and no remote helper that an address names, and follows no submodules. It works in
//! the repository that [`GitGround`] has found and judged, and runs no program that the repository itself names: no
//! filter, no helper, no transport. It reaches a remote only for a verb that needs one. The user's own configuration
//! stays in effect: credential helpers, keys, proxies, filters such as those of LFS.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Result as IoResult};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raymond_agents::captured_output::ProcessOutput;
use raymond_agents::child::ProcessExit;
use raymond_model::git_exchange::{FIXED_SETTINGS, GitSetting, read_git_config};
use raymond_store::plain_file::{self, if_there};
use serde_json::Value;

pub(super) use super::context::{CEILING, common, link};
use super::context::{
    FoundRepository, GitGround, GitJudgement, GitPlace, OperationContext, OperationProgram,
    blocking, complaint, directory,
};
use super::outcome::OperationError;
use crate::glob::{FileAccess, resolve};

/// The longest time that git may take, also to read a configuration.
const GIT_TIMEOUT: Duration = Duration::from_mins(10);
const CONFIG_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of bytes that are kept of its stdout, and of its stderr.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// The longest list of the files that git knows, in bytes.
const MAX_INDEX_BYTES: usize = 256 * 1024 * 1024;

/// The longest configuration, in bytes, and the most files that it may consist of.
const MAX_CONFIG_BYTES: usize = 4 * 1024 * 1024;
const MAX_CONFIG_FILES: usize = 64;

/// The verbs that reach a remote, and the transports that they may use, regardless of any configuration.
const REMOTE_VERBS: [&str; 5] = ["clone", "fetch", "ls-remote", "pull", "push"];
const TRANSPORTS: &str = "file:git:http:https:ssh";

/// The verbs that create a repository elsewhere. git does not get the repository that it runs in.
const MAKING_VERBS: [&str; 2] = ["clone", "init"];

/// The variable with the transports that git may use.
pub(super) const ALLOWED_TRANSPORTS: &str = "GIT_ALLOW_PROTOCOL";

/// The variables of each call. Nobody is there to answer, so git must not ask.
const FIXED_VARIABLES: [(&str, &str); 9] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_EDITOR", "false"),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("LC_ALL", "C"),
];

/// The prefixes of git's variables that are passed on: those for reaching a remote, not those that name
/// a repository, which are set when raymond was started by a git hook.
const KEPT_VARIABLES: [&str; 5] = ["GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_"];

/// The lock files that a killed git leaves behind: in a worktree, and in the directory that worktrees share.
const LOCKS: [&str; 2] = ["index.lock", "HEAD.lock"];
const COMMON_LOCKS: [&str; 2] = ["shallow.lock", "config.lock"];

/// The further words of a command that has none.
pub(super) const NO_WORDS: [&str; 0] = [];

type Variable = (OsString, OsString);

/// Returns the value of a variable.
fn find<'a>(environment: &'a [Variable], name: &str) -> Option<&'a OsStr> {
    let found = environment.iter().rfind(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

/// Returns whether a text is the name of an object, not an option.
pub(super) fn is_object(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the output of git, or an error if git failed.
pub(super) fn succeeded(
    command: &str,
    ended: ProcessOutput,
) -> Result<ProcessOutput, OperationError> {
    if ended.exit == ProcessExit::Code(0) {
        return Ok(ended);
    }
    let verb = command.split(' ').next().unwrap_or_default();
    Err(format!("`git {verb}` {}{}", ended.exit, complaint(&ended.stderr)).into())
}

/// git for an operation.
#[derive(Clone, Copy)]
pub(super) struct Git<'op> {
    pub(super) shared: &'op Arc<OperationContext>,
    /// The operation.
    pub(super) stem: &'op str,
}

/// git in a directory.
#[derive(Clone)]
pub(super) struct GitCall<'op> {
    git: Git<'op>,
    cwd: PathBuf,
    variables: Vec<Variable>,
    settings: Vec<Variable>,
    kept: usize,
}

impl GitCall<'_> {
    /// Adds a variable.
    pub(super) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Adds settings, which override all configurations: `a.b=c d.e=f`.
    pub(super) fn set(mut self, settings: &str) -> Self {
        let pairs = settings.split(' ').filter_map(|setting| setting.split_once('='));
        self.settings.extend(pairs.map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// Keeps more of git's output.
    pub(super) fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// Runs git, with these words after the command; returns its stdout without the last line's end.
    pub(super) async fn text(
        &self,
        command: &str,
        more: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<String, OperationError> {
        let output = self.output(command, more).await?;
        Ok(output.stdout.text().trim_end().to_owned())
    }

    /// Runs git, with these words after the command; returns its output.
    pub(super) async fn output(
        &self,
        command: &str,
        more: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<ProcessOutput, OperationError> {
        succeeded(command, self.ended(command, more).await?)
    }

    /// Runs git, with these words after the command; returns any result.
    pub(super) async fn ended(
        &self,
        command: &str,
        more: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<ProcessOutput, OperationError> {
        let more = more.into_iter().map(|word| word.as_ref().to_owned());
        let words = command.split(' ').map(OsString::from).chain(more).collect();
        self.run(words).await
    }

    /// Runs `git add` in the whole directory, but in no repository inside: git would run there with the configuration
    /// of that one, which nobody has judged. Of such a repository it notes the commit.
    pub(super) async fn add(
        &self,
        options: &str,
        pathspecs: &[OsString],
    ) -> Result<ProcessOutput, OperationError> {
        let list = self.clone().keeping(MAX_INDEX_BYTES);
        let listed = list.output("ls-files --stage -z", NO_WORDS).await?;
        let (entries, more) = listed.stdout.beginning();
        if more > 0 {
            return Err("git has too many files there".to_owned().into());
        }
        let repositories: BTreeSet<&OsStr> = entries
            .split(|&byte| byte == 0)
            .filter(|entry| entry.starts_with(b"160000 "))
            .filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1))
            .map(OsStr::from_bytes)
            .collect();
        if !repositories.is_empty() {
            let note = "update-index --add --remove --replace --ignore-skip-worktree-entries --";
            self.ended(note, &repositories).await?;
        }
        let without = repositories.into_iter().map(left_out);
        let command = format!("add {options} -- .");
        self.ended(&command, pathspecs.iter().cloned().chain(without)).await
    }

    /// Sets a ref.
    pub(super) async fn set_ref(&self, name: &str, object: &str) -> Result<(), OperationError> {
        self.text("update-ref", [name, object]).await.map(drop)
    }

    /// Writes the tree of the index, and returns its name.
    pub(super) async fn write_tree(&self) -> Result<String, OperationError> {
        self.text("write-tree", NO_WORDS).await
    }

    /// Sets the index to the commit that the directory is at, and leaves the files alone.
    pub(super) async fn reset(&self) -> Result<(), OperationError> {
        self.text("reset --quiet", NO_WORDS).await.map(drop)
    }

    /// Returns the commit of a name, if it names one.
    pub(super) async fn commit(&self, name: &str) -> Result<Option<String>, OperationError> {
        self.object(&format!("{name}^{{commit}}")).await
    }

    /// Returns the object of a name, if it names one.
    pub(super) async fn object(&self, name: &str) -> Result<Option<String>, OperationError> {
        let ended = self.ended("rev-parse --verify --quiet --end-of-options", [name]).await?;
        let object = ended.stdout.text().trim_end().to_owned();
        Ok(Some(object).filter(|object| ended.exit == ProcessExit::Code(0) && is_object(object)))
    }

    /// Returns whether git would take the directory, or one above it, for a repository without a `.git`.
    pub(super) async fn is_bare(&self) -> Result<bool, OperationError> {
        Ok(matches!(self.place().await?, Ok(GitPlace::Bare(_))))
    }

    async fn run(&self, arguments: Vec<OsString>) -> Result<ProcessOutput, OperationError> {
        let verb = arguments.first().and_then(|verb| verb.to_str()).unwrap_or_default();
        let shared = self.git.shared;
        let _permit = shared.permit().await?;
        let GitJudgement { variables, neutral } = self.judged().await?;
        let mut environment = self.environment();
        let settings = self.settings(&neutral, &environment).await?;
        let is_passed = |(name, _): &Variable| name == CEILING || !MAKING_VERBS.contains(&verb);
        environment.extend(variables.into_iter().filter(is_passed));
        let allowed = find(&self.variables, ALLOWED_TRANSPORTS).unwrap_or(TRANSPORTS.as_ref());
        let allowed = if REMOTE_VERBS.contains(&verb) { allowed } else { OsStr::new("") };
        environment.push((ALLOWED_TRANSPORTS.into(), allowed.to_owned()));
        environment.extend(settings);
        self.start(arguments, &self.cwd, environment, GIT_TIMEOUT, self.kept).await
    }

    async fn start(
        &self,
        arguments: Vec<OsString>,
        cwd: &Path,
        environment: Vec<Variable>,
        longest: Duration,
        kept: usize,
    ) -> Result<ProcessOutput, OperationError> {
        let (stem, program, cwd) = (self.git.stem, "git", cwd.to_owned());
        let run = OperationProgram { stem, program, arguments, cwd, environment, longest, kept };
        self.git.shared.run(run).await
    }

    /// Finds and judges the repository that git will work in.
    async fn judged(&self) -> Result<GitJudgement, OperationError> {
        match self.place().await?? {
            GitPlace::Bare(why) => Err(why.into()),
            GitPlace::Nothing(above) => {
                let variables = above.map(|above| (CEILING.into(), above.into())).into_iter();
                Ok(GitJudgement { variables: variables.collect(), ..GitJudgement::default() })
            }
            GitPlace::Found(found) => {
                let settings = self.settings_of(&found).await?;
                let judge =
                    move |shared: &OperationContext| GitGround::of(shared).judge(&found, &settings);
                Ok(blocking(self.git.shared, judge).await??)
            }
        }
    }

    /// Finds the repository that git will work in.
    async fn place(&self) -> Result<Result<GitPlace, String>, OperationError> {
        let [named, ceilings] =
            ["GIT_DIR", CEILING].map(|name| find(&self.variables, name).map(OsStr::to_owned));
        let cwd = self.cwd.clone();
        let find = move |_: &OperationContext| match named {
            Some(directory) => GitPlace::named(directory.into()),
            None => GitPlace::find(&cwd, ceilings.as_deref()),
        };
        blocking(self.git.shared, find).await
    }

    /// Returns the settings of a repository, including those of included files, regardless of the condition.
    async fn settings_of(
        &self,
        found: &FoundRepository,
    ) -> Result<Vec<(PathBuf, GitSetting)>, OperationError> {
        let FoundRepository { directory, common, .. } = found;
        let mut files: Vec<PathBuf> =
            [(common, "config"), (common, "config.worktree"), (directory, "config.worktree")]
                .map(|(directory, name)| directory.join(name))
                .into();
        let (mut seen, mut settings) = (BTreeSet::new(), Vec::new());
        while let Some(opened) = files.pop() {
            // A link is followed, as git does; what it leads to has to be a plain file.
            let Ok(file) = opened.canonicalize() else { continue };
            if !seen.insert(file.clone()) {
                continue;
            }
            let unusable = |why: &str| {
                format!(
                    "the configuration {} of a git repository cannot be used: {why}",
                    file.display()
                )
            };
            let checked = if seen.len() > MAX_CONFIG_FILES {
                Err(format!("more than {MAX_CONFIG_FILES} files are included"))
            } else {
                plain_file::read(&file, MAX_CONFIG_BYTES as u64).map_err(|error| error.to_string())
            };
            checked.map_err(|why| unusable(&why))?;
            let listed = self.list_settings(Some(&file), &self.environment()).await;
            for setting in listed.map_err(|error| error.described(unusable))? {
                if let Some(path) = setting.included() {
                    files.push(self.included(&opened, path).map_err(|why| unusable(&why))?);
                }
                settings.push((file.clone(), setting));
            }
        }
        Ok(settings)
    }

    /// Returns the settings of a file, or those of the user. git is in no repository then, and reading executes
    /// nothing.
    async fn list_settings(
        &self,
        file: Option<&Path>,
        environment: &[Variable],
    ) -> Result<Vec<GitSetting>, OperationError> {
        let mut words: Vec<OsString> = ["config", "--list", "--null"].map(OsString::from).into();
        words.extend(file.iter().flat_map(|file| ["--file".into(), file.into()]));
        let elsewhere = [("GIT_DIR".into(), "/dev/null".into())];
        let environment = environment.iter().cloned().chain(elsewhere).collect();
        let root = Path::new("/");
        let ended = self.start(words, root, environment, CONFIG_TIMEOUT, MAX_CONFIG_BYTES).await?;
        let output = succeeded("config", ended)?;
        match output.stdout.beginning() {
            (list, 0) => Ok(read_git_config(list)),
            _ => Err("it has too many settings".to_owned().into()),
        }
    }

    fn included(&self, from: &Path, path: &[u8]) -> Result<PathBuf, String> {
        let path = match path {
            [b'~', b'/', rest @ ..] => {
                let home = self.git.shared.place.variable("HOME").unwrap_or_default();
                return Ok(Path::new(home).join(OsStr::from_bytes(rest)));
            }
            [b'~' | b'%', ..] => {
                let path = String::from_utf8_lossy(path);
                return Err(format!("it includes {path}: write the path in full"));
            }
            path => OsStr::from_bytes(path),
        };
        Ok(from.parent().unwrap_or(from).join(path))
    }

    /// Returns the variables that override settings. In place of what the repository names, the user's own value
    /// counts.
    async fn settings(
        &self,
        neutral: &[(Vec<u8>, &'static str)],
        environment: &[Variable],
    ) -> Result<Vec<Variable>, OperationError> {
        let users = match neutral {
            [] => Vec::new(),
            _ => self.list_settings(None, environment).await?,
        };
        let mut settings: Vec<Variable> = Vec::new();
        for (key, neutral) in neutral {
            let of_user = users.iter().filter(|setting| setting.key == *key);
            let values =
                of_user.filter_map(|setting| setting.value.as_deref()).map(OsStr::from_bytes);
            for value in [OsStr::new(neutral)].into_iter().chain(values) {
                settings.push((OsStr::from_bytes(key).to_owned(), value.to_owned()));
            }
        }
        settings.extend(self.settings.iter().cloned());
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

    fn environment(&self) -> Vec<Variable> {
        let is_kept = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            let has_prefix = |prefix: &&str| name.starts_with(prefix.as_bytes());
            !name.starts_with(b"GIT_")
                || (KEPT_VARIABLES.iter().any(has_prefix) && name != b"GIT_CONFIG_PARAMETERS")
        };
        let callers = self.git.shared.place.environment.iter().filter(|(name, _)| is_kept(name));
        let fixed = FIXED_VARIABLES.map(|(name, value)| (name.into(), value.into()));
        callers.cloned().chain(fixed).chain(self.variables.iter().cloned()).collect()
    }
}

/// Returns the pathspec that leaves a path out.
pub(super) fn left_out(path: &OsStr) -> OsString {
    let mut argument = OsString::from(":(exclude,literal)");
    argument.push(path);
    argument
}

impl<'op> Git<'op> {
    /// Returns git in a directory, whose repository may begin above: not above a worktree, and otherwise as the user
    /// has set.
    pub(super) fn at(self, cwd: &Path) -> GitCall<'op> {
        let ceiling = self.shared.ceiling().map(|value| (CEILING.into(), value.to_owned()));
        let (variables, cwd) = (ceiling.into_iter().collect(), cwd.to_owned());
        GitCall { git: self, cwd, variables, settings: Vec::new(), kept: MAX_OUTPUT_BYTES }
    }

    /// Returns git in a directory whose repository begins there.
    pub(super) fn only_at(self, cwd: &Path) -> GitCall<'op> {
        self.at(cwd).with(CEILING, cwd.parent().unwrap_or(cwd))
    }

    /// Returns the path of a repository.
    fn repository(self, given: &str) -> Result<PathBuf, OperationError> {
        let path = resolve(self.shared.root(), given, FileAccess::Read)?;
        if path.join(".git").exists() {
            return Ok(path);
        }
        let root = self.shared.root().display();
        Err(format!("no git repository at `{given}` in {root}: clone it first").into())
    }

    /// Returns the commit a repository is at.
    pub(super) async fn sha(self, given: &str) -> Result<Value, OperationError> {
        let git = self.only_at(&self.repository(given)?);
        Ok(Value::String(git.text("rev-parse --verify HEAD^{commit}", NO_WORDS).await?))
    }

    /// Fetches from the remote.
    pub(super) async fn fetch(self, given: &str) -> Result<Value, OperationError> {
        let path = self.repository(given)?;
        let _lock = self.shared.lock_path(&common(&directory(&path))?).await?;
        self.only_at(&path).output("fetch --quiet", NO_WORDS).await?;
        Ok(Value::Null)
    }

    /// Brings a repository up to its upstream. The locks of a git that was killed in an earlier try of this
    /// are removed first.
    pub(super) async fn pull(self, given: &str, again: bool) -> Result<Value, OperationError> {
        let path = self.repository(given)?;
        let git_dir = directory(&path);
        let common = common(&git_dir)?;
        let _lock = self.shared.lock_path(&common).await?;
        let git = self.only_at(&path);
        if again {
            // Nothing is removed in a repository that git is not run in.
            git.judged().await?;
            // A lock that several worktrees share may belong to another one.
            let shared = COMMON_LOCKS.iter().filter(|_| common == git_dir);
            for lock in LOCKS.iter().chain(shared) {
                let _ = std::fs::remove_file(git_dir.join(lock));
            }
        }
        git.output("pull --quiet --ff-only --no-rebase", NO_WORDS).await?;
        Ok(Value::String(git.text("rev-parse HEAD", NO_WORDS).await?))
    }

    /// Fetches, and returns whether the upstream of a repository has another commit.
    pub(super) async fn has_updates(self, given: &str) -> Result<Value, OperationError> {
        self.fetch(given).await?;
        let git = self.only_at(&self.repository(given)?);
        let output = git.text("rev-parse HEAD @{u}", NO_WORDS).await?;
        let mut commits = output.lines();
        Ok(Value::Bool(commits.next() != commits.next()))
    }
}

/// Copies an index, if there is one. The copy has the same time, so that git checks files that changed later.
pub(super) fn copy_index(index: Option<&Path>, copy: &Path) -> IoResult<()> {
    if_there(std::fs::remove_file(copy))?;
    let mut lock = copy.as_os_str().to_owned();
    lock.push(".lock");
    if_there(std::fs::remove_file(lock))?;
    let Some(index) = index else { return Ok(()) };
    let copied = || {
        let modified = index.metadata()?.modified()?;
        std::fs::copy(index, copy)?;
        std::fs::File::options().write(true).open(copy)?.set_modified(modified)
    };
    if_there(copied()).map(drop)
}

// Git's lock of the index after a crash: a git that was killed leaves it, and no later git works then.
//
// A lock is removed only if by all signs it is that of the command which is repeated: it was not there when the
// command began, it is younger than that, no git works in this repository, and no process has it open. Otherwise it is
// named, with what to do.

/// The name of the lock in git's directory.
const LOCK: &str = "index.lock";

/// The end of the name of the note that a command began without a lock.
const NOTE: &str = "unlocked";

/// A command that may be repeated, and the lock of the repository that it works in.
pub(super) struct GitLock {
    lock: PathBuf,
    repository: PathBuf,
    note: PathBuf,
}

impl GitLock {
    /// Returns the lock of the repository that the workspace is in, if it is in one.
    pub(super) fn of(shared: &OperationContext, stem: &str) -> Option<Self> {
        let GitPlace::Found(found) = GitPlace::find(shared.root(), None).ok()? else { return None };
        let lock = found.git_directory()?.join(LOCK);
        let note = shared.place.steps.join(format!("{stem}.{NOTE}"));
        Some(Self { lock, repository: found.root?, note })
    }

    /// Notes that the command begins without a lock. With `again` the lock that an earlier try has left is removed,
    /// if it is provably that.
    pub(super) fn before(&self, again: bool) {
        if again && self.is_of_earlier_try() {
            // If it stays, the command fails, and its failure names the lock.
            let _ = std::fs::remove_file(&self.lock);
        }
        if !again {
            // A note of an earlier command says nothing about this one.
            let _ = std::fs::remove_file(&self.note);
        }
        if !self.lock.exists() && !plain_file::is_there(&self.note) {
            if let Some(steps) = self.note.parent() {
                let _ = std::fs::create_dir_all(steps);
            }
            // Without the note a lock is not removed later, and that is all.
            let _ = plain_file::create(&self.note);
        }
    }

    /// Removes the note after the command has succeeded.
    pub(super) fn after(&self) {
        let _ = std::fs::remove_file(&self.note);
    }

    /// Returns the end of the message of a failure, if there is a lock and no git that may hold it.
    pub(super) fn hint(&self) -> String {
        if !self.lock.exists() || works_in(&self.repository) {
            return String::new();
        }
        format!(
            "; {} is there, and no git works here: a git that was killed has left it; if that is so, remove this file",
            self.lock.display()
        )
    }

    fn is_of_earlier_try(&self) -> bool {
        let changed =
            |path: &Path| std::fs::symlink_metadata(path).and_then(|file| file.modified());
        match (changed(&self.note), changed(&self.lock)) {
            (Ok(began), Ok(locked)) => {
                locked >= began && !works_in(&self.repository) && !is_held(&self.lock)
            }
            _ => false,
        }
    }
}

/// Returns whether a process has a lock open.
fn is_held(lock: &Path) -> bool {
    let Ok(lock) = lock.canonicalize() else { return false };
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    processes.filter_map(Result::ok).any(|process| {
        let open = std::fs::read_dir(process.path().join("fd"));
        let links = open.into_iter().flatten().filter_map(Result::ok);
        links.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|file| file == lock)
    })
}

/// Returns whether a git may work in a repository. One whose directory cannot be seen may, and so may any where
/// processes cannot be seen at all.
fn works_in(repository: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let repository = repository.canonicalize().unwrap_or_else(|_| repository.to_owned());
    processes.filter_map(Result::ok).any(|process| {
        let path = process.path();
        let is_process = process.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit());
        let name = || std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        is_process
            && name().starts_with("git")
            && match std::fs::read_link(path.join("cwd")) {
                Ok(directory) => directory.starts_with(&repository),
                Err(error) => error.kind() == ErrorKind::PermissionDenied,
            }
    })
}
