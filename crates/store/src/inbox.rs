//! The inbox of a run: commands from other processes, one file each.
//!
//! A command is written to a temporary file and renamed into place, so that it exists completely or not at all. Once it
//! is in the journal, its file is removed. Other programs can put files there, so only a plain file of bounded size is
//! read, and anything else stays. A command has a proof that its writer has the user's key. A command without a proof
//! is not from the user.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirEntry, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use raymond_model::event::{Event, RunCommand};
use serde::{Deserialize, Serialize};

use super::draft::remove_abandoned;
use super::{Error, files};
use crate::journal::JournalReader;
use crate::layout::RunDir;
use crate::proof::ProofKey;
use crate::{plain_file, record};

/// The longest command, in bytes: a person's answer, with room to spare.
const MAX_LENGTH: u64 = 4 * 1024 * 1024;

/// The purpose of the proofs of commands.
const PURPOSE: &str = "inbox";

/// A command as it lies in the inbox.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenCommand {
    #[serde(flatten)]
    command: RunCommand,
    #[serde(default)]
    proof: String,
}

/// Puts a command in, with its proof; it is durable when this returns.
///
/// # Errors
/// [`Error::Io`].
pub fn put(inbox: &Path, name: &str, command: &RunCommand, key: &ProofKey) -> Result<(), Error> {
    let path = inbox.join(format!("{name}.json"));
    let proof = key.proof(PURPOSE, &proven_content(inbox, name, command));
    let text = files::json(&path, &ProvenCommand { command: command.clone(), proof })?;
    if text.len() as u64 > MAX_LENGTH {
        let why = format!("it has {} bytes, and may have {MAX_LENGTH}; shorten it", text.len());
        return Err(Error::io("write", &path)(std::io::Error::other(why)));
    }
    files::replace_among_others(&path, &text)
}

/// Waits for the turn of this process to look at a run and put in a command that depends on it; the turn ends when
/// the result is dropped.
///
/// # Errors
/// [`Error::Io`].
pub fn turn(inbox: &Path) -> Result<File, Error> {
    files::make_dir(inbox)?;
    let path = inbox.join("turn");
    let file = plain_file::open_with(&path, files::private().create(true).append(true));
    let file = file.map_err(Error::io("open", &path))?;
    file.lock().map_err(Error::io("lock", &path))?;
    remove_abandoned(inbox);
    Ok(file)
}

/// A command that waits in the inbox.
#[derive(Debug, PartialEq, Eq)]
pub struct InboxCommand {
    /// Its name, for [`remove`].
    pub name: String,
    /// The command; `None` if this program does not know it.
    pub command: Option<RunCommand>,
    /// The reason why it was not read, if so: it is not a plain file, too long, or not proven.
    pub unread: Option<String>,
    proof: String,
}

/// Returns the content that a proof covers: the run, the name of the entry and the command.
fn proven_content(inbox: &Path, name: &str, command: &RunCommand) -> Vec<u8> {
    let run = inbox.parent().and_then(Path::file_name).unwrap_or_default();
    let command = serde_json::to_string(command).unwrap_or_default();
    format!("{}\n{name}\n{command}", run.display()).into_bytes()
}

/// Returns all waiting commands, in the order of their names. A command whose proof does not hold is not read, and
/// without a key no proof holds.
///
/// # Errors
/// [`Error::Io`].
pub fn list(inbox: &Path, key: Option<&ProofKey>) -> Result<Vec<InboxCommand>, Error> {
    let mut waiting = entries(inbox)?;
    for InboxCommand { name, command, unread, proof } in &mut waiting {
        let Some(found) = command.as_ref() else { continue };
        let content = proven_content(inbox, name, found);
        if !key.is_some_and(|key| key.holds(PURPOSE, &content, proof)) {
            *command = None;
            *unread = Some("it has no proof that you wrote it".to_owned());
        }
    }
    Ok(waiting)
}

/// Returns the names of all entries, commands or not.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn names(inbox: &Path) -> Result<Vec<String>, Error> {
    let entries = files::entries(inbox)?.into_iter();
    let name =
        |entry: DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
    Ok(entries.filter_map(name).collect())
}

/// Returns all waiting commands, from any writer.
fn entries(inbox: &Path) -> Result<Vec<InboxCommand>, Error> {
    let mut waiting = Vec::new();
    for entry in std::fs::read_dir(inbox).map_err(Error::io("read", inbox))? {
        let entry = entry.map_err(Error::io("read", inbox))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        let (found, unread) = match plain_file::read(&entry.path(), MAX_LENGTH) {
            Ok(bytes) => (serde_json::from_slice::<ProvenCommand>(&bytes).ok(), None),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // The later commands still have to be read, because one of them may be `stop`.
            Err(error) => (None, Some(error.to_string())),
        };
        let (command, proof) = found.map(|found| (found.command, found.proof)).unzip();
        let proof = proof.unwrap_or_default();
        waiting.push(InboxCommand { name: name.to_owned(), command, unread, proof });
    }
    waiting.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(waiting)
}

/// Returns the names of the commands to stop, from any writer. Commands that lie here before a run is resumed were
/// meant for the raymond that held it last.
///
/// # Errors
/// [`Error::Io`].
pub fn stops(inbox: &Path) -> Result<Vec<String>, Error> {
    let waiting = if inbox.is_dir() { entries(inbox)? } else { Vec::new() };
    let stops = waiting.into_iter().filter(|entry| entry.command == Some(RunCommand::Stop));
    Ok(stops.map(|entry| entry.name).collect())
}

/// Removes a command that is in the journal.
///
/// # Errors
/// [`Error::Io`], but not if it is gone already.
pub fn remove(inbox: &Path, name: &str) -> Result<(), Error> {
    files::remove(&inbox.join(format!("{name}.json")))
}

// The commands of an inbox that the journal has already: raymond was killed before it removed them.

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

/// Returns whether the record of a command is all that follows from it. Other commands have a further record, which may
/// be lost; they change nothing if they are taken again.
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
    let mut waiting = list(&dir.inbox(), Some(key))?;
    let names: Vec<String> = waiting.iter().map(|command| command.name.clone()).collect();
    let done = done(dir, &names)?;
    waiting.retain(|command| !done.contains(&command.name));
    Ok(waiting)
}

/// Removes the commands from an inbox that were taken already.
pub(super) fn remove_taken(dir: &RunDir) -> Result<(), Error> {
    let inbox = dir.inbox();
    remove_abandoned(&inbox);
    let done = done(dir, &names(&inbox)?)?;
    done.iter().try_for_each(|name| remove(&inbox, name))
}

// Requests to stop a run, which concern only the raymond that holds it.
//
// A run that ends may be asked to stop at the same moment. The sender first puts the request in, and then checks
// whether the inbox is closed to requests. The holder first closes the inbox, and then removes the requests that
// it has not taken. So each request is taken, or removed by one of the two: none stays, and the sender can tell
// from the journal whether it was taken.

/// The name of the file that is there while an inbox takes no request to stop.
const CLOSED: &str = "closed";

/// Puts a request into the inbox of a run; returns false if the run is being let go, and the request is void.
///
/// # Errors
/// [`Error::Io`].
pub fn keep_received(dir: &RunDir, name: &str, key: &ProofKey) -> Result<bool, Error> {
    put(&dir.inbox(), name, &RunCommand::Stop, key)?;
    if marker(&dir.inbox()).exists() {
        remove(&dir.inbox(), name)?;
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
    stops(inbox)?.iter().try_for_each(|name| remove(inbox, name))
}

/// Opens an inbox to requests again.
pub(super) fn reopen(inbox: &Path) -> Result<(), Error> {
    files::remove(&marker(inbox))
}

fn marker(inbox: &Path) -> PathBuf {
    inbox.join(CLOSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ProofKey {
        ProofKey::new("k")
    }

    #[test]
    fn command_needs_proof_for_its_run_name_and_content() {
        let place = tempfile::tempdir().expect("a directory");
        let inbox = |run: &str| {
            let inbox = place.path().join(run).join("inbox");
            std::fs::create_dir_all(&inbox).expect("made");
            inbox
        };
        let (first, second) = (inbox("one"), inbox("other"));
        put(&first, "a", &RunCommand::Stop, &key()).expect("put");
        let read = |inbox: &Path, key: Option<&ProofKey>| {
            let waiting = list(inbox, key).expect("listed");
            waiting.into_iter().filter(|entry| entry.command.is_some()).count()
        };
        assert_eq!(read(&first, Some(&key())), 1);
        assert_eq!(read(&first, Some(&ProofKey::new("another"))), 0);
        assert_eq!(read(&first, None), 0);
        std::fs::copy(first.join("a.json"), first.join("b.json")).expect("copied");
        assert_eq!(read(&first, Some(&key())), 1, "under another name it is none");
        std::fs::copy(first.join("a.json"), second.join("a.json")).expect("copied");
        assert_eq!(read(&second, Some(&key())), 0, "nor of another run");
        std::fs::write(second.join("a.json"), "{\"command\":\"stop\"}").expect("written");
        let waiting = list(&second, Some(&key())).expect("listed");
        assert_eq!(waiting[0].unread.as_deref(), Some("it has no proof that you wrote it"));
        assert_eq!(stops(&second).expect("listed"), ["a"]);
    }

    #[test]
    fn commands_are_listed_in_order_and_removed_once() {
        let dir = tempfile::tempdir().expect("a directory");
        put(dir.path(), "b", &RunCommand::Stop, &key()).expect("put");
        put(dir.path(), "a", &RunCommand::Stop, &key()).expect("put");
        std::fs::write(dir.path().join("c.json"), "{\"command\":\"dance\"}").expect("written");
        std::fs::write(dir.path().join("d.json.new"), "{").expect("written");
        let waiting = list(dir.path(), Some(&key())).expect("listed");
        let names: Vec<&str> = waiting.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!((&waiting[0].command, &waiting[2].command), (&Some(RunCommand::Stop), &None));
        remove(dir.path(), "a").expect("removed");
        remove(dir.path(), "a").expect("gone already");
        assert_eq!(list(dir.path(), Some(&key())).expect("listed").len(), 2);
    }

    #[test]
    fn non_plain_inbox_entry_is_named_and_others_are_still_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        plain_file::make_fifo(&path("a.json"));
        std::os::unix::fs::symlink("/dev/zero", path("b.json")).expect("linked");
        std::fs::create_dir(path("c.json")).expect("made");
        File::create(path("d.json")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        put(dir.path(), "e", &RunCommand::Stop, &key()).expect("put");
        let waiting = list(dir.path(), Some(&key())).expect("listed");
        let unread: Vec<&str> =
            waiting.iter().map(|entry| entry.unread.as_deref().unwrap_or("read")).collect();
        let expected = [
            "it is a FIFO, not a plain file",
            "it is a symbolic link, not a plain file",
            "it is a directory, not a plain file",
            "it is longer than 4194304 bytes",
            "read",
        ];
        assert_eq!(unread, expected);
        assert_eq!(stops(dir.path()).expect("listed"), ["e"]);
    }

    #[test]
    fn fifo_as_answer_lock_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        plain_file::make_fifo(&dir.path().join("turn"));
        let error = turn(dir.path()).expect_err("a FIFO").to_string();
        assert!(error.contains("turn: cannot open: it is a FIFO"), "{error}");
    }

    #[test]
    fn oversized_command_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let given = raymond_model::question::AnswerCommand {
            agent: None,
            step: None,
            node: "n".to_owned(),
            text: "x".repeat(4 * 1024 * 1024),
        };
        let error = put(dir.path(), "a", &RunCommand::Answer(given), &key()).expect_err("too long");
        assert!(error.to_string().contains("may have 4194304; shorten it"), "{error}");
    }
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
        assert!(keep_received(&dir, "a", &key()).expect("put") && is_waiting(&dir, "a"));
        close(&dir.inbox()).expect("closed");
        assert!(!is_waiting(&dir, "a"));
    }

    #[test]
    fn stop_request_after_close_is_void_until_reopen() {
        let (_place, dir) = place();
        close(&dir.inbox()).expect("closed");
        assert!(!keep_received(&dir, "a", &key()).expect("put") && !is_waiting(&dir, "a"));
        reopen(&dir.inbox()).expect("opened");
        reopen(&dir.inbox()).expect("open already");
        assert!(keep_received(&dir, "b", &key()).expect("put") && is_waiting(&dir, "b"));
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
        super::put(&dir.inbox(), "answer", &RunCommand::Answer(given), &key()).expect("put");
        close(&dir.inbox()).expect("closed");
        assert_eq!(super::list(&dir.inbox(), Some(&key())).expect("listed").len(), 1);
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
