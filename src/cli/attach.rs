//! `raymond attach`: a person speaks with the model of an agent in the interactive Claude Code.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use uuid::Uuid;

use super::args::orders::VisitArgs;
use super::exit::{CliExitCode, Error};
use super::visited_agent::{OrderState, VisitedAgent};
use crate::domain::agent::Agent;
use crate::domain::event::AttachedSession;
use crate::domain::event::RunCommand;
use crate::domain::id::SessionId;
use crate::runtime::attachment::SessionAttachment;
use crate::runtime::directories;

/// Runs `raymond attach`.
///
/// # Errors
/// [`Error`] if the agent has no session that can be opened, if it has gone on meanwhile, or if an agent gives the order.
pub(super) fn attach(args: &VisitArgs) -> Result<CliExitCode, Error> {
    VisitedAgent::check_lives(&args.dir, &args.run, &args.agent)?;
    if !stdin().is_terminal() || !stdout().is_terminal() {
        let why = "`raymond attach` opens Claude Code for a person, and needs a terminal; `raymond tell` gives an agent a message without one";
        return Err(Error::Usage(why.to_owned()));
    }
    let visited = VisitedAgent::hold(&args.dir, &args.run, &args.agent)?;
    let ordered = attached(&visited).and_then(|attached| match attached {
        None => Ok("nothing was said; ".to_owned()),
        Some((attached, count)) => order(&visited, attached, count),
    });
    visited.finish(ordered)
}

/// Gives the agent the session in which something was said; returns what the person is told.
fn order(
    visited: &VisitedAgent<'_>,
    attached: AttachedSession,
    count: usize,
) -> Result<String, Error> {
    let (agent, session) = (attached.turn.agent.clone(), attached.session.clone());
    let has_effect = |agent: &Agent| agent.session.id == session;
    match visited.order(&RunCommand::Attach(attached), has_effect)? {
        OrderState::Taken | OrderState::Waiting => {
            let messages =
                if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
            Ok(format!(
                "{agent} has what was said ({messages}) in its history; the costs of the run do not include it; "
            ))
        }
        OrderState::Refused => Err(Error::Usage(format!(
            "{agent} continued in the meantime, so what was said is not in its history, but in the session {session}"
        ))),
    }
}

/// Opens Claude Code for the person. Returns the session in which something was said, and the number of messages.
fn attached(visited: &VisitedAgent<'_>) -> Result<Option<(AttachedSession, usize)>, Error> {
    let (run, agent) = visited.at_rest()?;
    let session = SessionId::new(&Uuid::new_v4().to_string());
    let state = directories::user_state()?;
    let mut opened =
        SessionAttachment::prepare((visited.root(), state.path()), &run, &agent, session)?;
    let program = std::mem::take(&mut opened.program);
    let name = PathBuf::from(&program.program);
    let status = program.run().map_err(|error| Error::Io { doing: "start", path: name, error })?;
    let said = opened.said().map_err(|error| Error::Io {
        doing: "read",
        path: opened.session_file().to_owned(),
        error,
    })?;
    if said.count == 0 {
        if !status.success() {
            return Err(Error::Usage(format!("Claude Code ended with {status}; nothing was said")));
        }
        return Ok(None);
    }
    let SessionAttachment { from, session, .. } = opened;
    let (turn, message) = (agent.turn_id(), said.last_reply);
    let attached = AttachedSession { turn, from, session, message, is_late: false };
    Ok(Some((attached, said.count)))
}
