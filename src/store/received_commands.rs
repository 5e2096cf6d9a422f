//! The commands of an inbox that the journal has already: raymond was killed before it removed them.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::remove_abandoned;
use super::inbox::{self, InboxCommand};
use super::journal::JournalReader;
use super::layout::RunDir;
use super::{Error, record};
use crate::domain::event::{Event, RunCommand};
use crate::proof::ProofKey;

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
