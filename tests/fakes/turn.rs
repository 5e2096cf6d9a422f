//! One scripted turn: a rule is chosen and played, and the session and the log are written.

use std::path::PathBuf;

use serde_json::Value;

use crate::behaviour::{TurnEnd, TurnPlayer};
use crate::flags::ClaudeFlags;
use crate::inbox::StdinInbox;
use crate::refused::RefusedTool;
use crate::session::{self, SessionRefusal};
use crate::usage::ProcessUsage;
use crate::{log, script, stream};

/// The data that all turns of a process have in common.
#[derive(Debug)]
pub(crate) struct FakeProcess {
    pub(crate) folder: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) flags: ClaudeFlags,
}

/// The request for a turn, and the position of the turn in its process.
#[derive(Debug)]
pub(crate) struct TurnRequest<'a> {
    pub(crate) prompt: &'a str,
    pub(crate) model: Option<&'a str>,
    /// The line that repeats the prompt, if one is wanted.
    pub(crate) replay: Option<Value>,
    /// The position in a process that takes many turns.
    pub(crate) warm: Option<WarmTurn<'a>>,
}

/// The position of a turn in a process that takes many.
#[derive(Debug)]
pub(crate) struct WarmTurn<'a> {
    /// The number of the turn, from 0.
    pub(crate) number: usize,
    /// The session, once a turn has opened it.
    pub(crate) session: Option<&'a str>,
    /// The cost of the turns before.
    pub(crate) spent: f64,
    /// The usage of each model by the turns before.
    pub(crate) used: &'a ProcessUsage,
    /// The lines that come while it runs.
    pub(crate) inbox: &'a StdinInbox,
}

/// The outcome of a turn, for the next one.
#[derive(Debug)]
pub(crate) struct TurnOutcome {
    pub(crate) end: TurnEnd,
    pub(crate) session: Option<String>,
    /// The cost of the whole process, in US dollars.
    pub(crate) cost: f64,
    /// The usage of each model by the whole process.
    pub(crate) used: ProcessUsage,
}

impl<'a> TurnRequest<'a> {
    /// Returns the request for the only turn of its process.
    pub(crate) fn alone(prompt: &'a str, flags: &'a ClaudeFlags) -> Self {
        Self { prompt, model: flags.model.as_deref(), replay: None, warm: None }
    }
}

impl FakeProcess {
    pub(crate) fn play(&self, asked: &TurnRequest) -> Result<TurnOutcome, String> {
        let rule = script::choose(&self.folder, asked.prompt)?;
        if rule.ignore_term {
            crate::term::ignore()?;
        }
        let uuid = session::new_id(1);
        let sessions = self.folder.join("sessions");
        let opened = match asked.warm.as_ref().and_then(|warm| warm.session) {
            Some(id) => session::append(&sessions, id, asked.prompt, &uuid),
            None => session::open(&sessions, &self.flags, asked.prompt, &uuid),
        };
        log::started(self, asked, opened.as_ref().ok())?;
        let model = rule.model.as_deref().or(asked.model).unwrap_or(stream::MODEL).to_owned();
        let cost = asked.warm.as_ref().map_or(0.0, |warm| warm.spent) + rule.cost;
        let before = asked.warm.as_ref().map(|warm| warm.used.clone()).unwrap_or_default();
        let used = before.plus(&rule, &model);
        let turn = |session: &str| stream::StreamTurn {
            session: session.to_owned(),
            uuid,
            model,
            permission_mode: self.flags.permission_mode(),
            has_schema: self.flags.json_schema.is_some(),
            cost,
            cost_before: cost - rule.cost,
            used: used.clone(),
            partial: self.flags.partial_messages,
            replay: asked.replay.clone(),
            denials: RefusedTool::denials(&rule.refused),
        };
        let mut session = None;
        let end = match opened {
            _ if asked.prompt.is_empty() && asked.warm.is_none() => TurnEnd::WithProcess(0),
            Ok(opened) => {
                let turn = turn(session.insert(opened.id));
                TurnPlayer {
                    folder: &self.folder,
                    rule: &rule,
                    turn: &turn,
                    warm: asked.warm.as_ref(),
                    flags: &self.flags,
                }
                .perform()?
            }
            Err(SessionRefusal::Unknown(id)) => {
                stream::write(&turn(&id).no_such_session())?;
                TurnEnd::WithProcess(1)
            }
            Err(SessionRefusal::Message(message)) => {
                crate::complain(&message);
                TurnEnd::WithProcess(1)
            }
        };
        log::done(&self.folder)?;
        Ok(TurnOutcome { end, session, cost, used })
    }
}
