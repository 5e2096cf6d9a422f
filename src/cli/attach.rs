//! `raymond attach`: a person speaks with the model of an agent in the interactive Claude Code.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use uuid::Uuid;

use super::args::orders::VisitArgs;
use super::exit::{CliExitCode, Error};
use super::visited_agent::VisitedAgent;
use super::{output, person};
use crate::domain::event::RunCommand;
use crate::domain::id::SessionId;
use crate::domain::person_command::AttachedSession;
use crate::runtime::attachment::SessionAttachment;

/// Runs `raymond attach`.
///
/// # Errors
/// [`Error`] if the agent has no session that can be opened, or an agent gives the order.
pub(super) fn attach(args: &VisitArgs) -> Result<CliExitCode, Error> {
    person::must_act("speak with an agent")?;
    if !stdin().is_terminal() || !stdout().is_terminal() {
        let why = "`raymond attach` opens Claude Code for a person, and needs a terminal; `raymond tell` gives an agent a message without one";
        return Err(Error::Usage(why.to_owned()));
    }
    let root = args.dir.root();
    let visited = VisitedAgent::hold((&root, &args.dir), &args.run, &args.agent)?;
    match attached(&visited, args) {
        Ok(Some((attached, count))) => {
            let later = visited.leave(Some(&RunCommand::Attach(attached)))?;
            let messages =
                if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
            output::print(&format!(
                "{} goes on with what was said ({messages}); the cost of that is not among the costs of the run{later}\n",
                args.agent
            ))
        }
        Ok(None) => {
            let later = visited.leave(None)?;
            output::print(&format!("nothing was said; {} goes on as before{later}\n", args.agent))
        }
        Err(error) => {
            // One that has ended meanwhile cannot be released.
            let _ = visited.leave(None);
            Err(error)
        }
    }
}

/// Opens Claude Code for the person. Returns the session in which something was said, and the number of messages.
fn attached(
    visited: &VisitedAgent<'_>,
    args: &VisitArgs,
) -> Result<Option<(AttachedSession, usize)>, Error> {
    let run = visited.at_rest()?;
    let agent = run.agents.get(&args.agent);
    let agent = agent.ok_or_else(|| Error::Usage(format!("{} has ended", args.agent)))?;
    let session = SessionId::new(&Uuid::new_v4().to_string());
    let mut opened = SessionAttachment::prepare(&args.dir.root(), &run, agent, session)?;
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
    let attached =
        AttachedSession { turn: agent.turn_id(), from, session, message: said.last_reply };
    Ok(Some((attached, said.count)))
}
