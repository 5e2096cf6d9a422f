//! Directories under their one real name: the directory of all runs, and the directories that a run stores.
//!
//! A running turn is recognised by this name in its environment, so a directory must never have two names. Links and
//! `..` are resolved, even if the directory does not exist yet.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::error::Error;
use crate::language::plugins;
use crate::language::plugins::UserConfig;
use crate::plain_file;
use crate::store::files;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;

/// Resolves the directory that was given.
///
/// # Errors
/// [`Error::Io`] if it cannot be resolved, [`Error::NotText`] if its name is not UTF-8.
pub fn root(given: &Path) -> Result<RunsRoot, Error> {
    let failed = |error| Error::Io { doing: "find the directory", path: given.to_owned(), error };
    let absolute = std::path::absolute(given).map_err(failed)?;
    let real = if let Some((ancestor, rest)) = existing_ancestor(&absolute) {
        // An empty rest would leave a slash at the end, which would be another name.
        ancestor.canonicalize().map_err(failed)?.join(rest).components().collect()
    } else {
        files::make_dir(&absolute)?;
        absolute.canonicalize().map_err(failed)?
    };
    if real.to_str().is_none() {
        let what = "the path of the directory of all runs";
        return Err(Error::NotText { path: given.to_owned(), what });
    }
    Ok(RunsRoot::new(real))
}

/// Returns the directory of this user's own state: `raymond` in `XDG_STATE_HOME`, or in `~/.local/state`.
///
/// # Errors
/// [`Error::NoHome`].
pub fn user_state() -> Result<UserState, Error> {
    let base = of_user("XDG_STATE_HOME", ".local/state").ok_or(Error::NoHome)?;
    Ok(UserState::new(base))
}

/// Reads what the user has set in `raymond/config.yaml` in their configuration directory. Returns an empty
/// configuration if the file does not exist.
///
/// # Errors
/// [`Error::Io`] if it cannot be read, [`Error::Manifest`] with the place of a mistake.
pub fn user_config() -> Result<UserConfig, Error> {
    let Some(base) = of_user("XDG_CONFIG_HOME", ".config") else {
        return Ok(UserConfig::default());
    };
    let path = base.join(plugins::FILE);
    let text = match plain_file::text(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(UserConfig::default());
        }
        Err(error) => return Err(Error::Io { doing: "read", path, error }),
    };
    plugins::parse(&text)
        .map_err(|error| Error::Manifest { path: path.display().to_string(), error })
}

/// Returns raymond's directory among those of the user: in the directory that a variable names, or else below their
/// home.
fn of_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    let given = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = given.or_else(|| std::env::home_dir().map(|home| home.join(below_home)));
    Some(base.filter(|path| path.is_absolute())?.join("raymond"))
}

/// Returns the real path of a directory, as text that the journal can hold.
///
/// # Errors
/// [`Error::Io`] and [`Error::NotText`].
pub fn directory(path: &Path) -> Result<String, Error> {
    let real = path
        .canonicalize()
        .and_then(
            |real| {
                if real.is_dir() { Ok(real) } else { Err(ErrorKind::NotADirectory.into()) }
            },
        )
        .map_err(|error| Error::Io {
            doing: "work in the directory",
            path: path.to_owned(),
            error,
        })?;
    real.into_os_string()
        .into_string()
        .map_err(|_| Error::NotText { path: path.to_owned(), what: "the path of a directory" })
}

/// Returns the part of a path that exists, and the rest. `None` if the rest leads upwards, because its meaning then
/// depends on directories that do not exist.
fn existing_ancestor(path: &Path) -> Option<(&Path, PathBuf)> {
    let ancestor = path.ancestors().find(|ancestor| ancestor.exists())?;
    let rest = path.strip_prefix(ancestor).ok()?;
    let upwards = rest.components().any(|part| part == Component::ParentDir);
    (!upwards).then(|| (ancestor, rest.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_spelling_of_directory_resolves_to_its_real_path() {
        let place = tempfile::tempdir().expect("a directory");
        let real = place.path().canonicalize().expect("real").join("real");
        std::fs::create_dir(&real).expect("made");
        symlink(&real, place.path().join("link")).expect("linked");
        for spelling in ["real", "link", "link/../real", "link/."] {
            let root = root(&place.path().join(spelling)).expect("resolved");
            assert_eq!(root.path(), real, "{spelling}");
        }
        let new = root(&place.path().join("link/new/runs")).expect("resolved");
        assert_eq!(new.path(), real.join("new/runs"));
        assert!(!real.join("new").exists(), "it is not made before it is needed");
    }
}
