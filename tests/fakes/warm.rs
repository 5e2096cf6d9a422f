//! The warm mode, `--input-format stream-json`: the process stays up and takes a turn for each
//! message on stdin, all in one session, until stdin ends or a rule ends it.

use std::process::ExitCode;

use crate::flags::Flags;
use crate::inbox::{self, Inbox, Message};
use crate::turn::{Asked, Process, Warm};
use crate::usage::Usage;
use crate::{floor, log, session, stream};

pub(crate) fn play(process: Option<&Process>, flags: &Flags) -> Result<ExitCode, String> {
    match process {
        Some(process) => scripted(process, &Inbox::open(flags.model.clone())),
        None => unscripted(flags),
    }
}

fn scripted(process: &Process, inbox: &Inbox) -> Result<ExitCode, String> {
    log::up(&process.folder)?;
    let (mut session, mut spent, mut used) = (None, 0.0, Usage::default());
    for number in 0.. {
        let Some(message) = inbox.next()? else { break };
        let wishes = &inbox.wishes;
        let played = process.play(&Asked {
            prompt: &message.text,
            model: message.model.as_deref(),
            replay: replay(&message, &process.flags),
            warm: Some(Warm { number, session: session.as_deref(), spent, used: &used, wishes }),
        })?;
        if played.end.is_gone() {
            return Ok(ExitCode::from(played.end.code()));
        }
        (session, spent, used) = (played.session, played.cost, played.used);
    }
    log::ended(&process.folder)?;
    Ok(ExitCode::SUCCESS)
}

/// The floor of a process, so without a further thread.
fn unscripted(flags: &Flags) -> Result<ExitCode, String> {
    let mut turn = floor::turn(flags);
    inbox::read_here(flags.model.clone(), |message| {
        turn.uuid = session::new_id(1);
        turn.replay = replay(&message, flags);
        turn.model = message.model.unwrap_or_else(|| stream::MODEL.to_owned());
        floor::answer(&turn, message.text)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn replay(message: &Message, flags: &Flags) -> Option<serde_json::Value> {
    flags.replay_user_messages.then(|| message.line.clone())
}
