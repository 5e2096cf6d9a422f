//! Finds the repository that git is to work in, and decides whether it may.
//!
//! git itself would take any directory with the right files for a repository, and do what its configuration says. So the
//! repository is found here first. Only a `.git` makes one, and what its configuration would execute is taken back. One
//! that was made after the run began may have no such setting, and may lead nowhere else.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::domain::git_config::{GitSetting, read_git_config};
use crate::plain_file;

/// The longest configuration that is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 4 * 1024 * 1024;

/// The most files that a configuration may consist of.
const MAX_FILES: usize = 64;

/// The longest file that leads git elsewhere, in bytes.
const MAX_POINTER_BYTES: u64 = 4096;

/// What is known about a run when its repositories are judged.
pub(super) struct GitGround<'run> {
    /// The time at which the run began, if the file system tells it.
    pub(super) began: Option<SystemTime>,
    /// git's directory of the clone that raymond has made of the run's exchange.
    pub(super) exchange: Option<PathBuf>,
    /// The user's home, which paths in configurations can begin with.
    pub(super) home: Option<&'run OsStr>,
}

/// The place that git works in.
#[derive(Debug, Default)]
pub(super) struct GitPlace {
    /// The directory above which git is not to look for a repository.
    pub(super) ceiling: Option<PathBuf>,
    /// The keys to be overridden, and the values that take back what they name.
    pub(super) neutral: Vec<(Vec<u8>, &'static str)>,
}

/// The reason why git is not run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoGit {
    /// The directory is a repository without a `.git`.
    Bare(String),
    /// The repository is not to be trusted, or cannot be read.
    Refused(String),
}

impl From<String> for NoGit {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// Returns the time at which a file was made, if the file system tells it.
pub(super) fn made_at(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().ok()?.created().ok()
}

impl GitGround<'_> {
    /// Finds the repository from a directory upwards, but not in the `ceilings` or above them.
    pub(super) fn find(&self, cwd: &Path, ceilings: Option<&OsStr>) -> Result<GitPlace, NoGit> {
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let ceilings: Vec<PathBuf> = ceilings
            .map(|all| std::env::split_paths(all).map(|one| one.canonicalize().unwrap_or(one)))
            .into_iter()
            .flatten()
            .collect();
        for directory in cwd.ancestors() {
            if directory != cwd && ceilings.iter().any(|ceiling| ceiling == directory) {
                break;
            }
            let git = directory.join(".git");
            match git.symlink_metadata() {
                Ok(_) => {
                    let neutral = self.judge(directory, &git)?;
                    return Ok(GitPlace { ceiling: parent(directory), neutral });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", git.display()).into()),
            }
            // Files such as these make a repository for git, whoever wrote them.
            let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
            if has("HEAD") && (has("objects") || has("commondir")) {
                let inside = directory.iter().any(|name| name == ".git");
                let what = if inside { "belongs to git itself" } else { "is a bare repository" };
                let shown = directory.display();
                return Err(NoGit::Bare(format!(
                    "{shown} {what}: run in a clone or a worktree of it, with --cwd"
                )));
            }
        }
        Ok(GitPlace { ceiling: parent(&cwd), neutral: Vec::new() })
    }

    /// Returns the place of a repository whose directory raymond itself names to git.
    pub(super) fn named(&self, directory: &Path) -> Result<GitPlace, NoGit> {
        let settings = self.settings(directory, &common(directory)?)?;
        Ok(GitPlace { ceiling: None, neutral: neutral(&settings) })
    }

    /// Judges the repository that `git` in a directory makes; returns the settings to be overridden.
    fn judge(&self, root: &Path, git: &Path) -> Result<Vec<(Vec<u8>, &'static str)>, NoGit> {
        let (directory, is_known) = led_to(git)?;
        let shared = common(&directory)?;
        let was_there = |path: &Path| match (self.began, made_at(path)) {
            (Some(began), Some(made)) => made <= began,
            // It cannot be told; what its configuration names is not executed in any case.
            _ => true,
        };
        let settings = self.settings(&directory, &shared)?;
        let refused = |why: String| {
            Err(NoGit::Refused(format!(
                "the repository of {} was made after the run began, and {why}: git is not run there",
                root.display()
            )))
        };
        let is_linked = directory.join("commondir").is_file();
        let tree = settings.iter().filter(|_| !is_linked).find_map(|(_, one)| one.worktree());
        let is_tree = tree.map(|tree| {
            let tree = directory.join(OsStr::from_bytes(tree)).canonicalize();
            tree.is_ok_and(|tree| tree == root)
        });
        if is_tree == Some(false) {
            return Err(NoGit::Refused(format!(
                "the configuration of the repository of {} gives it another working tree (core.worktree): git is not run there",
                root.display()
            )));
        }
        let is_own = self
            .exchange
            .as_ref()
            .is_some_and(|own| own.canonicalize().is_ok_and(|own| own == shared));
        if is_own || (was_there(&shared) && (was_there(git) || is_known)) {
            return Ok(neutral(&settings));
        }
        if !git.is_dir() && !is_known && is_tree != Some(true) {
            return refused(format!("leads to {}, which does not name it", directory.display()));
        }
        if let Some((file, setting)) = settings.iter().find(|(_, one)| !one.is_plain()) {
            return refused(format!(
                "{} sets {}, which can name programs; remove it with `git config --unset`",
                file.display(),
                String::from_utf8_lossy(&setting.key)
            ));
        }
        if is_known && shared.file_name() != Some(OsStr::new(".git")) {
            return refused(format!("is a worktree of the bare repository {}", shared.display()));
        }
        if shared.join("objects/info/alternates").symlink_metadata().is_ok() {
            return refused("takes objects of another one (objects/info/alternates)".to_owned());
        }
        Ok(Vec::new())
    }

    /// Returns the settings of a repository, also of the files that it includes, whatever the condition is.
    fn settings(
        &self,
        directory: &Path,
        shared: &Path,
    ) -> Result<Vec<(PathBuf, GitSetting)>, String> {
        let mut files = vec![
            shared.join("config"),
            shared.join("config.worktree"),
            directory.join("config.worktree"),
        ];
        let (mut seen, mut settings) = (BTreeSet::new(), Vec::new());
        while let Some(file) = files.pop() {
            // A link is followed, as git does; what it leads to has to be a plain file.
            let opened = file;
            let Ok(file) = opened.canonicalize() else { continue };
            if !seen.insert(file.clone()) {
                continue;
            }
            let unusable = |why: String| {
                format!(
                    "the configuration {} of a git repository cannot be used: {why}",
                    file.display()
                )
            };
            if seen.len() > MAX_FILES {
                return Err(unusable(format!("more than {MAX_FILES} files are included")));
            }
            let text = plain_file::read(&file, MAX_CONFIG_BYTES)
                .map_err(|error| unusable(error.to_string()))?;
            let read = read_git_config(&text)
                .map_err(|line| unusable(format!("line {line} is not valid")))?;
            for setting in read {
                if let Some(path) = setting.included() {
                    files.push(self.included(&opened, path).map_err(unusable)?);
                }
                settings.push((file.clone(), setting));
            }
        }
        Ok(settings)
    }

    fn included(&self, from: &Path, path: &[u8]) -> Result<PathBuf, String> {
        let path = match path {
            [b'~', b'/', rest @ ..] => {
                return Ok(Path::new(self.home.unwrap_or_default()).join(OsStr::from_bytes(rest)));
            }
            [b'~' | b'%', ..] => {
                let path = String::from_utf8_lossy(path);
                return Err(format!("it includes {path}: write the path in full"));
            }
            path => OsStr::from_bytes(path),
        };
        Ok(from.parent().unwrap_or(from).join(path))
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

fn parent(directory: &Path) -> Option<PathBuf> {
    directory.parent().map(Path::to_owned)
}

fn neutral(settings: &[(PathBuf, GitSetting)]) -> Vec<(Vec<u8>, &'static str)> {
    let named = |(_, one): &(PathBuf, GitSetting)| Some((one.key.clone(), one.neutral()?));
    let mut neutral: Vec<_> = settings.iter().filter_map(named).collect();
    neutral.sort_unstable();
    neutral.dedup();
    neutral
}

/// Returns the directory that a `.git` is or leads to, and whether that directory names the `.git` as that of its worktree.
pub(super) fn led_to(git: &Path) -> Result<(PathBuf, bool), String> {
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
