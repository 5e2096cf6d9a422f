//! The inbox of a run: commands from other processes, one file each.
//!
//! A command is written aside and renamed into place, so that it is there as a whole or not at
//! all; once it is in the journal its file is removed. Others can put something else there: what is no plain
//! file of bounded size is not read, and stays.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use super::{Error, files};
use crate::domain::event::Command;
use crate::plain_file;

/// The longest command, in bytes: a person's answer, with room to spare.
const MAX_LENGTH: u64 = 4 * 1024 * 1024;

/// Puts a command in; it is durable when this returns.
///
/// # Errors
/// [`Error::Io`].
pub fn put(inbox: &Path, name: &str, command: &Command) -> Result<(), Error> {
    let path = inbox.join(format!("{name}.json"));
    let text = serde_json::to_vec(command)
        .map_err(std::io::Error::other)
        .map_err(Error::io("write", &path))?;
    if text.len() as u64 > MAX_LENGTH {
        let why = format!("it has {} bytes, and may have {MAX_LENGTH}; shorten it", text.len());
        return Err(Error::io("write", &path)(std::io::Error::other(why)));
    }
    files::replace(&path, &text)
}

/// Waits until nobody else looks at a run to put something in that depends on what is there; the next
/// one may when this is dropped.
///
/// # Errors
/// [`Error::Io`].
pub fn turn(inbox: &Path) -> Result<File, Error> {
    files::make_dir(inbox)?;
    let path = inbox.join("turn");
    let file = plain_file::open_with(&path, files::private().create(true).append(true));
    let file = file.map_err(Error::io("open", &path))?;
    file.lock().map_err(Error::io("lock", &path))?;
    Ok(file)
}

/// A command that waits in the inbox.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its name, for [`remove`].
    pub name: String,
    /// What it asks for; `None` if it is not a command this program knows.
    pub command: Option<Command>,
    /// The reason why it was not read, if it was not: it is no plain file, or too long.
    pub unread: Option<String>,
}

/// All that wait, in the order of their names.
///
/// # Errors
/// [`Error::Io`].
pub fn list(inbox: &Path) -> Result<Vec<Waiting>, Error> {
    let mut waiting = Vec::new();
    for entry in std::fs::read_dir(inbox).map_err(Error::io("read", inbox))? {
        let entry = entry.map_err(Error::io("read", inbox))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        let (command, unread) = match plain_file::read(&entry.path(), MAX_LENGTH) {
            Ok(bytes) => (serde_json::from_slice(&bytes).ok(), None),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // Others behind it are still to be read, `stop` among them.
            Err(error) => (None, Some(error.to_string())),
        };
        waiting.push(Waiting { name: name.to_owned(), command, unread });
    }
    waiting.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(waiting)
}

/// The names of the commands to stop: those that lie here before a run is taken up were meant for
/// the raymond that held it last.
///
/// # Errors
/// [`Error::Io`].
pub fn stops(inbox: &Path) -> Result<Vec<String>, Error> {
    let waiting = if inbox.is_dir() { list(inbox)? } else { Vec::new() };
    let stops = waiting.into_iter().filter(|entry| entry.command == Some(Command::Stop));
    Ok(stops.map(|entry| entry.name).collect())
}

/// Removes a command that is in the journal.
///
/// # Errors
/// [`Error::Io`], but not if it is gone already.
pub fn remove(inbox: &Path, name: &str) -> Result<(), Error> {
    let path = inbox.join(format!("{name}.json"));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", &path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_listed_in_order_and_removed_once() {
        let dir = tempfile::tempdir().expect("a directory");
        put(dir.path(), "b", &Command::Stop).expect("put");
        put(dir.path(), "a", &Command::Stop).expect("put");
        std::fs::write(dir.path().join("c.json"), "{\"command\":\"dance\"}").expect("written");
        std::fs::write(dir.path().join("d.json.new"), "{").expect("written");
        let waiting = list(dir.path()).expect("listed");
        let names: Vec<&str> = waiting.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!((&waiting[0].command, &waiting[2].command), (&Some(Command::Stop), &None));
        remove(dir.path(), "a").expect("removed");
        remove(dir.path(), "a").expect("gone already");
        assert_eq!(list(dir.path()).expect("listed").len(), 2);
    }

    #[test]
    fn entries_that_are_no_plain_files_are_named_and_keep_no_others_from_being_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        plain_file::make_fifo(&path("a.json"));
        std::os::unix::fs::symlink("/dev/zero", path("b.json")).expect("linked");
        std::fs::create_dir(path("c.json")).expect("made");
        File::create(path("d.json")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        put(dir.path(), "e", &Command::Stop).expect("put");
        let waiting = list(dir.path()).expect("listed");
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
    fn lock_for_answers_is_not_waited_for_if_it_is_no_plain_file() {
        let dir = tempfile::tempdir().expect("a directory");
        plain_file::make_fifo(&dir.path().join("turn"));
        let error = turn(dir.path()).expect_err("a FIFO").to_string();
        assert!(error.contains("turn: cannot open: it is a FIFO"), "{error}");
    }

    #[test]
    fn commands_that_nobody_would_read_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let given = crate::domain::question::Given {
            agent: None,
            step: None,
            node: "n".to_owned(),
            text: "x".repeat(4 * 1024 * 1024),
        };
        let error = put(dir.path(), "a", &Command::Answer(given)).expect_err("too long");
        assert!(error.to_string().contains("may have 4194304; shorten it"), "{error}");
    }
}
