//! The commands of an inbox that the journal has already: raymond was killed before it removed them.
//!
//! Requests to stop a run, which concern only the raymond that holds it.
//!
//! A run that ends may be asked to stop at the same moment. The sender first puts the request in, and then checks
//! whether the inbox is closed to requests. The holder first closes the inbox, and then removes the requests that
//! it has not taken. So each request is taken, or removed by one of the two: none stays, and the sender can tell
//! from the journal whether it was taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::draft::remove_abandoned;
use crate::inbox::{self, InboxCommand};
use crate::journal::JournalReader;
use crate::layout::RunDir;
use crate::proof::ProofKey;
use crate::{Error, files, record};
use raymond_model::event::{Event, RunCommand};

/// Returns the commands that are in the journal under these names.
///
/// # Errors
/// [`Error`] if the journal cannot be read.
pub fn received<'names>(
    dir: &RunDir,
    names: &BTreeSet<&'names str>,
) -> Result<BTreeMap<&'names str, RunCommand>, Error> {
    let mut received = BTreeMap::new();
    if names.is_empty() {
        return Ok(received);
    }
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        if line.contains("command_received")
            && let Event::CommandReceived { id, command } = record::decode(line)?.event
            && let Some(name) = names.get(id.as_str())
        {
            received.insert(*name, command);
        }
        Ok(())
    })?;
    Ok(received)
}

/// Returns the names of the commands of which nothing is left to do once their records are in the journal.
fn done(dir: &RunDir, names: &[String]) -> Result<BTreeSet<String>, Error> {
    let received = received(dir, &names.iter().map(String::as_str).collect())?;
    let done = received.into_iter().filter(|(_, command)| is_done_by_its_record(command));
    Ok(done.map(|(name, _)| name.to_owned()).collect())
}

/// Returns whether the record of a command is all that follows from it. Other commands have a further record, which may be
/// lost; they change nothing if they are taken again.
fn is_done_by_its_record(command: &RunCommand) -> bool {
    match command {
        RunCommand::Tell(_)
        | RunCommand::Hold(_)
        | RunCommand::Release(_)
        | RunCommand::Edit(_)
        | RunCommand::Attach(_)
        | RunCommand::StopAgent { .. } => true,
        RunCommand::Stop | RunCommand::Answer(_) | RunCommand::Retry(_) => false,
    }
}

/// Returns the commands in the inbox of a run that it has not taken yet, in the order in which it takes them.
///
/// # Errors
/// [`Error`] if the inbox or the journal cannot be read.
pub fn waiting(dir: &RunDir, key: &ProofKey) -> Result<Vec<InboxCommand>, Error> {
    if !dir.inbox().is_dir() {
        return Ok(Vec::new());
    }
    let mut waiting = inbox::list(&dir.inbox(), Some(key))?;
    let names: Vec<String> = waiting.iter().map(|one| one.name.clone()).collect();
    let done = done(dir, &names)?;
    waiting.retain(|one| !done.contains(&one.name));
    Ok(waiting)
}

/// Removes the commands from an inbox that were taken already.
pub(super) fn remove_taken(dir: &RunDir) -> Result<(), Error> {
    let inbox = dir.inbox();
    remove_abandoned(&inbox);
    let done = done(dir, &inbox::names(&inbox)?)?;
    done.iter().try_for_each(|name| inbox::remove(&inbox, name))
}

/// The name of the file that is there while an inbox takes no request to stop.
const CLOSED: &str = "closed";

/// Puts a request into the inbox of a run; returns false if the run is being let go, and the request is void.
///
/// # Errors
/// [`Error::Io`].
pub fn put(dir: &RunDir, name: &str, key: &ProofKey) -> Result<bool, Error> {
    inbox::put(&dir.inbox(), name, &RunCommand::Stop, key)?;
    if marker(&dir.inbox()).exists() {
        inbox::remove(&dir.inbox(), name)?;
        return Ok(false);
    }
    Ok(true)
}

/// Returns whether a request still lies in the inbox.
pub fn is_waiting(dir: &RunDir, name: &str) -> bool {
    dir.inbox().join(format!("{name}.json")).exists()
}

/// Returns whether a request was taken, as the journal has it.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Io`].
pub fn was_taken(dir: &RunDir, name: &str) -> Result<bool, Error> {
    let mut is_taken = false;
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        is_taken |= line.contains(name);
        Ok(())
    })?;
    Ok(is_taken)
}

/// Closes an inbox to requests, and removes those that were not taken.
pub(super) fn close(inbox: &Path) -> Result<(), Error> {
    let path = marker(inbox);
    let made = files::private().write(true).create(true).truncate(true).open(&path);
    made.map_err(Error::io("write", &path))?;
    inbox::stops(inbox)?.iter().try_for_each(|name| inbox::remove(inbox, name))
}

/// Opens an inbox to requests again.
pub(super) fn reopen(inbox: &Path) -> Result<(), Error> {
    let path = marker(inbox);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

fn marker(inbox: &Path) -> PathBuf {
    inbox.join(CLOSED)
}

#[cfg(test)]
mod stop_request_tests {
    use super::*;
    use crate::layout::RunsRoot;
    use raymond_model::id::RunId;

    fn key() -> ProofKey {
        ProofKey::new("k")
    }

    fn place() -> (tempfile::TempDir, RunDir) {
        let place = tempfile::tempdir().expect("a directory");
        let dir = RunsRoot::new(place.path()).run(&RunId::parse("r").expect("an id"));
        files::make_dir(&dir.inbox()).expect("an inbox");
        (place, dir)
    }

    #[test]
    fn stop_request_before_close_is_removed_by_the_holder() {
        let (_place, dir) = place();
        assert!(put(&dir, "a", &key()).expect("put") && is_waiting(&dir, "a"));
        close(&dir.inbox()).expect("closed");
        assert!(!is_waiting(&dir, "a"));
    }

    #[test]
    fn stop_request_after_close_is_void_until_reopen() {
        let (_place, dir) = place();
        close(&dir.inbox()).expect("closed");
        assert!(!put(&dir, "a", &key()).expect("put") && !is_waiting(&dir, "a"));
        reopen(&dir.inbox()).expect("opened");
        reopen(&dir.inbox()).expect("open already");
        assert!(put(&dir, "b", &key()).expect("put") && is_waiting(&dir, "b"));
    }

    #[test]
    fn closing_inbox_retains_other_commands() {
        let (_place, dir) = place();
        let given = raymond_model::question::AnswerCommand {
            agent: None,
            step: None,
            node: "n".to_owned(),
            text: "yes".to_owned(),
        };
        inbox::put(&dir.inbox(), "answer", &RunCommand::Answer(given), &key()).expect("put");
        close(&dir.inbox()).expect("closed");
        assert_eq!(inbox::list(&dir.inbox(), Some(&key())).expect("listed").len(), 1);
    }

    #[test]
    fn journal_shows_which_stop_request_was_taken() {
        let (_place, dir) = place();
        let story = crate::record::encode(&raymond_model::event::Record {
            kept_session: None,
            seq: 1,
            at: raymond_model::time::Timestamp(0),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event: raymond_model::event::Event::CommandReceived {
                id: "0001-abc".to_owned(),
                command: RunCommand::Stop,
            },
        });
        std::fs::write(dir.journal(), story.expect("a line") + "\n").expect("written");
        assert!(was_taken(&dir, "0001-abc").expect("read"));
        assert!(!was_taken(&dir, "0002-def").expect("read"));
    }
}
