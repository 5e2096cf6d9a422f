//! Playing one rule: the good turn, and every way a turn has been seen to go wrong.
//!
//! Nothing here outlives its test by much: whoever waits looks whether the folder is still there,
//! and the helper ends by itself.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::script::Rule;
use crate::stream::{self, Turn};
use crate::turn::Warm;
use crate::{helper, session};

const GLANCE: Duration = Duration::from_millis(1);
const NO_UTF8: &[u8] = b"\xff\xfe\x80";

/// A rule on stage; some rules never leave it.
#[derive(Debug)]
pub(crate) struct Play<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) rule: &'a Rule,
    pub(crate) turn: &'a Turn,
    pub(crate) warm: Option<&'a Warm<'a>>,
}

/// How a turn ended. The number is the exit code, where it is the last of its process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// With a result: a warm process takes the next one.
    Over(u8),
    /// With the process.
    Gone(u8),
}

impl End {
    pub(crate) fn is_gone(self) -> bool {
        matches!(self, Self::Gone(_))
    }

    pub(crate) fn code(self) -> u8 {
        let (Self::Over(code) | Self::Gone(code)) = self;
        code
    }
}

impl Play<'_> {
    pub(crate) fn perform(&self) -> Result<End, String> {
        let Self { folder, rule, turn, .. } = *self;
        if let Some(text) = &rule.stderr {
            crate::complain(text);
        }
        if rule.silent {
            return Ok(End::Gone(0));
        }
        if rule.garbage {
            stream::write(b"Segmentation fault?\n{\"type\":\"resu\n\x00\x01\x02\n[1,2]\nno end")?;
            return Ok(End::Gone(0));
        }
        stream::write(&turn.opening())?;
        helper::leave(folder, rule)?;
        for (number, refused) in rule.refused.iter().enumerate() {
            stream::write(&refused.told(number, turn))?;
        }
        for attempt in 1..=rule.retries {
            stream::write(&turn.retry(attempt, rule.retry_delay_ms))?;
        }
        if self.interrupted_at(rule.hold_before.as_deref()) || self.interrupted_in_tool()? {
            stream::write(&turn.aborted())?;
            return Ok(End::Over(1));
        }
        if rule.hang {
            self.wait_for_ever();
        }
        if let Some(code) = rule.exit {
            return Ok(End::Gone(code));
        }
        if let Some(signal) = rule.signal {
            die(signal)?;
        }
        if let Some(said) = self.failure() {
            stream::write(&said)?;
            return Ok(End::Over(1));
        }
        self.answer()?;
        if let Some(text) = &rule.unsolicited {
            self.go_on_unasked(text)?;
        }
        self.wait_for(rule.hold_after.as_deref(), || false);
        if rule.linger {
            self.wait_for_ever();
        }
        Ok(if rule.die_idle { End::Gone(1) } else { End::Over(0) })
    }

    fn interrupted_in_tool(&self) -> Result<bool, String> {
        let Some(name) = &self.rule.tool else { return Ok(false) };
        stream::write(&self.turn.tool_use(name))?;
        if self.interrupted_at(self.rule.hold_tool.as_deref()) {
            return Ok(true);
        }
        stream::write(&self.turn.tool_result())?;
        Ok(false)
    }

    fn failure(&self) -> Option<Vec<u8>> {
        let turn = self.turn;
        if let Some(limit) = &self.rule.limit {
            let mut said = if limit.event { turn.limit_event(limit.resets) } else { Vec::new() };
            said.extend(turn.synthetic(&limit.text));
            said.extend(turn.failed(Some(429), &limit.text));
            return Some(said);
        }
        let error = self.rule.error.as_ref()?;
        let mut said = turn.assistant(&error.text);
        said.extend(turn.failed(error.status, &error.text));
        Some(said)
    }

    fn answer(&self) -> Result<(), String> {
        let (rule, turn) = (self.rule, self.turn);
        let padded = format!("{}{}", "x".repeat(rule.pad), rule.reply);
        let spoil = |kind: &str, line: Vec<u8>| match &rule.non_utf8 {
            Some(wanted) if wanted == kind => spoiled(line, &rule.reply),
            _ => line,
        };
        stream::write(&turn.partial(&padded))?;
        stream::write(&spoil("assistant", turn.assistant(&padded)))?;
        stream::write(&spoil("result", turn.result(&rule.reply)))
    }

    /// A further turn, of which the session knows too.
    fn go_on_unasked(&self, text: &str) -> Result<(), String> {
        let uuid = session::new_id(1);
        session::append(&self.folder.join("sessions"), &self.turn.session, "(unasked)", &uuid)
            .map_err(|refusal| format!("fake-claude: unsolicited: {refusal:?}"))?;
        let turn = Turn { uuid, replay: None, ..self.turn.clone() };
        let said = [turn.opening(), turn.assistant(text), turn.unasked(text)];
        stream::write(&said.concat())
    }

    /// Waits for the file; whether the turn was interrupted meanwhile.
    fn interrupted_at(&self, name: Option<&str>) -> bool {
        let interrupted = || self.warm.is_some_and(|warm| warm.wishes.is_interrupted(warm.number));
        self.wait_for(name, interrupted);
        name.is_some() && interrupted()
    }

    fn wait_for(&self, name: Option<&str>, enough: impl Fn() -> bool) {
        if let Some(name) = name {
            let file = self.folder.join(name);
            while !file.exists() && self.folder.exists() && !enough() {
                std::thread::sleep(GLANCE);
            }
        }
    }

    fn wait_for_ever(&self) {
        if let Some(warm) = self.warm {
            warm.wishes.be_deaf();
        }
        while self.folder.exists() {
            std::thread::sleep(GLANCE * 20);
        }
        std::process::exit(1);
    }
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
