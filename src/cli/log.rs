//! `raymond log`: what happened in a run, or to an agent, as it happens if asked to.

use std::io::{ErrorKind, Write, stdout};
use std::time::Duration;

use super::args::LogArgs;
use super::exit::{Error, Exit};
use super::whose::must_exist;
use crate::plugin::sentence::{printable, sentence};
use crate::store::journal::Journal;
use crate::store::layout::Root;
use crate::store::record::Flaw;
use crate::store::view::{look, no_such_run};
use crate::store::{lock, record};

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
    let mut journal = Journal::open(&dir.journal())?;
    loop {
        let held = args.follow && lock::is_held(&dir.lock())?.is_some();
        while let Some((seq, line)) = journal.read()? {
            let text = text(line, args).map_err(|flaw| journal.damaged(seq, &flaw))?;
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
fn text(line: String, args: &LogArgs) -> Result<Option<String>, Flaw> {
    if args.one.json && args.agent.is_none() {
        return Ok(Some(line));
    }
    let record = record::decode(&line)?;
    if args.agent.as_ref().is_some_and(|whose| !whose.is_about(&record.event)) {
        return Ok(None);
    }
    if args.one.json {
        return Ok(Some(line));
    }
    Ok(Some(format!("{}  {}", record.at, printable(&sentence(&record)))))
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
