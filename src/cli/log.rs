//! `raymond log`: what happened in a run, or to an agent, as it happens if asked to.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write, stdout};
use std::path::Path;
use std::time::Duration;

use super::args::LogArgs;
use super::exit::{Error, Exit};
use super::whose::must_exist;
use crate::plugin::sentence::{printable, sentence};
use crate::store::layout::Root;
use crate::store::view::{look, no_such_run};
use crate::store::{self, lock, record};

/// How often a journal that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// `raymond log`
///
/// # Errors
/// [`Error`] if there is no such run, a record is damaged, or there has been no such agent.
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
            let text = text(line, journal.seq, &path, args)?;
            if !text.map_or(Ok(true), |text| show(&text))? {
                return Ok(Exit::Success);
            }
        }
        if !held {
            break;
        }
        std::thread::sleep(LOOK);
    }
    if let Some(whose) = &args.agent {
        must_exist(&look(&root, &args.one.run)?.run, whose.agent())?;
    }
    Ok(Exit::Success)
}

/// What is shown of a record; nothing, if it is about another agent.
fn text(line: String, seq: u64, path: &Path, args: &LogArgs) -> Result<Option<String>, Error> {
    if args.one.json && args.agent.is_none() {
        return Ok(Some(line));
    }
    let record = record::decode(&line).map_err(|flaw| damaged(path, seq, &flaw))?;
    if args.agent.as_ref().is_some_and(|whose| !whose.is_about(&record.event)) {
        return Ok(None);
    }
    if args.one.json {
        return Ok(Some(line));
    }
    Ok(Some(format!("{}  {}", record::rfc3339(record.at), printable(&sentence(&record)))))
}

/// Prints a record; tells whether anyone still reads.
fn show(text: &str) -> Result<bool, Error> {
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
