//! Playing one rule: the good turn, and every way a turn has been seen to go wrong.
//!
//! Nothing here outlives its test by much: whoever waits looks whether the folder is still there,
//! and the helper ends by itself.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::script::Rule;
use crate::{HELPER, log, stream};

const HELPER_LIFE: Duration = Duration::from_mins(2);
const GLANCE: Duration = Duration::from_millis(1);
const NO_UTF8: &[u8] = b"\xff\xfe\x80";

/// Plays the rule and returns the exit code; some rules never return.
pub(crate) fn perform(folder: &Path, rule: &Rule, turn: &stream::Turn) -> Result<u8, String> {
    if let Some(text) = &rule.stderr {
        crate::complain(text);
    }
    if rule.silent {
        return Ok(0);
    }
    if rule.garbage {
        stream::write(b"Segmentation fault?\n{\"type\":\"resu\n\x00\x01\x02\n[1,2]\nno end")?;
        return Ok(0);
    }
    stream::write(&turn.init())?;
    if rule.helper {
        leave_helper(folder)?;
    }
    wait_for(folder, rule.hold_before.as_deref());
    if rule.hang {
        wait_for_ever(folder);
    }
    if let Some(code) = rule.exit {
        return Ok(code);
    }
    if let Some(signal) = rule.signal {
        die(signal)?;
    }
    if let Some(error) = &rule.error {
        let mut said = turn.assistant(&error.text);
        said.extend(turn.failed(error.status, &error.text, rule.cost));
        stream::write(&said)?;
        return Ok(1);
    }
    answer(rule, turn)?;
    wait_for(folder, rule.hold_after.as_deref());
    if rule.linger {
        wait_for_ever(folder);
    }
    Ok(0)
}

fn answer(rule: &Rule, turn: &stream::Turn) -> Result<(), String> {
    let padded = format!("{}{}", "x".repeat(rule.pad), rule.reply);
    let spoil = |kind: &str, line: Vec<u8>| match &rule.non_utf8 {
        Some(wanted) if wanted == kind => spoiled(line, &rule.reply),
        _ => line,
    };
    stream::write(&spoil("assistant", turn.assistant(&padded)))?;
    stream::write(&spoil("result", turn.result(&rule.reply, rule.cost)))
}

/// The line with bytes that are no UTF-8 just before the reply, so inside a JSON string.
fn spoiled(mut line: Vec<u8>, reply: &str) -> Vec<u8> {
    let reply = serde_json::Value::from(reply).to_string();
    let reply = reply.trim_matches('"').as_bytes();
    let place = line.windows(reply.len().max(1)).position(|part| part == reply);
    let place = place.unwrap_or(1);
    line.splice(place..place, NO_UTF8.iter().copied());
    line
}

fn leave_helper(folder: &Path) -> Result<(), String> {
    let helper = std::env::current_exe()
        .and_then(|program| Command::new(program).arg(HELPER).stdin(Stdio::null()).spawn())
        .map_err(|error| format!("fake-claude: helper: {error}"))?;
    log::helper(folder, helper.id())
}

/// The life of the helper: like a server that a tool started, it just holds what it inherited.
pub(crate) fn outlive() -> ExitCode {
    std::thread::sleep(HELPER_LIFE);
    ExitCode::SUCCESS
}

fn wait_for(folder: &Path, name: Option<&str>) {
    if let Some(name) = name {
        let file = folder.join(name);
        while !file.exists() && folder.exists() {
            std::thread::sleep(GLANCE);
        }
    }
}

fn wait_for_ever(folder: &Path) {
    while folder.exists() {
        std::thread::sleep(GLANCE * 20);
    }
    std::process::exit(1);
}

fn die(signal: i32) -> Result<(), String> {
    let signal =
        Signal::from_named_raw(signal).ok_or_else(|| format!("fake-claude: no signal {signal}"))?;
    kill_process(getpid(), signal).map_err(|error| format!("fake-claude: kill: {error}"))?;
    wait_for_signal()
}

/// The signal may arrive after `kill` has returned.
fn wait_for_signal() -> Result<(), String> {
    std::thread::sleep(Duration::from_secs(10));
    Err("fake-claude: survived its own signal".to_owned())
}
