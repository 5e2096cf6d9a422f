//! Sessions: one file each with the prompts it has seen, so that a test can ask what a turn knew.
//!
//! As with the real program, a prompt is in its session as soon as the turn begins (a killed turn
//! leaves half of itself behind), and a session is found only from the directory it was made in.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::flags::Flags;

#[derive(Debug, Serialize, Deserialize)]
struct Session {
    cwd: PathBuf,
    turns: Vec<Turn>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Turn {
    prompt: String,
    /// The id of the assistant's message that answers it.
    uuid: String,
}

/// A session that takes the turn.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: String,
    /// The prompts before this one.
    pub(crate) history: Vec<String>,
}

/// Why a session does not take the turn.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No such session: said in the stream.
    Unknown(String),
    /// Anything else: said on stderr.
    Message(String),
}

/// Puts the prompt into the session that the flags name, making it where they say so.
pub(crate) fn open(
    folder: &Path,
    flags: &Flags,
    prompt: &str,
    uuid: &str,
) -> Result<Opened, Refusal> {
    std::fs::create_dir_all(folder).map_err(broken)?;
    let cwd = std::env::current_dir().map_err(broken)?;
    let mut turns = match &flags.resume {
        Some(id) => load(folder, id, &cwd)?,
        None => Vec::new(),
    };
    if let Some(last) = &flags.resume_at {
        let kept = turns.iter().position(|turn| turn.uuid == *last).ok_or_else(|| {
            Refusal::Message(format!("Error: No message found with message.uuid of: {last}"))
        })?;
        turns.truncate(kept + 1);
    }
    let id = match &flags.resume {
        Some(id) if !flags.fork_session => id.clone(),
        _ => unused_id(folder, flags.session_id.as_deref())?,
    };
    save_with(folder, id, cwd, turns, prompt, uuid)
}

/// Puts the prompt into the session that an earlier turn of this process opened.
pub(crate) fn append(folder: &Path, id: &str, prompt: &str, uuid: &str) -> Result<Opened, Refusal> {
    let cwd = std::env::current_dir().map_err(broken)?;
    let turns = load(folder, id, &cwd)?;
    save_with(folder, id.to_owned(), cwd, turns, prompt, uuid)
}

fn save_with(
    folder: &Path,
    id: String,
    cwd: PathBuf,
    mut turns: Vec<Turn>,
    prompt: &str,
    uuid: &str,
) -> Result<Opened, Refusal> {
    let history = turns.iter().map(|turn| turn.prompt.clone()).collect();
    turns.push(Turn { prompt: prompt.to_owned(), uuid: uuid.to_owned() });
    save(folder, &id, &Session { cwd, turns }).map_err(broken)?;
    Ok(Opened { id, history })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn broken(error: std::io::Error) -> Refusal {
    Refusal::Message(format!("fake-claude: {error}"))
}

fn unused_id(folder: &Path, wanted: Option<&str>) -> Result<String, Refusal> {
    let id = wanted.map_or_else(|| new_id(0), str::to_owned);
    if path(folder, &id).exists() {
        return Err(Refusal::Message(format!("Error: Session ID {id} is already in use.")));
    }
    Ok(id)
}

fn load(folder: &Path, id: &str, cwd: &Path) -> Result<Vec<Turn>, Refusal> {
    let unknown = || Refusal::Unknown(id.to_owned());
    let text = std::fs::read(path(folder, id)).map_err(|_| unknown())?;
    let session: Session = serde_json::from_slice(&text)
        .map_err(|error| Refusal::Message(format!("fake-claude: session {id}: {error}")))?;
    if session.cwd == cwd { Ok(session.turns) } else { Err(unknown()) }
}

fn save(folder: &Path, id: &str, session: &Session) -> std::io::Result<()> {
    let draft = folder.join(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, serde_json::to_vec(session)?)?;
    std::fs::rename(draft, path(folder, id))
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// An id in the shape of a UUID: unlike any other made by this or another process.
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
