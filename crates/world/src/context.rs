//! The context that all operations share (workspace, locks, permits, stop), and the repository that git works in.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use raymond_agents::captured_output::{
    CapturedOutput, ProcessFailure, ProcessOutput, ProcessSpec, environment,
};
use raymond_agents::command::locate;
use raymond_agents::working_dirs::REPOSITORY;
use raymond_model::git_exchange::GitSetting;
use raymond_model::worktree_snapshot::WorkingDir;
use raymond_store::plain_file;
use raymond_store::plain_file::FileReplacement;
use rustix::process::geteuid;
use tokio::sync::{OnceCell, OwnedMutexGuard, Semaphore, SemaphorePermit, watch};
use tokio::task::spawn_blocking;

use super::files::Workspace;
use super::outcome::OperationError;
use super::web::WebClient;
use crate::gate::PathLocks;
use crate::web::masked;

/// The number of programs and fetches that may run at the same time.
const AT_A_TIME: usize = 16;

/// The number of last lines of stderr that are shown when a program failed.
const SHOWN_LINES: usize = 5;

/// The context of operations.
#[derive(Debug, Clone)]
pub(super) struct OperationContext {
    pub(super) place: Arc<Workspace>,
    /// The directory that operations are confined to.
    root: PathBuf,
    /// True if the root is in a worktree of an agent.
    in_tree: bool,
    common: Arc<SharedResources>,
    /// Tells that the operations of this context are to end; `None` if only all operations can be ended.
    activity_stop: Option<watch::Receiver<bool>>,
}

/// The resources that all agents of a run share, regardless of their working directory.
#[derive(Debug)]
struct SharedResources {
    locks: PathLocks,
    web: OnceCell<WebClient>,
    permits: Semaphore,
    stopped: watch::Sender<bool>,
    /// The beginning of the last fetch from the exchange that succeeded.
    fetched: Mutex<Option<Instant>>,
}

/// A program that an operation runs.
pub(super) struct OperationProgram<'run> {
    /// The operation.
    pub(super) stem: &'run str,
    /// The program's name.
    pub(super) program: &'run str,
    pub(super) arguments: Vec<OsString>,
    pub(super) cwd: PathBuf,
    /// Its environment, without the run's mark.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) longest: Duration,
    pub(super) kept: usize,
}

impl OperationContext {
    pub(super) fn new(place: Workspace) -> Self {
        let root = place.working_dirs.root();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let common = SharedResources {
            locks: PathLocks::default(),
            web: OnceCell::new(),
            permits: Semaphore::new(AT_A_TIME),
            stopped: watch::Sender::new(false),
            fetched: Mutex::default(),
        };
        let (place, common) = (Arc::new(place), Arc::new(common));
        Self { place, root, in_tree: false, common, activity_stop: None }
    }

    /// Returns this context for an agent's working directory.
    pub(super) fn at(&self, working_dir: &WorkingDir) -> Result<Self, String> {
        let root = self.place.working_dirs.directory(working_dir)?;
        let root = root.canonicalize().unwrap_or(root);
        let (place, common) = (Arc::clone(&self.place), Arc::clone(&self.common));
        Ok(Self { place, root, in_tree: working_dir.tree.is_some(), common, activity_stop: None })
    }

    /// Returns this context for operations that end once `stop` is true.
    pub(super) fn until(&self, stop: watch::Receiver<bool>) -> Self {
        Self { activity_stop: Some(stop), ..self.clone() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the client that fetches pages; it is made on first use.
    pub(super) fn web(&self) -> &OnceCell<WebClient> {
        &self.common.web
    }

    /// Returns the directories above which git is not to look for a repository.
    pub(super) fn ceiling(&self) -> Option<&OsStr> {
        if self.in_tree {
            return Some(self.place.working_dirs.trees().as_os_str());
        }
        self.place.variable("GIT_CEILING_DIRECTORIES")
    }

    /// Returns the environment of its programs, without the run's mark.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let leads_elsewhere =
            |name: &OsString| self.in_tree && REPOSITORY.iter().any(|known| name == known);
        let callers = self.place.environment.iter();
        callers.filter(|(name, _)| !leads_elsewhere(name)).cloned().collect()
    }

    /// Stops all operations.
    pub(super) fn stop(&self) {
        self.common.stopped.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        let is_stopped = self.activity_stop.as_ref().is_some_and(|stop| *stop.borrow());
        is_stopped || *self.common.stopped.borrow()
    }

    /// Waits until the operations of this context are stopped, or all operations.
    pub(super) async fn stopped(&self) {
        let mut all = self.common.stopped.subscribe();
        let Some(mut stop) = self.activity_stop.clone() else {
            let _ = all.wait_for(|stopped| *stopped).await;
            return;
        };
        tokio::select! {
            _ = all.wait_for(|stopped| *stopped) => {}
            // Without a sender it can no longer be stopped alone.
            Ok(_) = stop.wait_for(|stopped| *stopped) => {}
        }
    }

    /// Returns the result of `work`, or an error if the operations of this context are stopped before.
    pub(super) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, OperationError> {
        tokio::select! {
            biased;
            () = self.stopped() => Err(OperationError::Interrupted),
            done = work => Ok(done),
        }
    }

    /// Returns whether a fetch from the exchange has begun since then, and succeeded.
    pub(super) fn has_fetched_since(&self, then: Instant) -> bool {
        let fetched = self.common.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.is_some_and(|began| began >= then)
    }

    /// Notes that a fetch from the exchange that began then has succeeded.
    pub(super) fn note_fetch(&self, began: Instant) {
        *self.common.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
    }

    /// Waits for the lock of a path.
    pub(super) async fn lock_path(
        &self,
        path: &Path,
    ) -> Result<OwnedMutexGuard<()>, OperationError> {
        self.unless_stopped(self.common.locks.of(path)).await
    }

    /// Waits for a permit to run a program or a fetch.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, OperationError> {
        let permit = self.unless_stopped(self.common.permits.acquire()).await?;
        permit.map_err(|_| OperationError::Interrupted)
    }

    /// Runs a program to its end. The caller holds a permit.
    pub(super) async fn run(
        &self,
        run: OperationProgram<'_>,
    ) -> Result<ProcessOutput, OperationError> {
        let found = locate(run.program, self.place.path()).and_then(|path| {
            // It is started in another directory than this one.
            std::path::absolute(path).ok()
        });
        let path =
            found.ok_or_else(|| format!("no program `{}` on the PATH: install it, or correct its name (in a script: the `#!` line)", run.program))?;
        let program = ProcessSpec {
            path,
            arguments: run.arguments,
            cwd: run.cwd,
            environment: environment(run.environment, &self.place.marker, run.stem),
            longest: run.longest,
            kept: run.kept,
        };
        program.run(self.stopped()).await.map_err(|failure| match failure {
            ProcessFailure::Stopped => OperationError::Interrupted,
            ProcessFailure::TooLong { ref stderr, .. } => {
                let reason = complaint(stderr);
                OperationError::Failed(format!("`{}` {failure}{reason}", run.program))
            }
            ProcessFailure::NotStarted(ref error) => {
                OperationError::unwritten(format!("`{}` {failure}", run.program), error)
            }
        })
    }
}

/// Returns the end of a program's stderr, as the end of a message.
pub(super) fn complaint(stderr: &CapturedOutput) -> String {
    let reason = masked(&stderr.last_lines(SHOWN_LINES));
    if reason.is_empty() { reason } else { format!(": {reason}") }
}

/// Runs `work` on a thread that may wait for a disk.
pub(super) async fn blocking<T: Send + 'static>(
    shared: &Arc<OperationContext>,
    work: impl FnOnce(&OperationContext) -> T + Send + 'static,
) -> Result<T, OperationError> {
    let shared = Arc::clone(shared);
    let done = spawn_blocking(move || work(&shared)).await;
    done.map_err(|error| OperationError::Failed(format!("it came to no end: {error}")))
}

// Finds the repository that git is to work in, and decides whether it may.
//
// git itself would accept any directory with the right files as a repository, and do what its configuration says. So
// the repository is found here first, and its place is passed to git. Only a `.git` makes a repository, and settings
// that would execute something are overridden. A repository that the run did not begin in must not have such a
// setting, and must not lead elsewhere.

/// The longest file that leads git elsewhere, and the longest note, in bytes.
const MAX_POINTER_BYTES: u64 = 4096;

/// The file in a run's directory that notes the repository that it began in.
const NOTE: &str = "repository";

/// The variable with the directories above which git does not look for a repository.
pub(super) const CEILING: &str = "GIT_CEILING_DIRECTORIES";

/// Where git is to work.
#[derive(Debug)]
pub(super) enum GitPlace {
    /// In no repository, and git does not look for one above this directory.
    Nothing(Option<PathBuf>),
    /// In a repository without a `.git`: why git is not run there.
    Bare(String),
    /// In a repository.
    Found(FoundRepository),
}

/// A repository, before it is judged.
#[derive(Debug)]
pub(super) struct FoundRepository {
    /// Its working tree; `None` if raymond itself names the repository to git.
    pub(super) root: Option<PathBuf>,
    /// git's directory for it.
    pub(super) directory: PathBuf,
    /// The directory that all its worktrees share.
    pub(super) common: PathBuf,
    /// True if git's directory names the `.git` as that of its worktree.
    is_known: bool,
}

/// What takes back what a repository could have git do.
#[derive(Debug, Default)]
pub(super) struct GitJudgement {
    /// The variables that tell git where the repository is, so that it does not look itself.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// The keys to be overridden, and the values that take back what they name.
    pub(super) neutral: Vec<(Vec<u8>, &'static str)>,
}

/// What is known about a run when its repositories are judged.
#[derive(Debug)]
pub(super) struct GitGround {
    /// The time at which the run began, if the file system tells it.
    began: Option<SystemTime>,
    /// The inodes of the repository that it began in. An older raymond has not noted them.
    noted: Option<Vec<u64>>,
    /// git's directory of the clone that raymond has made of the run's exchange.
    exchange: Option<PathBuf>,
}

/// Notes the repository that a new run begins in: no other one is trusted later, however old its directory is.
pub fn note_repository(run: &Path, cwd: &Path) {
    let Ok(place) = GitPlace::find(cwd, None) else { return };
    let inodes = match &place {
        GitPlace::Found(FoundRepository { root: Some(root), common, .. }) => {
            [root.join(".git"), common.clone()].iter().filter_map(|path| inode(path)).collect()
        }
        _ => Vec::new(),
    };
    let text: Vec<String> = inodes.iter().map(u64::to_string).collect();
    // Without the note the age of a repository decides.
    let _ = FileReplacement::of(&run.join(NOTE)).write(text.join(" ").as_bytes());
}

fn inode(path: &Path) -> Option<u64> {
    Some(path.symlink_metadata().ok()?.ino())
}

/// Returns the time at which a file was made, if the file system tells it.
fn made_at(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().ok()?.created().ok()
}

impl GitPlace {
    /// Finds the repository from a directory upwards, but not in the `ceilings` or above them.
    pub(super) fn find(cwd: &Path, ceilings: Option<&OsStr>) -> Result<Self, String> {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let cwd = real(cwd.to_owned());
        let ceilings = ceilings.map(|all| std::env::split_paths(all).map(real).collect::<Vec<_>>());
        for directory in cwd.ancestors() {
            if directory != cwd && ceilings.iter().flatten().any(|ceiling| ceiling == directory) {
                break;
            }
            let git = directory.join(".git");
            match git.symlink_metadata() {
                Ok(_) => {
                    let (known, is_known) = led_to(&git)?;
                    let common = common(&known)?;
                    let root = Some(directory.to_owned());
                    let found = FoundRepository { root, directory: known, common, is_known };
                    return Ok(Self::Found(found));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", git.display())),
            }
            // git accepts files such as these as a repository, regardless of who wrote them.
            let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
            if has("HEAD") && (has("objects") || has("commondir")) {
                let inside = directory.iter().any(|name| name == ".git");
                let what = if inside { "belongs to git itself" } else { "is a bare repository" };
                let shown = directory.display();
                return Ok(Self::Bare(format!(
                    "{shown} {what}: run in a clone or a worktree of it, with --cwd"
                )));
            }
        }
        Ok(Self::Nothing(cwd.parent().map(Path::to_owned)))
    }

    /// Returns the repository whose directory raymond itself names to git.
    pub(super) fn named(directory: PathBuf) -> Result<Self, String> {
        let common = common(&directory)?;
        Ok(Self::Found(FoundRepository { root: None, directory, common, is_known: true }))
    }
}

impl FoundRepository {
    /// Returns git's directory, if a `.git` is it, or leads to it and is named there. Any other may be planted.
    pub(super) fn git_directory(&self) -> Option<&Path> {
        let is_git =
            |root: &PathBuf| root.join(".git").symlink_metadata().is_ok_and(|found| found.is_dir());
        let is_usable = self.is_known || self.root.as_ref().is_some_and(is_git);
        is_usable.then_some(&*self.directory)
    }

    /// Returns whether it is a linked worktree.
    fn is_linked(&self) -> bool {
        self.directory.join("commondir").is_file()
    }

    /// Returns the variables that tell git where everything is. In a repository of another user, or a repository that
    /// is bare despite its `.git`, git searches by itself, because it may refuse to work there.
    fn variables(&self, settings: &[(PathBuf, GitSetting)]) -> Vec<(OsString, OsString)> {
        let mut variables = Vec::new();
        if let Some(root) = &self.root {
            let above = root.parent().map(Path::to_owned);
            variables.extend(above.map(|above| (CEILING, above)));
            let is_bare =
                !self.is_linked() && settings.iter().any(|(_, setting)| setting.is_bare());
            let is_users = |path: &Path| {
                path.symlink_metadata().is_ok_and(|found| found.uid() == geteuid().as_raw())
            };
            let parts = [root, &root.join(".git"), &self.directory, &self.common];
            if is_bare || !parts.into_iter().all(|path| is_users(path)) {
                return owned(variables);
            }
            variables.push(("GIT_DIR", self.directory.clone()));
            variables.push(("GIT_WORK_TREE", root.clone()));
        }
        if self.is_linked() {
            variables.push(("GIT_COMMON_DIR", self.common.clone()));
        }
        owned(variables)
    }
}

fn owned(variables: Vec<(&str, PathBuf)>) -> Vec<(OsString, OsString)> {
    variables.into_iter().map(|(name, path)| (name.into(), path.into_os_string())).collect()
}

impl GitGround {
    pub(super) fn of(shared: &OperationContext) -> Self {
        let place = &shared.place;
        let run = place.steps.parent();
        let note = run.and_then(|run| plain_file::read(&run.join(NOTE), MAX_POINTER_BYTES).ok());
        let inodes = |note: Vec<u8>| {
            let text = String::from_utf8_lossy(&note).into_owned();
            text.split(' ').filter_map(|inode| inode.parse().ok()).collect()
        };
        Self {
            began: run.and_then(made_at),
            noted: note.map(inodes),
            exchange: place.working_dirs.exchange().map(|copy| copy.repository().join(".git")),
        }
    }

    /// Returns whether the run began in the repository of this path.
    fn began_in(&self, path: &Path) -> bool {
        let was_there = match (self.began, made_at(path)) {
            (Some(began), Some(made)) => made <= began,
            // The file system does not tell it.
            _ => true,
        };
        let noted = |inodes: &Vec<u64>| inode(path).is_some_and(|inode| inodes.contains(&inode));
        was_there && self.noted.as_ref().is_none_or(noted)
    }

    /// Judges a repository by its settings.
    pub(super) fn judge(
        &self,
        found: &FoundRepository,
        settings: &[(PathBuf, GitSetting)],
    ) -> Result<GitJudgement, String> {
        let FoundRepository { directory, common, is_known, .. } = found;
        let neutral = neutral(settings);
        let variables = found.variables(settings);
        let Some(root) = &found.root else { return Ok(GitJudgement { variables, neutral }) };
        let git = root.join(".git");
        let tree = settings
            .iter()
            .filter(|_| !found.is_linked())
            .find_map(|(_, setting)| setting.worktree());
        let is_tree = tree.map(|tree| {
            let tree = directory.join(OsStr::from_bytes(tree)).canonicalize();
            tree.is_ok_and(|tree| tree == *root)
        });
        if is_tree == Some(false) {
            return Err(format!(
                "the configuration of the repository of {} gives it another working tree (core.worktree): git is not run there",
                root.display()
            ));
        }
        let is_recorded = self
            .exchange
            .as_ref()
            .is_some_and(|clone| clone.canonicalize().is_ok_and(|clone| clone == *common));
        if is_recorded || (self.began_in(common) && (self.began_in(&git) || *is_known)) {
            return Ok(GitJudgement { variables, neutral });
        }
        let unplain = settings.iter().find(|(_, setting)| !setting.is_plain());
        let is_directory = git.symlink_metadata().is_ok_and(|found| found.is_dir());
        let why = if !is_directory && !is_known && is_tree != Some(true) {
            format!("leads to {}, which does not name it", directory.display())
        } else if let Some((file, setting)) = unplain {
            format!(
                "{} sets {}, which can name programs; keep it in the configuration of your user, and remove it there with `git config --unset`",
                file.display(),
                String::from_utf8_lossy(&setting.key)
            )
        } else if *is_known && common.file_name() != Some(OsStr::new(".git")) {
            format!("is a worktree of the bare repository {}", common.display())
        } else if common.join("objects/info/alternates").symlink_metadata().is_ok() {
            "takes objects of another one (objects/info/alternates)".to_owned()
        } else {
            return Ok(GitJudgement { variables, neutral });
        };
        Err(format!(
            "the repository of {} is not the repository that the run began in, and {why}: raymond does not run git there",
            root.display()
        ))
    }
}

/// Returns git's directory for a linked worktree.
pub(super) fn link(tree: &Path) -> Option<PathBuf> {
    let link = pointer(&tree.join(".git")).ok()?;
    Some(tree.join(OsStr::from_bytes(link.as_bytes().strip_prefix(b"gitdir: ")?)))
}

/// Returns the text of a small file that leads git elsewhere. As git reads it, only line ends are left off.
fn pointer(path: &Path) -> std::io::Result<OsString> {
    let mut text = plain_file::read(path, MAX_POINTER_BYTES)?;
    while text.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        text.pop();
    }
    // For git the text ends there.
    if text.contains(&0) {
        Err(ErrorKind::InvalidData.into())
    } else {
        Ok(OsString::from_vec(text))
    }
}

/// Returns git's directory for a worktree.
pub(super) fn directory(tree: &Path) -> PathBuf {
    link(tree).unwrap_or_else(|| tree.join(".git"))
}

/// Returns the directory that all worktrees of a repository share, or why the file that names it cannot be used.
pub(super) fn common(directory: &Path) -> Result<PathBuf, String> {
    let file = directory.join("commondir");
    let named = match pointer(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(directory.to_owned()),
        named => named.and_then(|named| directory.join(named).canonicalize()),
    };
    named.map_err(|error| format!("{} cannot be used: {error}", file.display()))
}

fn neutral(settings: &[(PathBuf, GitSetting)]) -> Vec<(Vec<u8>, &'static str)> {
    let named =
        |(_, setting): &(PathBuf, GitSetting)| Some((setting.key.clone(), setting.neutral()?));
    let mut neutral: Vec<_> = settings.iter().filter_map(named).collect();
    neutral.sort_unstable();
    neutral.dedup();
    neutral
}

/// Returns the directory that a `.git` is or leads to, and whether that directory names the `.git` as that of its
/// worktree.
fn led_to(git: &Path) -> Result<(PathBuf, bool), String> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| format!("cannot use {}: {error}", path.display()))
    };
    if git.is_dir() {
        return Ok((real(git)?, false));
    }
    let named = git.parent().and_then(link);
    let named = named.ok_or_else(|| format!("{} names no repository", git.display()))?;
    let directory = real(&named)?;
    let back = pointer(&directory.join("gitdir"))
        .and_then(|back| directory.join(back).canonicalize())
        .ok();
    let is_known = directory.join("commondir").is_file() && back == git.canonicalize().ok();
    Ok((directory, is_known))
}

#[cfg(test)]
mod git_place_tests {
    use std::path::PathBuf;

    use super::*;

    fn setting(key: &str, value: &str) -> Vec<(PathBuf, GitSetting)> {
        let setting = GitSetting { key: key.into(), value: Some(value.into()) };
        vec![(PathBuf::from("config"), setting)]
    }

    /// Makes directories, and files with texts.
    fn place(directories: &[&str], files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        for directory in directories {
            std::fs::create_dir_all(root.join(directory)).expect("made");
        }
        for (file, text) in files {
            std::fs::write(root.join(file), text).expect("written");
        }
        (kept, root)
    }

    fn found(at: &Path) -> FoundRepository {
        match GitPlace::find(at, None) {
            Ok(GitPlace::Found(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pointers_are_read_as_git_reads_them() {
        let files: [(&str, &[u8]); 4] = [
            ("a/.git", b"gitdir: ../git \r\n\n"),
            ("git /commondir", b"../common\t\n"),
            ("b/.git", b"gitdir: ../git \0x\n"),
            ("c/.git", b"gitdir:../git \n"),
        ];
        let (_kept, root) = place(&["a", "b", "c", "git ", "common\t"], &files);
        assert_eq!(
            link(&root.join("a")),
            Some(root.join("a/../git ")),
            "spaces belong to the name"
        );
        assert_eq!(link(&root.join("b")), None);
        assert_eq!(link(&root.join("c")), None);
        assert_eq!(common(&root.join("git ")), Ok(root.join("common\t")));
        assert_eq!(common(&root.join("a")), Ok(root.join("a")));
        std::fs::write(root.join("git /commondir"), b"../com\0mon").expect("written");
        assert!(common(&root.join("git ")).is_err());
    }

    #[test]
    fn git_gets_the_checked_place() {
        let (_kept, root) = place(&["r/.git/objects", "r/below"], &[]);
        let r = root.join("r");
        let repository = found(&r.join("below"));
        let arguments_of = |settings: &[(PathBuf, GitSetting)]| {
            let named = |(name, path): (OsString, OsString)| {
                (name.into_string().expect("text"), PathBuf::from(path))
            };
            repository.variables(settings).into_iter().map(named).collect::<Vec<_>>()
        };
        let ceiling = (CEILING.to_owned(), root.clone());
        let expected = [
            ceiling.clone(),
            ("GIT_DIR".to_owned(), r.join(".git")),
            ("GIT_WORK_TREE".to_owned(), r.clone()),
        ];
        assert_eq!(arguments_of(&[]), expected);
        assert_eq!(arguments_of(&setting("core.bare", "false")), expected);
        assert_eq!(
            arguments_of(&setting("core.bare", "true")),
            [ceiling],
            "git says that it is bare"
        );
    }

    #[test]
    fn note_of_a_run_names_its_repository_and_nothing_made_later() {
        let (_kept, root) = place(&["r/.git/objects", "r/old/objects", "run", "bare/objects"], &[]);
        let (r, run) = (root.join("r"), root.join("run"));
        note_repository(&run, &r);
        let text = std::fs::read_to_string(run.join(NOTE)).expect("noted");
        let noted: Vec<u64> = text.split(' ').filter_map(|inode| inode.parse().ok()).collect();
        let ground = GitGround { began: None, noted: Some(noted), exchange: None };
        assert!(ground.began_in(&r.join(".git")));
        std::fs::rename(r.join(".git"), root.join("away")).expect("moved");
        std::fs::rename(r.join("old"), r.join(".git")).expect("moved");
        assert!(!ground.began_in(&r.join(".git")));
        let judged = |key| {
            let judged = ground.judge(&found(&r), &setting(key, "x"));
            judged.map(|judged| judged.neutral)
        };
        assert_eq!(judged("user.name"), Ok(Vec::new()));
        let why = judged("core.hookspath").expect_err("it is refused");
        assert!(why.contains("is not the repository that the run began in"), "{why}");
        // The search ends here, whatever lies above the directory for temporary files.
        std::fs::write(root.join("bare/HEAD"), "ref: refs/heads/main\n").expect("written");
        note_repository(&run, &root.join("bare"));
        assert_eq!(std::fs::read_to_string(run.join(NOTE)).expect("noted"), "", "it has no .git");
    }
}
