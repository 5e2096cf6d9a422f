//! `raymond log`: what happened in a run, as it happens if asked to.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write, stdout};
use std::path::Path;
use std::time::Duration;

use super::args::LogArgs;
use super::exit::{Error, Exit};
use crate::plugin::sentence::{printable, sentence};
use crate::store::layout::Root;
use crate::store::view::no_such_run;
use crate::store::{self, lock, record};

/// How often a journal that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// `raymond log`
///
/// # Errors
/// [`Error`] if there is no such run, or a record is damaged.
pub fn log(args: &LogArgs) -> Result<Exit, Error> {
    let root = Root::new(&args.one.dir.dir);
    let dir = root.run(&args.one.run);
    if !dir.path().is_dir() {
        return Err(no_such_run(&root, &args.one.run).into());
    }
    let path = dir.journal();
    let failed = |error| Error::Io { doing: "read", path: path.clone(), error };
    let mut journal = Journal {
        reader: BufReader::new(File::open(&path).map_err(failed)?),
        seq: 0,
        partial: Vec::new(),
    };
    loop {
        let held = args.follow && lock::is_held(&dir.lock())?.is_some();
        while let Some(line) = journal.next(&path)? {
            if !show(&line, journal.seq, &path, args.one.json)? {
                return Ok(Exit::Success);
            }
        }
        if !held {
            return Ok(Exit::Success);
        }
        std::thread::sleep(LOOK);
    }
}

/// Prints a record; tells whether anyone still reads.
fn show(line: &str, seq: u64, path: &Path, json: bool) -> Result<bool, Error> {
    let text = if json {
        line.to_owned()
    } else {
        let record = record::decode(line).map_err(|flaw| damaged(path, seq, &flaw))?;
        format!("{}  {}", record::rfc3339(record.at), printable(&sentence(&record)))
    };
    let mut stdout = stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::Io { doing: "write", path: "stdout".into(), error }),
    }
}

fn damaged(path: &Path, seq: u64, flaw: &record::Flaw) -> Error {
    store::Error::Damaged { path: path.to_owned(), line: seq, record: seq, why: flaw.to_string() }
        .into()
}

struct Journal {
    reader: BufReader<File>,
    seq: u64,
    partial: Vec<u8>,
}

impl Journal {
    /// The next whole record; what is still being written, or was torn, is left for later.
    fn next(&mut self, path: &Path) -> Result<Option<String>, Error> {
        let read = self.reader.read_until(b'\n', &mut self.partial);
        read.map_err(|error| Error::Io { doing: "read", path: path.to_owned(), error })?;
        let Some(line) = self.partial.strip_suffix(b"\n") else { return Ok(None) };
        self.seq += 1;
        let text = record::check(line, self.seq)
            .map_err(|flaw| damaged(path, self.seq, &flaw))?
            .to_owned();
        self.partial.clear();
        Ok(Some(text))
    }
}
