//! The inbox of a run: commands from other processes, one file each.
//!
//! A command is written aside and renamed into place, so that it is there as a whole or not at
//! all; once it is in the journal its file is removed.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use super::{Error, files};
use crate::domain::event::Command;

/// Puts a command in; it is durable when this returns.
///
/// # Errors
/// [`Error::Io`].
pub fn put(inbox: &Path, name: &str, command: &Command) -> Result<(), Error> {
    let path = inbox.join(format!("{name}.json"));
    let text = serde_json::to_vec(command)
        .map_err(std::io::Error::other)
        .map_err(Error::io("write", &path))?;
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
    let file = files::private().create(true).append(true).open(&path);
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
        let command = match std::fs::read(entry.path()) {
            Ok(bytes) => serde_json::from_slice(&bytes).ok(),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("read", &entry.path())(error)),
        };
        waiting.push(Waiting { name: name.to_owned(), command });
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
}
