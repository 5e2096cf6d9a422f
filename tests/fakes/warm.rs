//! The warm mode, `--input-format stream-json`: the process takes a turn for each message on stdin, all in
//! one session, until stdin ends or a rule ends the process.

use std::process::ExitCode;

use crate::flags::ClaudeFlags;
use crate::inbox::{self, StdinInbox, TurnMessage};
use crate::turn::{FakeProcess, TurnRequest, WarmTurn};
use crate::usage::ProcessUsage;
use crate::{floor, log, session, stream};

pub(crate) fn play(process: Option<&FakeProcess>, flags: &ClaudeFlags) -> Result<ExitCode, String> {
    match process {
        Some(process) => scripted(process, &StdinInbox::open(flags.model.clone())),
        None => unscripted(flags),
    }
}

fn scripted(process: &FakeProcess, inbox: &StdinInbox) -> Result<ExitCode, String> {
    log::process_started(&process.folder)?;
    let (mut session, mut spent, mut used) = (None, 0.0, ProcessUsage::default());
    for number in 0.. {
        let Some(message) = inbox.next()? else { break };
        let played = process.play(&TurnRequest {
            prompt: &message.text,
            model: message.model.as_deref(),
            replay: replay(&message, &process.flags),
            warm: Some(WarmTurn { number, session: session.as_deref(), spent, used: &used, inbox }),
        })?;
        if played.end.ends_process() {
            return Ok(ExitCode::from(played.end.code()));
        }
        (session, spent, used) = (played.session, played.cost, played.used);
    }
    log::ended(&process.folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Answers without a script. This is the floor of a process, so it starts no further thread.
fn unscripted(flags: &ClaudeFlags) -> Result<ExitCode, String> {
    let mut turn = floor::turn(flags);
    inbox::read_here(flags.model.clone(), |message| {
        turn.uuid = session::new_id(1);
        turn.replay = replay(&message, flags);
        turn.model = message.model.unwrap_or_else(|| stream::MODEL.to_owned());
        floor::answer(&turn, message.text)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn replay(message: &TurnMessage, flags: &ClaudeFlags) -> Option<serde_json::Value> {
    flags.replay_user_messages.then(|| message.line.clone())
}
