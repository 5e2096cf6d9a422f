//! The files in which Claude Code keeps its sessions: one for each, below a folder for the directory it ran in.
//!
//! Claude Code removes old ones by itself, 30 days after their last turn by default.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use raymond_model::id::{MessageId, SessionId};
use raymond_model::turn_options::EnvValue;
use raymond_store::plain_file::{self, FileReplacement};
use serde::Deserialize;

/// The variable that names Claude Code's own directory.
pub const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// The longest name of a folder, in units of UTF-16. A longer one is cut, and ends with a number that is made from all
/// of it.
const MAX_FOLDER_UNITS: usize = 200;

/// Returns Claude Code's own directory for a turn that is started with these variables; `None` if there is none.
/// `inherited` is what [`CONFIG_DIR`] is otherwise, and `home` the home directory.
pub fn config_dir(
    variables: Option<&BTreeMap<String, EnvValue>>,
    inherited: Option<PathBuf>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    let set = |name: &str| match variables.and_then(|all| all.get(name)) {
        Some(EnvValue::Set(text)) => Some(PathBuf::from(text)),
        Some(EnvValue::Pass) | None => None,
    };
    let home = || set("HOME").or(home).map(|home| home.join(".claude"));
    set(CONFIG_DIR).or(inherited).or_else(home)
}

/// Returns the path at which Claude Code finds a session from a directory; `None` if its id cannot be a file name.
pub fn session_path(config_dir: &Path, cwd: &Path, session: &SessionId) -> Option<PathBuf> {
    let id = session.as_str();
    let is_name = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let folder = config_dir.join("projects").join(folder_name(&cwd.to_string_lossy()));
    is_name.then(|| folder.join(format!("{id}.jsonl")))
}

/// Returns the file of a session: where it is found from a directory, or else below the folder of any other one.
pub fn find_session(config_dir: &Path, cwd: &Path, session: &SessionId) -> Option<PathBuf> {
    let path = session_path(config_dir, cwd, session)?;
    if path.is_file() {
        return Some(path);
    }
    let name = path.file_name()?;
    let folders = std::fs::read_dir(config_dir.join("projects")).ok()?;
    let files = folders.flatten().map(|folder| folder.path().join(name));
    files.into_iter().find(|file| file.is_file())
}

/// Opens the file of a session.
///
/// # Errors
/// The system's error, or that it is not a plain file.
pub fn open_session(path: &Path) -> std::io::Result<File> {
    plain_file::open(path)
}

/// Writes a session to where Claude Code finds it. What is there already, and is not that session, is kept beside it;
/// its new path is returned.
///
/// # Errors
/// The system's error, or that of `fill`. What was there is kept beside it then, too.
pub fn write_session(
    path: &Path,
    fill: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> std::io::Result<Option<PathBuf>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let aside = if plain_file::is_there(path) { Some(set_aside(path)?) } else { None };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = format!("{name}.{}.new", std::process::id());
    FileReplacement::of(path).with_draft(draft).write_with(fill).map_err(|failed| failed.error)?;
    Ok(aside)
}

/// Keeps a file under another name beside it.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let mut number = 1_u32;
    loop {
        let other = path.with_extension(format!("jsonl.{number}.before"));
        if plain_file::if_there(other.symlink_metadata())?.is_none() {
            std::fs::rename(path, &other)?;
            return Ok(other);
        }
        number += 1;
    }
}

/// Returns the name of the folder for a directory, as Claude Code makes it.
fn folder_name(cwd: &str) -> String {
    let plain = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        Ok(_) | Err(_) => '-',
    };
    let name: String = cwd.encode_utf16().map(plain).collect();
    if name.len() <= MAX_FOLDER_UNITS {
        return name;
    }
    let sum = cwd
        .encode_utf16()
        .fold(0_i32, |sum, unit| sum.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &name[..MAX_FOLDER_UNITS], base_36(sum.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
    }
    digits.iter().rev().collect()
}

/// Returns the sessions that have no file in Claude Code's own directory, sorted.
///
/// # Errors
/// The directory cannot be read.
pub fn missing_sessions(
    config_dir: &Path,
    sessions: impl IntoIterator<Item = SessionId>,
) -> std::io::Result<BTreeSet<SessionId>> {
    let mut missing: BTreeSet<SessionId> = sessions.into_iter().collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    let folders = match std::fs::read_dir(config_dir.join("projects")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(missing),
        folders => folders?,
    };
    for folder in folders {
        let folder = folder?.path();
        if folder.is_dir() {
            missing.retain(|id| !folder.join(format!("{id}.jsonl")).is_file());
        }
    }
    Ok(missing)
}

// Reads the messages of a Claude Code session that the session it branches off does not have.

/// The messages of a session that its origin does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SessionMessages {
    /// Their number.
    pub count: usize,
    /// The last message, if it is the model's. Words of the person that have no reply are the end of the session, too.
    pub last_reply: Option<MessageId>,
}

/// A line of a session's file, as far as it matters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    uuid: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
}

/// Returns what was said in a session that branched off another session.
///
/// # Errors
/// A file cannot be read. A missing file counts as a file without messages.
pub fn messages(session: &Path, origin: &Path) -> std::io::Result<SessionMessages> {
    let mut known = HashSet::new();
    for_each_message(origin, |id, _| {
        known.insert(id);
    })?;
    let mut messages = SessionMessages::default();
    for_each_message(session, |id, is_reply| {
        let message = MessageId::new(&id);
        // The program writes some messages a second time.
        if !known.insert(id) {
            return;
        }
        messages.count += 1;
        messages.last_reply = is_reply.then_some(message);
    })?;
    Ok(messages)
}

/// Passes the id of each message to `visit`, and whether it is the model's. Lines of other kinds are left out.
fn for_each_message(path: &Path, mut visit: impl FnMut(String, bool)) -> std::io::Result<()> {
    let file = match open_session(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    for line in BufReader::new(file).split(b'\n') {
        let Ok(line) = serde_json::from_slice::<SessionLine>(&line?) else { continue };
        let is_reply = match line.kind.as_deref() {
            Some("assistant") => true,
            Some("user") => false,
            _ => continue,
        };
        if let (Some(id), false) = (line.uuid, line.is_sidechain) {
            visit(id, is_reply);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn session_is_missing_if_no_folder_has_its_file() {
        let config = tempfile::tempdir().expect("a directory");
        let missing = || {
            let asked = ["a", "b"].map(SessionId::new);
            let found = missing_sessions(config.path(), asked).expect("read");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(missing(), ["a", "b"], "the directory is missing");
        for folder in ["-home-x", "-home-y"] {
            std::fs::create_dir_all(config.path().join("projects").join(folder)).expect("made");
        }
        std::fs::write(config.path().join("projects/-home-y/b.jsonl"), "").expect("written");
        assert_eq!(missing(), ["a"]);
        assert!(missing_sessions(config.path(), []).expect("read").is_empty());
    }

    #[test]
    fn session_lies_below_folder_of_its_directory() {
        let path = |cwd: &str, id: &str| {
            let path = session_path(Path::new("/c"), Path::new(cwd), &SessionId::new(id));
            path.map(|path| path.display().to_string())
        };
        let found = path("/home/a.b/c_d", "e-1").expect("a path");
        assert_eq!(found, "/c/projects/-home-a-b-c-d/e-1.jsonl");
        assert_eq!(path("/ä😀", "e").expect("a path"), "/c/projects/----/e.jsonl");
        assert_eq!(path("/home", "../e"), None);
        let long = folder_name(&"/x".repeat(150));
        assert_eq!(long.len(), 207);
        assert_eq!((&long[..4], &long[200..]), ("-x-x", "-4y6yx2"));
    }

    #[test]
    fn session_is_found_below_folder_of_another_directory() {
        let config = tempfile::tempdir().expect("a directory");
        let (cwd, id) = (Path::new("/home/x"), SessionId::new("a"));
        assert_eq!(find_session(config.path(), cwd, &id), None);
        for folder in ["-home-y", "-home-x"] {
            let folder = config.path().join("projects").join(folder);
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join("a.jsonl"), "").expect("written");
            assert_eq!(find_session(config.path(), cwd, &id), Some(folder.join("a.jsonl")));
        }
    }

    #[test]
    fn session_that_is_set_aside_takes_no_name_that_is_used() {
        let folder = tempfile::tempdir().expect("a directory");
        let name = |name: &str| folder.path().join(name);
        let path = name("a.jsonl");
        std::fs::write(name("a.jsonl.1.before"), "first").expect("written");
        std::os::unix::fs::symlink("nowhere", name("a.jsonl.2.before")).expect("made");
        std::fs::create_dir(name("a.jsonl.3.before")).expect("made");
        std::fs::write(&path, "mine").expect("written");
        let aside = write_session(&path, |file| file.write_all(b"new")).expect("written");
        assert_eq!(aside, Some(name("a.jsonl.4.before")));
        let text = |name: PathBuf| std::fs::read_to_string(name).expect("a file");
        assert_eq!([text(path), text(name("a.jsonl.4.before"))], ["new", "mine"]);
        assert_eq!(text(name("a.jsonl.1.before")), "first");
        assert!(name("a.jsonl.2.before").is_symlink());
        // A name that is too long cannot be looked at.
        let long = name(&format!("{}.jsonl", "x".repeat(245)));
        std::fs::write(&long, "mine").expect("written");
        set_aside(&long).expect_err("the other name is too long");
        assert_eq!(text(long), "mine");
    }

    #[test]
    fn variables_of_a_turn_name_claude_codes_directory() {
        let set = |name: &str| {
            let all = BTreeMap::from([(name.to_owned(), EnvValue::Set("/x".to_owned()))]);
            let home = Some(PathBuf::from("/home"));
            config_dir(Some(&all), None, home).map(|path| path.display().to_string())
        };
        assert_eq!(set(CONFIG_DIR).as_deref(), Some("/x"));
        assert_eq!(set("HOME").as_deref(), Some("/x/.claude"));
        assert_eq!(set("OTHER").as_deref(), Some("/home/.claude"));
        let inherited = Some(PathBuf::from("/own"));
        assert_eq!(config_dir(None, inherited.clone(), None), inherited);
        assert_eq!(config_dir(None, None, None), None);
    }
}

#[cfg(test)]
mod session_messages_tests {
    use super::*;

    #[test]
    fn messages_that_the_origin_lacks_are_counted() {
        let folder = tempfile::tempdir().expect("a directory");
        let [origin, session] = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name));
        let found = || messages(&session, &origin).expect("read");
        assert_eq!(found(), SessionMessages::default(), "both files are missing");
        let before = r#"{"type":"user","uuid":"u1"}
{"type":"assistant","uuid":"a1","message":{}}
"#;
        std::fs::write(&origin, before).expect("written");
        std::fs::write(&session, before).expect("written");
        assert_eq!(found(), SessionMessages::default());
        let more = r#"{"type":"mode"}
{"type":"user","uuid":"u2"}
{"type":"assistant","uuid":"a2"}
{"type":"assistant","uuid":"a3","isSidechain":true}
{"type":"user","uuid":"u3"}
{"type":"user","uuid":"u2"}
{"type":"assist"#;
        std::fs::write(&session, format!("{before}{more}")).expect("written");
        assert_eq!(found(), SessionMessages { count: 3, last_reply: None });
        let shorter = more.replace("u3", "u2");
        std::fs::write(&session, format!("{before}{shorter}")).expect("written");
        let last_reply = Some(MessageId::new("a2"));
        assert_eq!(found(), SessionMessages { count: 2, last_reply });
    }
}
