//! Reads a journal from its beginning, judging every line.
//!
//! A bad last line is a write that was torn when the machine stopped: nobody was told of it, so it
//! is cut off. A bad line with others after it is damage, and nothing is guessed. Only what is there
//! when it is opened is read, so a journal that is being written can be read too. It is one file that
//! only grows: a snapshot shortens recovery, and the story stays whole for who asks for it.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use super::Error;
use super::record::{Flaw, check, has_more};

/// What a journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of its last record.
    pub last: u64,
    /// Where that record ends, in bytes.
    pub end: u64,
    /// How many bytes follow that are not a whole record, or not the whole of a moment.
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
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Empty { path: path.to_owned() },
        _ => Error::io("open", path)(error),
    })?;
    let length = file.metadata().map_err(Error::io("read", path))?.len();
    let mut reader = BufReader::with_capacity(256 * 1024, file.take(length));
    let mut extent = Extent { last: 0, end: 0, torn: 0 };
    let (mut line, mut moment, mut position) = (Vec::new(), Vec::new(), 0);
    while next(&mut reader, &mut line).map_err(Error::io("read", path))? {
        let seq = extent.last + moment.len() as u64 + 1;
        let damaged = |flaw: Flaw| Error::Damaged {
            path: path.to_owned(),
            line: seq,
            record: seq,
            why: flaw.to_string(),
        };
        position += line.len() as u64;
        match line.strip_suffix(b"\n").ok_or(Flaw::NoChecksum).and_then(|line| check(line, seq)) {
            Ok(text) if has_more(text) => moment.push(text.to_owned()),
            Ok(text) => {
                for (seq, earlier) in (extent.last + 1..).zip(moment.drain(..)) {
                    visit(seq, &earlier).map_err(damaged)?;
                }
                visit(seq, text).map_err(damaged)?;
                (extent.last, extent.end) = (seq, position);
            }
            Err(Flaw::NoChecksum | Flaw::Checksum) if position == length => break,
            Err(flaw) => return Err(damaged(flaw)),
        }
    }
    extent.torn = position - extent.end;
    Ok(extent)
}

/// Reads a line, with its end if it has one; tells whether there was any.
fn next(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    loop {
        match reader.read_until(b'\n', line) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.map(|_| !line.is_empty()),
        }
    }
}
