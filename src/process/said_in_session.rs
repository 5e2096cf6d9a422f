//! Reads the messages of a Claude Code session that the session it branches off does not have.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::session_files::open_session;
use crate::domain::id::MessageId;

/// The messages of a session that its origin does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SaidInSession {
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

/// Returns what was said in a session that is a branch of another one.
///
/// # Errors
/// A file cannot be read. One that does not exist has no messages.
pub fn said(session: &Path, origin: &Path) -> std::io::Result<SaidInSession> {
    let mut known = HashSet::new();
    for_each_message(origin, |id, _| {
        known.insert(id);
    })?;
    let mut said = SaidInSession::default();
    for_each_message(session, |id, is_reply| {
        let message = MessageId::new(&id);
        // The program writes some messages a second time.
        if !known.insert(id) {
            return;
        }
        said.count += 1;
        said.last_reply = is_reply.then_some(message);
    })?;
    Ok(said)
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
    use super::*;

    #[test]
    fn messages_that_the_origin_lacks_were_said() {
        let folder = tempfile::tempdir().expect("a directory");
        let [origin, session] = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name));
        let said_there = || said(&session, &origin).expect("read");
        assert_eq!(said_there(), SaidInSession::default(), "there are no files");
        let before = r#"{"type":"user","uuid":"u1"}
{"type":"assistant","uuid":"a1","message":{}}
"#;
        std::fs::write(&origin, before).expect("written");
        std::fs::write(&session, before).expect("written");
        assert_eq!(said_there(), SaidInSession::default());
        let more = r#"{"type":"mode"}
{"type":"user","uuid":"u2"}
{"type":"assistant","uuid":"a2"}
{"type":"assistant","uuid":"a3","isSidechain":true}
{"type":"user","uuid":"u3"}
{"type":"user","uuid":"u2"}
{"type":"assist"#;
        std::fs::write(&session, format!("{before}{more}")).expect("written");
        assert_eq!(said_there(), SaidInSession { count: 3, last_reply: None });
        let shorter = more.replace("u3", "u2");
        std::fs::write(&session, format!("{before}{shorter}")).expect("written");
        let last_reply = Some(MessageId::new("a2"));
        assert_eq!(said_there(), SaidInSession { count: 2, last_reply });
    }
}
