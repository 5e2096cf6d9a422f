//! `calls.jsonl`: a line when an invocation starts (`pid`, `argv`, `prompt`, `session`,
//! `resumed_from`, `history`, `cwd`, `env`), one when it leaves a helper behind (`pid`, `helper`)
//! and one as the last thing it does (`pid`, `done`). Each is a single append, so that the order of
//! the lines is an order of what happened.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::flags::Flags;
use crate::session::Opened;

pub(crate) fn started(
    folder: &Path,
    arguments: &[String],
    prompt: &str,
    flags: &Flags,
    opened: Option<&Opened>,
) -> Result<(), String> {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .map(|(key, value)| {
            (key.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(key, _)| key.starts_with("RAYMOND_"))
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    append(
        folder,
        &json!({
            "pid": std::process::id(), "argv": arguments, "prompt": prompt,
            "session": opened.map(|opened| &opened.id), "resumed_from": flags.resume,
            "history": opened.map_or(&[][..], |opened| &opened.history), "cwd": cwd, "env": env,
        }),
    )
}

pub(crate) fn helper(folder: &Path, helper: u32) -> Result<(), String> {
    append(folder, &json!({"pid": std::process::id(), "helper": helper}))
}

pub(crate) fn done(folder: &Path) -> Result<(), String> {
    append(folder, &json!({"pid": std::process::id(), "done": true}))
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
