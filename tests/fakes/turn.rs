//! One turn as the script has it: a rule is chosen and played, the session and the log kept.

use std::path::PathBuf;

use serde_json::Value;

use crate::behaviour::{End, Play};
use crate::flags::Flags;
use crate::inbox::Wishes;
use crate::refused::Refused;
use crate::session::{self, Refusal};
use crate::usage::Usage;
use crate::{log, script, stream};

/// What all turns of a process have in common.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) folder: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) flags: Flags,
}

/// What a turn is asked, and what was before it in its process.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) prompt: &'a str,
    pub(crate) model: Option<&'a str>,
    /// The line that repeats the prompt, if one is wanted.
    pub(crate) replay: Option<Value>,
    /// Absent when the process takes one turn only.
    pub(crate) warm: Option<Warm<'a>>,
}

/// Where a turn stands in a process that takes many.
#[derive(Debug)]
pub(crate) struct Warm<'a> {
    /// Counted from 0.
    pub(crate) number: usize,
    /// The session, once a turn has opened it.
    pub(crate) session: Option<&'a str>,
    /// What the turns before cost.
    pub(crate) spent: f64,
    /// What they took of each model.
    pub(crate) used: &'a Usage,
    pub(crate) wishes: &'a Wishes,
}

/// What a turn leaves for the next one.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) end: End,
    pub(crate) session: Option<String>,
    /// US dollars, of the whole process.
    pub(crate) cost: f64,
    /// What was taken of each model, by the whole process.
    pub(crate) used: Usage,
}

impl<'a> Asked<'a> {
    /// The only turn of its process.
    pub(crate) fn alone(prompt: &'a str, flags: &'a Flags) -> Self {
        Self { prompt, model: flags.model.as_deref(), replay: None, warm: None }
    }
}

impl Process {
    pub(crate) fn play(&self, asked: &Asked) -> Result<Played, String> {
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
        let turn = |session: &str| stream::Turn {
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
            denials: Refused::denials(&rule.refused),
        };
        let mut session = None;
        let end = match opened {
            _ if asked.prompt.is_empty() && asked.warm.is_none() => End::Gone(0),
            Ok(opened) => {
                let turn = turn(session.insert(opened.id));
                Play { folder: &self.folder, rule: &rule, turn: &turn, warm: asked.warm.as_ref() }
                    .perform()?
            }
            Err(Refusal::Unknown(id)) => {
                stream::write(&turn(&id).no_such_session())?;
                End::Gone(1)
            }
            Err(Refusal::Message(message)) => {
                crate::complain(&message);
                End::Gone(1)
            }
        };
        log::done(&self.folder)?;
        Ok(Played { end, session, cost, used })
    }
}
