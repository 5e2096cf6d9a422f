//! The configuration of the user: the file `raymond/config.yaml` in their configuration directory.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::error::Error;
use crate::language::user_config::{FILE, UserConfig, parse};
use crate::plain_file;

/// The directory of the file.
const DIRECTORY: &str = "raymond";

/// Reads what the user has set; nothing if there is no file.
///
/// # Errors
/// [`Error::Io`] if it cannot be read, [`Error::Manifest`] with the place of a mistake.
pub fn read() -> Result<UserConfig, Error> {
    let Some(path) = path() else { return Ok(UserConfig::default()) };
    let text = match plain_file::text(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(UserConfig::default());
        }
        Err(error) => return Err(Error::Io { doing: "read", path, error }),
    };
    parse(&text).map_err(|error| Error::Manifest { path: path.display().to_string(), error })
}

/// Returns the path of the file: in `XDG_CONFIG_HOME`, or in `~/.config`.
fn path() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let given = given.filter(|path| path.is_absolute());
    let base = given.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    let base = base.filter(|path| path.is_absolute())?;
    Some(base.join(DIRECTORY).join(FILE))
}
