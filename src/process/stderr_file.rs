//! The stderr of a process, of which only the end is kept.
//!
//! The process appends to the file itself, so it does not depend on the runtime. The runtime cuts the file back to its
//! end while it follows a turn, when the turn is over, and after the end of the process.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::plain_file;

/// The number of bytes of its end that are kept.
const KEPT_BYTES: u64 = 64 * 1024;

/// The length up to which the file of a running process is left as it is, in bytes.
const MAX_BYTES_MEANWHILE: u64 = 1024 * 1024;

/// The number of bytes of its end that are shown.
const SHOWN_BYTES: u64 = 2048;

/// The ending of its name.
const ENDING: &str = "stderr";

/// Makes the file, to which all is appended.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = plain_file::create(path)?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// Returns the end of a file, for people; `None` if it cannot be read.
pub(super) fn shown_end(path: &Path) -> Option<String> {
    let bytes = end_of(&mut plain_file::open(path).ok()?, SHOWN_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Cuts the file of a process that may still run back to its end, once it is long. A file that cannot be cut is left as
/// it is.
pub(super) fn cut_back_meanwhile(path: &Path) {
    let _ = cut_back(path, MAX_BYTES_MEANWHILE);
}

/// Cuts the file of a process back to its end.
pub(super) fn cut_back_at_end(path: &Path) {
    let _ = cut_back(path, KEPT_BYTES);
}

/// Cuts the files of all processes in a directory back to their ends.
pub(super) fn cut_back_all(steps: &Path) {
    let paths = std::fs::read_dir(steps).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = paths.filter(|path| path.extension() == Some(OsStr::new(ENDING)));
    files.for_each(|path: PathBuf| cut_back_at_end(&path));
}

/// Cuts a file that is longer than it may be back to its end. What is written at the same moment may be lost.
fn cut_back(path: &Path, longest: u64) -> io::Result<()> {
    if path.symlink_metadata()?.len() <= longest {
        return Ok(());
    }
    let mut file = plain_file::open_with(path, OpenOptions::new().read(true).append(true))?;
    let end = end_of(&mut file, KEPT_BYTES)?;
    file.set_len(0)?;
    file.write_all(&end)
}

fn end_of(file: &mut File, longest: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(longest)))?;
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_stays_and_the_process_writes_on() {
        let steps = tempfile::tempdir().expect("a directory");
        let path = steps.path().join("1-0.stderr");
        let length = || path.metadata().expect("it is there").len();
        let mut child = create(&path).expect("made");
        let line = [b'x'; 1023];
        let mut written = 0;
        while written < 3 * MAX_BYTES_MEANWHILE {
            child.write_all(&line).and_then(|()| child.write_all(b"\n")).expect("written");
            written += 1024;
            cut_back_meanwhile(&path);
            assert!(length() <= MAX_BYTES_MEANWHILE, "{}", length());
        }
        cut_back_at_end(&path);
        assert_eq!(length(), KEPT_BYTES);
        child.write_all(b"the last words\n").expect("written");
        cut_back_all(steps.path());
        assert_eq!(length(), KEPT_BYTES);
        let shown = shown_end(&path).expect("read");
        assert!(shown.ends_with("x\nthe last words\n") && shown.len() == 2048, "{shown}");
        std::fs::write(&path, "short").expect("written");
        cut_back_all(steps.path());
        assert_eq!(std::fs::read(&path).expect("read"), b"short");
    }
}
