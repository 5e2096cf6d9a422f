//! The text of one file of a workflow.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use super::capture::MAX_FILE;
use crate::plain_file;
use raymond_lang::source::Error;

/// The number of further tries to open a file while too many are open, and the pause before each.
const OPEN_RETRIES: u32 = 20;
const OPEN_PAUSE: Duration = Duration::from_millis(10);

/// Returns the text of a regular file, which is shown to people as `shown`.
pub(super) fn text(real: &Path, shown: &str) -> Result<String, Error> {
    let path = || shown.to_owned();
    let unreadable =
        |error: std::io::Error| Error::Unreadable { path: path(), error: error.to_string() };
    let mut bytes = Vec::new();
    let mut file = plain_file::open(real);
    for _ in 0..OPEN_RETRIES {
        if !file.as_ref().is_err_and(plain_file::is_out_of_room) {
            break;
        }
        std::thread::sleep(OPEN_PAUSE);
        file = plain_file::open(real);
    }
    let file = file.map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > MAX_FILE {
        return Err(Error::TooLong { path: path(), size, limit: MAX_FILE });
    }
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(unreadable)?;
    decoded(bytes, shown)
}

/// Returns the text of a file's bytes.
pub(super) fn decoded(bytes: Vec<u8>, shown: &str) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|&byte| byte == b'\n').count();
        let column = good.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        Error::NotText { path: shown.to_owned(), line, column }
    })
}
