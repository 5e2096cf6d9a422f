//! The directory of all runs: the one that was given, else the nearest `.raymond`, as git finds its own.
//!
//! The search goes up from the current directory. It ends at the home directory and where another file system begins.
//! It only finds a directory that belongs to this user: nobody else may say what this user's runs are.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Error;
use super::output;
use crate::domain::id::RunId;
use crate::runtime::directories;
use crate::store::layout::RunsRoot;

/// The name of the directory.
const NAME: &str = ".raymond";

/// The option for the directory of the runs.
#[derive(Debug, Clone, Default, Args)]
pub struct DirArgs {
    /// The directory of all runs [default: the nearest .raymond, in the current directory or above]
    #[arg(long, env = "RAYMOND_DIR", hide_env_values = true)]
    pub dir: Option<PathBuf>,
    /// The engine that has the runs of several machines, as in `postgres://USER@HOST/DATABASE`
    #[arg(long, value_name = "URL", env = "RAYMOND_ENGINE", hide_env_values = true)]
    pub engine: Option<String>,
}

impl DirArgs {
    /// Returns the same directory, for what stays on this machine.
    pub(super) fn without_engine(&self) -> Self {
        Self { dir: self.dir.clone(), engine: None }
    }

    /// Returns whether a word is the id of a run here.
    pub(super) fn is_run(&self, word: &str) -> bool {
        let path = self.found().usable();
        RunId::parse(word).is_ok_and(|id| RunsRoot::new(path).run(&id).path().is_dir())
    }

    /// Returns the directory of all runs as it was given or found, to read in it. Says which directories of others were
    /// skipped, or that the only one belongs to another user.
    pub(super) fn root(&self) -> RunsRoot {
        if let Some(given) = &self.dir {
            return RunsRoot::new(given);
        }
        let found = self.found();
        let path = found.usable();
        for foreign in &found.foreign {
            output::warn(&if *foreign == path {
                format!(
                    "{} belongs to another user, who says what its runs are; --dir {0} uses it without this warning",
                    foreign.display()
                )
            } else {
                format!(
                    "{} is not used, because it belongs to another user; --dir {0} uses it, {} is used instead",
                    foreign.display(),
                    path.display()
                )
            });
        }
        RunsRoot::new(if path.parent() == Some(&found.here) { NAME.into() } else { path })
    }

    /// Returns the directory of all runs under its one real name, to write in it.
    ///
    /// # Errors
    /// [`Error::Usage`] if it was not given, and the only one belongs to another user; else as [`directories::root`].
    pub(super) fn real_root(&self) -> Result<RunsRoot, Error> {
        let found = self.found();
        let path = found.usable();
        if found.foreign.contains(&path) {
            return Err(Error::Usage(format!(
                "{} belongs to another user, who could say what your runs do; use it with --dir {0}, or name another directory with --dir",
                path.display()
            )));
        }
        Ok(directories::root(self.root().path())?)
    }

    fn found(&self) -> FoundRunsDir {
        if let Some(given) = &self.dir {
            return FoundRunsDir { path: Some(given.clone()), ..FoundRunsDir::default() };
        }
        let here = std::env::current_dir().unwrap_or_default();
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        search(&here, home.as_deref())
    }
}

/// The outcome of a search.
#[derive(Debug, Default, PartialEq, Eq)]
struct FoundRunsDir {
    /// The nearest directory of this user.
    path: Option<PathBuf>,
    /// The nearer ones of other users.
    foreign: Vec<PathBuf>,
    /// The directory where the search began.
    here: PathBuf,
}

impl FoundRunsDir {
    /// Returns the directory to use: the one of this user, or else the one where the search began.
    fn usable(&self) -> PathBuf {
        self.path.clone().unwrap_or_else(|| self.here.join(NAME))
    }
}

/// Searches upwards from a directory.
fn search(here: &Path, home: Option<&Path>) -> FoundRunsDir {
    let mut found = FoundRunsDir { here: here.to_owned(), ..FoundRunsDir::default() };
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    for folder in here.ancestors().take_while(|folder| device(folder) == device(here)) {
        let path = folder.join(NAME);
        if path.is_dir() {
            if is_own(&path) {
                found.path = Some(path);
                return found;
            }
            found.foreign.push(path);
        }
        if Some(folder) == home {
            break;
        }
    }
    found
}

/// Returns whether a directory belongs to this user, and so does the link that leads to it, if it is one.
fn is_own(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let owners = [path.symlink_metadata(), path.metadata()];
    owners.iter().all(|metadata| metadata.as_ref().is_ok_and(|found| found.uid() == user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a directory");
        let home = place.path().canonicalize().expect("real");
        std::fs::create_dir_all(home.join("project/deep/er")).expect("made");
        (place, home)
    }

    #[test]
    fn nearest_directory_above_is_found() {
        let (_place, home) = folders();
        let deep = home.join("project/deep/er");
        assert_eq!(search(&deep, Some(&home)).path, None);
        std::fs::create_dir(home.join(NAME)).expect("made");
        assert_eq!(search(&deep, Some(&home)).path, Some(home.join(NAME)));
        std::fs::create_dir(home.join("project").join(NAME)).expect("made");
        assert_eq!(search(&deep, Some(&home)).path, Some(home.join("project").join(NAME)));
        std::fs::write(deep.join(NAME), "no directory").expect("written");
        assert_eq!(search(&deep, Some(&home)).path, Some(home.join("project").join(NAME)));
    }

    #[test]
    fn search_ends_at_home_directory() {
        let (_place, home) = folders();
        std::fs::create_dir(home.join(NAME)).expect("made");
        let project = home.join("project");
        assert_eq!(search(&project.join("deep"), Some(&project)).path, None);
    }

    #[test]
    fn directory_of_another_user_is_skipped() {
        let (_place, home) = folders();
        let project = home.join("project");
        let foreign = project.join(NAME);
        // Root may give a directory away; anyone else finds those of root.
        let given = project.join("deep");
        let target = match std::os::unix::fs::chown(&given, Some(12345), None) {
            Ok(()) => given,
            Err(_) => PathBuf::from("/"),
        };
        std::os::unix::fs::symlink(target, &foreign).expect("linked");
        let only = search(&project, Some(&project));
        assert_eq!(
            (&only.usable(), &only.foreign),
            (&foreign, &vec![foreign.clone()]),
            "it is the only one"
        );
        std::fs::create_dir(home.join(NAME)).expect("made");
        let found = search(&project, Some(&home));
        assert_eq!(found.usable(), home.join(NAME));
        assert_eq!((found.path, found.foreign), (Some(home.join(NAME)), vec![foreign]));
    }
}
