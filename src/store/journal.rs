//! Reads a journal from its beginning, judging every line.
//!
//! A bad last line is a write that was torn when the machine stopped: nobody was told of it, so it
//! is cut off. A bad line with others after it is damage, and nothing is guessed.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use super::Error;
use super::record::{Flaw, check};

/// What a journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of its last record.
    pub last: u64,
    /// Where that record ends, in bytes.
    pub end: u64,
    /// How many bytes of a torn record follow.
    pub torn: u64,
}

/// Reads all records in order; `visit` gets each line that is whole.
///
/// # Errors
/// [`Error::Damaged`] for a bad record that is not the last, [`Error::Io`], and whatever `visit`
/// finds wrong.
pub fn scan(
    path: &Path,
    mut visit: impl FnMut(u64, &str) -> Result<(), Flaw>,
) -> Result<Extent, Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut extent = Extent { last: 0, end: 0, torn: 0 };
    let mut line = Vec::new();
    let mut flaw: Option<Flaw> = None;
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(extent),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read", path)(error)),
        }
        let seq = extent.last + 1;
        if let Some(flaw) = flaw {
            let why = flaw.to_string();
            return Err(Error::Damaged { path: path.to_owned(), line: seq, record: seq, why });
        }
        let damaged = |flaw: Flaw| Error::Damaged {
            path: path.to_owned(),
            line: seq,
            record: seq,
            why: flaw.to_string(),
        };
        match line.strip_suffix(b"\n").ok_or(Flaw::NoChecksum).and_then(|line| check(line, seq)) {
            Ok(text) => {
                visit(seq, text).map_err(damaged)?;
                extent.last = seq;
                extent.end += line.len() as u64;
            }
            Err(found @ (Flaw::Order { .. } | Flaw::Meaning(_))) => return Err(damaged(found)),
            Err(found) => {
                extent.torn = line.len() as u64;
                flaw = Some(found);
            }
        }
    }
}
