//! Sessions: one file for each, with its prompts, so that a test can see what a turn knew.
//!
//! As in the real program, a prompt is in its session as soon as the turn begins, so a killed turn leaves its
//! prompt behind. A session is found only from the directory it was created in, and from other worktrees of its repository;
//! or if its file was brought to where the real program keeps it for the directory.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::flags::ClaudeFlags;

#[derive(Debug, Serialize, Deserialize)]
struct StoredSession {
    cwd: PathBuf,
    turns: Vec<SessionTurn>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SessionTurn {
    prompt: String,
    /// The id of the assistant's message that answers the prompt.
    uuid: String,
}

/// A session that takes the turn.
#[derive(Debug)]
pub(crate) struct OpenedSession {
    pub(crate) id: String,
    /// The prompts before this one.
    pub(crate) history: Vec<String>,
}

/// The reason why a session does not take the turn.
#[derive(Debug)]
pub(crate) enum SessionRefusal {
    /// There is no such session; the stream says so.
    Unknown(String),
    /// Another error; stderr has it.
    Message(String),
}

/// Adds the prompt to the session that the flags name, which is created if they say so.
pub(crate) fn open(
    folder: &Path,
    flags: &ClaudeFlags,
    prompt: &str,
    uuid: &str,
) -> Result<OpenedSession, SessionRefusal> {
    std::fs::create_dir_all(folder).map_err(broken)?;
    let cwd = std::env::current_dir().map_err(broken)?;
    let mut turns = match &flags.resume {
        Some(id) => load(folder, id, &cwd)?,
        None => Vec::new(),
    };
    if let Some(last) = &flags.resume_at {
        let kept = turns.iter().position(|turn| turn.uuid == *last).ok_or_else(|| {
            SessionRefusal::Message(format!("Error: No message found with message.uuid of: {last}"))
        })?;
        turns.truncate(kept + 1);
    }
    let id = match &flags.resume {
        Some(id) if !flags.fork_session => id.clone(),
        _ => unused_id(folder, flags.session_id.as_deref())?,
    };
    save_with(folder, id, cwd, turns, prompt, uuid)
}

/// Adds the prompt to the session that an earlier turn of this process opened.
pub(crate) fn append(
    folder: &Path,
    id: &str,
    prompt: &str,
    uuid: &str,
) -> Result<OpenedSession, SessionRefusal> {
    let cwd = std::env::current_dir().map_err(broken)?;
    let turns = load(folder, id, &cwd)?;
    save_with(folder, id.to_owned(), cwd, turns, prompt, uuid)
}

fn save_with(
    folder: &Path,
    id: String,
    cwd: PathBuf,
    mut turns: Vec<SessionTurn>,
    prompt: &str,
    uuid: &str,
) -> Result<OpenedSession, SessionRefusal> {
    let history = turns.iter().map(|turn| turn.prompt.clone()).collect();
    turns.push(SessionTurn { prompt: prompt.to_owned(), uuid: uuid.to_owned() });
    save(folder, &id, &StoredSession { cwd, turns }).map_err(broken)?;
    Ok(OpenedSession { id, history })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn broken(error: std::io::Error) -> SessionRefusal {
    SessionRefusal::Message(format!("fake-claude: {error}"))
}

fn unused_id(folder: &Path, wanted: Option<&str>) -> Result<String, SessionRefusal> {
    let id = wanted.map_or_else(|| new_id(0), str::to_owned);
    if path(folder, &id).exists() {
        return Err(SessionRefusal::Message(format!("Error: Session ID {id} is already in use.")));
    }
    Ok(id)
}

fn load(folder: &Path, id: &str, cwd: &Path) -> Result<Vec<SessionTurn>, SessionRefusal> {
    let unknown = || SessionRefusal::Unknown(id.to_owned());
    let text = std::fs::read(path(folder, id)).map_err(|_| unknown())?;
    let session: StoredSession = serde_json::from_slice(&text)
        .map_err(|error| SessionRefusal::Message(format!("fake-claude: session {id}: {error}")))?;
    let is_found = session.cwd == cwd
        || repository(&session.cwd).is_some_and(|own| repository(cwd).as_ref() == Some(&own));
    if is_found { Ok(session.turns) } else { brought(id, cwd).ok_or_else(unknown) }
}

/// Returns git's directory that all worktrees of a directory's repository share, if the directory is the top of one.
fn repository(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return git.canonicalize().ok();
    }
    let link = std::fs::read_to_string(git).ok()?;
    Path::new(link.trim_end().strip_prefix("gitdir: ")?).ancestors().nth(2)?.canonicalize().ok()
}

fn save(folder: &Path, id: &str, session: &StoredSession) -> std::io::Result<()> {
    let draft = folder.join(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, serde_json::to_vec(session)?)?;
    std::fs::rename(draft, path(folder, id))?;
    save_in_home(id, session)
}

/// Writes the session where the real program keeps it, with a line for each turn.
fn save_in_home(id: &str, session: &StoredSession) -> std::io::Result<()> {
    let Some(file) = file_in_home(id, &session.cwd) else { return Ok(()) };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut lines = String::new();
    for turn in &session.turns {
        lines.push_str(&serde_json::to_string(turn)?);
        lines.push('\n');
    }
    std::fs::write(file, lines)
}

/// Returns the turns of a session whose file was brought to where the real program keeps it.
fn brought(id: &str, cwd: &Path) -> Option<Vec<SessionTurn>> {
    let lines = std::fs::read_to_string(file_in_home(id, cwd)?).ok()?;
    lines.lines().map(|line| serde_json::from_str(line).ok()).collect()
}

fn file_in_home(id: &str, cwd: &Path) -> Option<PathBuf> {
    let folder = cwd.to_string_lossy().replace(|other: char| !other.is_ascii_alphanumeric(), "-");
    Some(std::env::home_dir()?.join(".claude/projects").join(folder).join(format!("{id}.jsonl")))
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// Returns an id in the shape of a UUID, different from all others of this and other processes.
pub(crate) fn new_id(kind: u16) -> String {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos() & 0xffff_ffff_ffff_ffff);
    let (high, low) = (time >> 32, time & 0xffff_ffff);
    format!(
        "{high:08x}-{:04x}-4000-8{kind:03x}-{low:08x}{:04x}",
        low & 0xffff,
        std::process::id() & 0xffff
    )
}
