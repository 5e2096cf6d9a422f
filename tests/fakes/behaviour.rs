//! Plays one rule: the good turn, and each way in which turns were seen to go wrong.
//!
//! A process ends soon after its test: one that waits stops when the test's folder is gone, and a helper ends
//! by itself.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use serde_json::Value;

use crate::asked::{CallEnd, CallPlace};
use crate::flags::ClaudeFlags;
use crate::script::ScriptRule;
use crate::stream::{self, StreamTurn};
use crate::turn::WarmTurn;
use crate::{helper, log, session};

const POLL_INTERVAL: Duration = Duration::from_millis(1);
const INVALID_UTF8: &[u8] = b"\xff\xfe\x80";

/// A turn that is played by a rule; some rules never end it.
#[derive(Debug)]
pub(crate) struct TurnPlayer<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) rule: &'a ScriptRule,
    pub(crate) turn: &'a StreamTurn,
    pub(crate) warm: Option<&'a WarmTurn<'a>>,
    pub(crate) flags: &'a ClaudeFlags,
}

/// The end of a turn. The number is the exit code, if the process ends with the turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TurnEnd {
    /// A result: a warm process takes the next turn.
    WithResult(u8),
    /// The end of the process.
    WithProcess(u8),
}

impl TurnEnd {
    pub(crate) fn ends_process(self) -> bool {
        matches!(self, Self::WithProcess(_))
    }

    pub(crate) fn code(self) -> u8 {
        let (Self::WithResult(code) | Self::WithProcess(code)) = self;
        code
    }
}

impl TurnPlayer<'_> {
    pub(crate) fn perform(&self) -> Result<TurnEnd, String> {
        let Self { folder, rule, turn, .. } = *self;
        if let Some(text) = &rule.stderr {
            crate::complain(text);
        }
        if rule.silent {
            return Ok(TurnEnd::WithProcess(0));
        }
        if rule.garbage {
            stream::write(b"Segmentation fault?\n{\"type\":\"resu\n\x00\x01\x02\n[1,2]\nno end")?;
            return Ok(TurnEnd::WithProcess(0));
        }
        stream::write(&turn.opening())?;
        helper::start_helpers(folder, rule)?;
        for (number, refused) in rule.refused.iter().enumerate() {
            stream::write(&refused.told(number, turn))?;
        }
        let with_denials;
        let (turn, is_interrupted) = match self.play_asked()? {
            Some((denials, is_interrupted)) => {
                with_denials = StreamTurn { denials, ..turn.clone() };
                (&with_denials, is_interrupted)
            }
            None => (turn, false),
        };
        if is_interrupted {
            stream::write(&turn.aborted())?;
            return Ok(TurnEnd::WithResult(1));
        }
        TurnPlayer { turn, ..*self }.perform_answer()
    }

    fn perform_answer(&self) -> Result<TurnEnd, String> {
        let Self { rule, turn, .. } = *self;
        for attempt in 1..=rule.retries {
            stream::write(&turn.retry(attempt, rule.retry_delay_ms))?;
        }
        if self.interrupted_at(rule.hold_before.as_deref()) || self.interrupted_in_tool()? {
            stream::write(&turn.aborted())?;
            return Ok(TurnEnd::WithResult(1));
        }
        if rule.hang {
            self.wait_forever();
        }
        if let Some(code) = rule.exit {
            return Ok(TurnEnd::WithProcess(code));
        }
        if let Some(signal) = rule.signal {
            die(signal)?;
        }
        if let Some(said) = self.failure() {
            stream::write(&said)?;
            return Ok(TurnEnd::WithResult(1));
        }
        self.answer()?;
        if let Some(text) = &rule.unsolicited {
            self.play_unsolicited_turn(text)?;
        }
        self.wait_for(rule.hold_after.as_deref(), || false);
        if let Some(name) = &rule.hold_after {
            // The folder of a test that has failed is gone.
            let _ = std::fs::write(self.folder.join(format!("{name}.seen")), "");
        }
        if rule.linger {
            self.wait_forever();
        }
        Ok(if rule.die_idle { TurnEnd::WithProcess(1) } else { TurnEnd::WithResult(0) })
    }

    /// Calls the tools that need approval; returns the refused ones, and whether the turn was interrupted meanwhile.
    fn play_asked(&self) -> Result<Option<(Value, bool)>, String> {
        let Some(warm) = self.warm.filter(|_| !self.rule.asked.is_empty()) else { return Ok(None) };
        let place = CallPlace {
            folder: self.folder,
            turn: self.turn,
            flags: self.flags,
            control: &warm.inbox.control,
            number: warm.number,
        };
        let mut denials = Vec::new();
        for asked in &self.rule.asked {
            let id = format!("toolu_{}", session::new_id(11));
            let end = asked.call(&id, &place)?;
            if end != CallEnd::Ran {
                denials.push(asked.denial(&id));
            }
            if end == CallEnd::Interrupted {
                return Ok(Some((denials.into(), true)));
            }
        }
        Ok(Some((denials.into(), false)))
    }

    fn interrupted_in_tool(&self) -> Result<bool, String> {
        let Some(name) = &self.rule.tool else { return Ok(false) };
        stream::write(&self.turn.tool_use(name))?;
        if self.interrupted_at(self.rule.hold_tool.as_deref()) {
            return Ok(true);
        }
        stream::write(&self.turn.tool_result())?;
        self.read_messages()?;
        Ok(false)
    }

    /// Takes the messages that have come meanwhile into this turn, as the real program does before its next request.
    fn read_messages(&self) -> Result<(), String> {
        let Some(warm) = self.warm else { return Ok(()) };
        for message in warm.inbox.waiting()? {
            log::read(self.folder, &message.text)?;
            stream::write(&self.turn.replayed(&message.line))?;
        }
        Ok(())
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
        if !rule.lines.is_empty() {
            let lines = rule.lines.iter().flat_map(stream::line);
            return stream::write(&lines.collect::<Vec<u8>>());
        }
        let padded = format!("{}{}", "x".repeat(rule.pad), rule.reply);
        let spoil = |kind: &str, line: Vec<u8>| match &rule.non_utf8 {
            Some(wanted) if wanted == kind => spoiled(line, &rule.reply),
            _ => line,
        };
        stream::write(&turn.partial(&padded))?;
        stream::write(&spoil("assistant", turn.assistant(&padded)))?;
        stream::write(&spoil("result", turn.result(&rule.reply)))
    }

    /// Plays a further turn that raymond did not ask for. The session has its prompt, too.
    fn play_unsolicited_turn(&self, text: &str) -> Result<(), String> {
        let uuid = session::new_id(1);
        session::append(&self.folder.join("sessions"), &self.turn.session, "(unasked)", &uuid)
            .map_err(|refusal| format!("fake-claude: unsolicited: {refusal:?}"))?;
        let turn = StreamTurn { uuid, replay: None, ..self.turn.clone() };
        let said = [turn.opening(), turn.assistant(text), turn.unasked(text)];
        stream::write(&said.concat())
    }

    /// Waits for the file; returns whether the turn was interrupted meanwhile.
    fn interrupted_at(&self, name: Option<&str>) -> bool {
        let interrupted =
            || self.warm.is_some_and(|warm| warm.inbox.control.is_interrupted(warm.number));
        self.wait_for(name, interrupted);
        name.is_some() && interrupted()
    }

    fn wait_for(&self, name: Option<&str>, enough: impl Fn() -> bool) {
        if let Some(name) = name {
            let file = self.folder.join(name);
            while !file.exists() && self.folder.exists() && !enough() {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }

    fn wait_forever(&self) {
        if let Some(warm) = self.warm {
            warm.inbox.control.ignore_stdin();
        }
        while self.folder.exists() {
            std::thread::sleep(POLL_INTERVAL * 20);
        }
        std::process::exit(1);
    }
}

/// Returns the line with bytes that are not UTF-8 before the reply, so inside a JSON string.
fn spoiled(mut line: Vec<u8>, reply: &str) -> Vec<u8> {
    let reply = serde_json::Value::from(reply).to_string();
    let reply = reply.trim_matches('"').as_bytes();
    let place = line.windows(reply.len().max(1)).position(|part| part == reply);
    let place = place.unwrap_or(1);
    line.splice(place..place, INVALID_UTF8.iter().copied());
    line
}

fn die(signal: i32) -> Result<(), String> {
    let signal =
        Signal::from_named_raw(signal).ok_or_else(|| format!("fake-claude: no signal {signal}"))?;
    kill_process(getpid(), signal).map_err(|error| format!("fake-claude: kill: {error}"))?;
    wait_for_signal()
}

/// Waits for the signal, which may arrive after `kill` has returned.
fn wait_for_signal() -> Result<(), String> {
    std::thread::sleep(Duration::from_secs(10));
    Err("fake-claude: survived its own signal".to_owned())
}
