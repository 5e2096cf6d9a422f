//! The log `calls.jsonl`.
//!
//! A turn adds a line when it starts (`pid`, `argv`, `prompt`, `session`, `resumed_from`, `history`, `cwd`,
//! `env`), one for each process it leaves behind (`pid`, `helper`), and one at its very end (`pid`, `done`).
//! A message that a running turn reads adds one (`pid`, `read`).
//! A warm process adds a line when it starts (`pid`, `started`), and one when stdin has ended (`pid`,
//! `ended`). The start of each of its turns has the number of the turn in the process and the model it was
//! asked for (`turn_in_process`, `model`).
//!
//! Each line is a single append, so the order of the lines is an order of the events.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::session::OpenedSession;
use crate::turn::{FakeProcess, TurnRequest};

/// Logs that a warm process has started, before its first message.
pub(crate) fn process_started(folder: &Path) -> Result<(), String> {
    append(folder, &json!({"pid": std::process::id(), "started": true}))
}

pub(crate) fn started(
    process: &FakeProcess,
    asked: &TurnRequest,
    opened: Option<&OpenedSession>,
) -> Result<(), String> {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .map(|(key, value)| {
            (key.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(key, _)| key.starts_with("RAYMOND_"))
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    let mut record = json!({
        "pid": std::process::id(), "argv": process.arguments, "prompt": asked.prompt,
        "session": opened.map(|opened| &opened.id), "resumed_from": process.flags.resume,
        "history": opened.map_or(&[][..], |opened| &opened.history), "cwd": cwd, "env": env,
    });
    if let Some(warm) = &asked.warm {
        record["turn_in_process"] = warm.number.into();
        record["model"] = asked.model.into();
    }
    append(&process.folder, &record)
}

pub(crate) fn helper(folder: &Path, of: u32, helper: u32) -> Result<(), String> {
    append(folder, &json!({"pid": of, "helper": helper}))
}

/// Logs a message that a running turn has read.
pub(crate) fn read(folder: &Path, text: &str) -> Result<(), String> {
    append(folder, &json!({"pid": std::process::id(), "read": text}))
}

pub(crate) fn done(folder: &Path) -> Result<(), String> {
    append(folder, &json!({"pid": std::process::id(), "done": true}))
}

/// Logs that a warm process has taken its last turn, because stdin has ended.
pub(crate) fn ended(folder: &Path) -> Result<(), String> {
    append(folder, &json!({"pid": std::process::id(), "ended": true}))
}

fn append(folder: &Path, record: &Value) -> Result<(), String> {
    let path = folder.join("calls.jsonl");
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{record}\n").as_bytes()))
        .map_err(|error| format!("fake-claude: {}: {error}", path.display()))
}
