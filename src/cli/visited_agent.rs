//! `raymond attach` and `raymond edit`: an agent that is held while a person works on it.
//!
//! Nothing of the agent begins meanwhile, and afterwards it goes on.

use std::ffi::OsString;
use std::io::{IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::agent_orders::{GivenOrder, check_lives, put_order};
use super::args::runs::{DirArgs, VisitArgs};
use super::exit::{CliExitCode, Error};
use super::{output, settings};
use crate::domain::agent::{Agent, PersonOrders};
use crate::domain::event::{AgentFamily, AgentHold, AttachedSession, PromptEdit, RunCommand};
use crate::domain::id::{AgentId, RunId, SessionId};
use crate::domain::run::Run;
use crate::plain_file;
use crate::process::attach::ForegroundProgram;
use crate::process::transcript::TurnFiles;
use crate::runtime::answerer::SessionAttachment;
use crate::runtime::command_name::command_name;
use crate::runtime::directories;
use crate::runtime::observing::agent_entries::load_with_inbox;
use crate::runtime::supervise::due_prompt;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view};
use crate::store::{files, inbox};

/// The poll interval while waiting for the agent's turn.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The longest time for a raymond to take an order.
const TAKING_TIMEOUT: Duration = Duration::from_secs(30);

/// A held agent.
pub(super) struct VisitedAgent<'a> {
    root: RunsRoot,
    dir_args: &'a DirArgs,
    run: RunId,
    agent: AgentId,
    /// The name of the visit.
    visit: String,
}

/// The state of an order that was given to a held agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderState {
    /// It has taken effect.
    Taken,
    /// It came too late.
    Refused,
    /// It takes effect once the run is resumed.
    Waiting,
}

impl<'a> VisitedAgent<'a> {
    /// Checks that there is such a live agent.
    ///
    /// # Errors
    /// [`Error`] if there is none.
    pub(super) fn check_lives(dir: &DirArgs, run: &RunId, agent: &AgentId) -> Result<(), Error> {
        let root = dir.root();
        let run = load_view(&root, &settings::find(&root, run)?)?.run;
        check_lives(&run, &AgentFamily { agent: agent.clone(), descendants: false })
    }

    /// Holds a live agent.
    ///
    /// # Errors
    /// [`Error`] if there is no such live agent, or an agent gives the order.
    pub(super) fn hold(dir: &'a DirArgs, run: &RunId, agent: &AgentId) -> Result<Self, Error> {
        // Its path stands in prompts, which are read in other directories.
        let root = directories::root(dir.root().path())?;
        let run = settings::find(&root, run)?;
        let (agent, visit) = (agent.clone(), command_name());
        let visited = Self { root, dir_args: dir, run, agent, visit };
        visited.check_no_other()?;
        visited.give(&RunCommand::Hold(visited.hold_of_visit()))?;
        Ok(visited)
    }

    /// Checks that nobody else visits the agent.
    fn check_no_other(&self) -> Result<(), Error> {
        let visit = self.person_orders()?.and_then(|orders| orders.visit);
        if visit.is_none_or(|visit| visit.name == self.visit) {
            return Ok(());
        }
        let (run, agent) = (&self.run, &self.agent);
        Err(Error::Usage(format!(
            "the prompt of {agent} is being edited, or a session is attached; if that was interrupted: raymond release {run} {agent}"
        )))
    }

    fn give(&self, order: &RunCommand) -> Result<GivenOrder, Error> {
        put_order(&self.root, self.dir_args, &self.run, order)
    }

    fn hold_of_visit(&self) -> AgentHold {
        let family = AgentFamily { agent: self.agent.clone(), descendants: false };
        AgentHold { family, visit: Some(self.visit.clone()) }
    }

    /// Returns the orders to the agent, with those that lie in the inbox; `None` if it has ended.
    fn person_orders(&self) -> Result<Option<PersonOrders>, Error> {
        let run = self.run_with_inbox()?;
        Ok(run.agents.get(&self.agent).map(|agent| agent.orders.clone()))
    }

    /// Returns its run with the commands that lie in the inbox.
    fn run_with_inbox(&self) -> Result<Run, Error> {
        Ok(load_with_inbox(&self.root, &self.run)?.run)
    }

    /// Returns the directory of its run.
    pub(super) fn dir(&self) -> RunDir {
        self.root.run(&self.run)
    }

    /// Returns its run, and itself, once no turn of it runs.
    ///
    /// # Errors
    /// [`Error`] if it ends meanwhile, if it is at no prompt, or if its turn is not recorded because nobody executes
    /// its run.
    pub(super) fn at_rest(&self) -> Result<(Run, Agent), Error> {
        let (steps, mut is_reported) = (self.dir().steps(), false);
        loop {
            let RunView { run, held: is_live, .. } = load_view(&self.root, &self.run)?;
            let Some(agent) = run.agents.get(&self.agent).cloned() else {
                return Err(Error::Usage(format!("{} has ended in the meantime", self.agent)));
            };
            let begins_nothing = agent.is_held() || !is_live;
            if begins_nothing && agent.advances_itself() {
                let why =
                    format!("{} is at {}, which is not a prompt", self.agent, agent.current_state);
                return Err(Error::Usage(why));
            }
            if !is_live {
                self.check_nothing_waits()?;
            }
            let has_started = TurnFiles::of(&steps, &agent.turn_id()).are_there();
            if begins_nothing && !has_started {
                self.check_no_other()?;
                return Ok((run, agent));
            }
            if !is_live {
                let (run, agent) = (&self.run, &self.agent);
                return Err(Error::Usage(format!(
                    "{run} is not live, and a turn of {agent} has begun; `raymond resume {run}` finishes it"
                )));
            }
            if begins_nothing && !is_reported {
                let (run, agent) = (&self.run, &self.agent);
                output::tell(&format!(
                    "{agent} is held; waiting for its running turn to finish (Ctrl-C leaves it held until `raymond release {run} {agent}`)"
                ));
                is_reported = true;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Checks that no earlier order of this kind lies in the inbox, which this one could not know of.
    fn check_nothing_waits(&self) -> Result<(), Error> {
        let key = directories::user_state()?.key()?;
        let waiting = inbox::waiting(&self.dir(), &key)?;
        let is_earlier = |order: &RunCommand| match order {
            RunCommand::Edit(edit) => edit.turn.agent == self.agent,
            RunCommand::Attach(attached) => attached.turn.agent == self.agent,
            _ => false,
        };
        if waiting.iter().filter_map(|entry| entry.command.as_ref()).any(is_earlier) {
            let (run, agent) = (&self.run, &self.agent);
            return Err(Error::Usage(format!(
                "what was said to {agent} or edited for it before waits for `raymond resume {run}`"
            )));
        }
        Ok(())
    }

    /// Gives it an order, and waits until the raymond that executes its run has taken it. `has_effect` tells whether
    /// the agent is as ordered.
    ///
    /// # Errors
    /// [`Error`] if the order cannot be left.
    pub(super) fn order(
        &self,
        order: &RunCommand,
        has_effect: impl Fn(&Agent) -> bool,
    ) -> Result<OrderState, Error> {
        let given = self.give(order)?;
        let began = Instant::now();
        let key = directories::user_state()?.key()?;
        loop {
            let waiting = inbox::list(&self.dir().inbox(), Some(&key))?;
            if !waiting.iter().any(|entry| entry.name == given.name) {
                break;
            }
            let is_live = load_view(&self.root, &self.run)?.held;
            if !is_live || began.elapsed() > TAKING_TIMEOUT {
                return self.foreseen(&given.name, has_effect);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let run = load_view(&self.root, &self.run)?.run;
        let is_taken = run.agents.get(&self.agent).is_some_and(has_effect);
        Ok(if is_taken { OrderState::Taken } else { OrderState::Refused })
    }

    /// Returns what becomes of an order in the inbox. Takes back an order that comes too late.
    fn foreseen(
        &self,
        name: &str,
        has_effect: impl Fn(&Agent) -> bool,
    ) -> Result<OrderState, Error> {
        if self.run_with_inbox()?.agents.get(&self.agent).is_some_and(has_effect) {
            return Ok(OrderState::Waiting);
        }
        inbox::remove(&self.dir().inbox(), name)?;
        Ok(OrderState::Refused)
    }

    /// Ends the visit, and prints what became of it and whether the agent goes on.
    ///
    /// # Errors
    /// That of the visit, or [`Error`] if the order cannot be left.
    pub(super) fn finish(self, visit: Result<String, Error>) -> Result<CliExitCode, Error> {
        let left = self.leave();
        // An agent that has ended meanwhile cannot be released; the visit tells of that itself.
        output::print(&format!("{}{}\n", visit?, left?))
    }

    /// Returns the sentence about what the agent does now.
    fn leave(&self) -> Result<String, Error> {
        let (run, agent) = (&self.run, &self.agent);
        let left = self.give(&RunCommand::Release(self.hold_of_visit()))?;
        let is_held = self.person_orders()?.is_some_and(|orders| orders.held().is_some());
        Ok(if is_held {
            format!("{agent} stays held: raymond release {run} {agent}")
        } else {
            format!("{agent} continues{}", left.later())
        })
    }
}

// `raymond attach`: a person speaks with the model of an agent in the interactive Claude Code.

/// Runs `raymond attach`.
///
/// # Errors
/// [`Error`] if the agent has no session that can be opened, if it has gone on meanwhile, or if an agent gives the
/// order.
pub(super) fn attach(args: &VisitArgs) -> Result<CliExitCode, Error> {
    VisitedAgent::check_lives(&args.dir, &args.run, &args.agent)?;
    if !stdin().is_terminal() || !stdout().is_terminal() {
        let why = "`raymond attach` opens Claude Code for a person, and needs a terminal; `raymond tell` gives an agent a message without one";
        return Err(Error::Usage(why.to_owned()));
    }
    let visited = VisitedAgent::hold(&args.dir, &args.run, &args.agent)?;
    let ordered = attached(&visited).and_then(|attached| match attached {
        None => Ok("nothing was said; ".to_owned()),
        Some((attached, count)) => attach_order(&visited, attached, count),
    });
    visited.finish(ordered)
}

/// Gives the agent the session in which something was said. Returns the message for the person.
fn attach_order(
    visited: &VisitedAgent<'_>,
    attached: AttachedSession,
    count: usize,
) -> Result<String, Error> {
    let (agent, session) = (attached.turn.agent.clone(), attached.session.clone());
    let has_effect = |agent: &Agent| agent.session.id == session;
    match visited.order(&RunCommand::Attach(attached), has_effect)? {
        OrderState::Taken | OrderState::Waiting => {
            let messages = output::counted(count, "message");
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
        SessionAttachment::prepare(&visited.root, state.path(), &run, &agent, session)?;
    let program = std::mem::take(&mut opened.program);
    let name = program.program.clone();
    let status = program.run().map_err(Error::io("start", &name))?;
    let conversation = opened.messages().map_err(Error::io("read", opened.session_file()))?;
    if conversation.count == 0 {
        if !status.success() {
            return Err(Error::Usage(format!("Claude Code ended with {status}; nothing was said")));
        }
        return Ok(None);
    }
    let SessionAttachment { from, session, .. } = opened;
    let (turn, message) = (agent.turn_id(), conversation.last_reply);
    let attached = AttachedSession { turn, from, session, message, is_late: false };
    Ok(Some((attached, conversation.count)))
}

// `raymond edit`: a person edits the pending prompt of an agent.

/// The editor if the environment names none.
const USUAL_EDITOR: &str = "vi";

/// The longest prompt that is edited, in bytes.
const MAX_LENGTH: u64 = 1024 * 1024;

/// Runs `raymond edit`.
///
/// # Errors
/// [`Error`] if no prompt of the agent is due, if it has gone on meanwhile, or if an agent gives the order.
pub(super) fn edit(args: &VisitArgs) -> Result<CliExitCode, Error> {
    let visited = VisitedAgent::hold(&args.dir, &args.run, &args.agent)?;
    let ordered = edit_in_editor(&visited).and_then(|edit| match edit {
        None => Ok("nothing was changed; ".to_owned()),
        Some((edit, draft)) => {
            edit_order(&visited, edit).map_err(|error| with_draft_named(&draft, error)).inspect(
                |_| {
                    // The run has the text now.
                    let _ = std::fs::remove_file(&draft);
                },
            )
        }
    });
    visited.finish(ordered)
}

/// Gives the run the edited prompt. Returns the message for the person.
fn edit_order(visited: &VisitedAgent<'_>, edit: PromptEdit) -> Result<String, Error> {
    let (agent, text) = (edit.turn.agent.clone(), edit.text.clone());
    let has_effect = |agent: &Agent| agent.asked_text(String::new()) == text;
    match visited.order(&RunCommand::Edit(edit), has_effect)? {
        OrderState::Taken | OrderState::Waiting => Ok(format!("{agent} is asked:\n\n{text}\n\n")),
        OrderState::Refused => Err(Error::Usage(format!(
            "{agent} continued in the meantime, so its prompt was not edited"
        ))),
    }
}

/// Has the person edit the prompt. Returns the edit and the file that holds it, or `None` if it is empty or as before.
fn edit_in_editor(visited: &VisitedAgent<'_>) -> Result<Option<(PromptEdit, PathBuf)>, Error> {
    let (run, agent) = visited.at_rest()?;
    let turn = agent.turn_id();
    let before = due_prompt(&visited.dir(), &run, &agent)?;
    // Nothing else has this name, so what a failed edit has left stays.
    let name = format!("edit-{}-{}.md", turn.stem(), Uuid::new_v4().simple());
    let draft = visited.dir().path().join(name);
    files::replace(&draft, before.as_bytes())?;
    let without_draft = |_: &Error| {
        let _ = std::fs::remove_file(&draft);
    };
    let (editor, program) = editor(&draft).inspect_err(without_draft)?;
    let status = program.run().map_err(Error::io("start", "sh"));
    let status = status.map_err(|error| with_draft_named(&draft, error))?;
    let is_as_before =
        || plain_file::read(&draft, MAX_LENGTH).is_ok_and(|now| now == before.as_bytes());
    if !status.success() {
        let editor = editor.display();
        let why = Error::Usage(match status.code() {
            Some(127) => format!("the editor `{editor}` was not found; set VISUAL or EDITOR"),
            _ => format!("the editor `{editor}` ended with {status}, so nothing was changed"),
        });
        if is_as_before() {
            let _ = std::fs::remove_file(&draft);
            return Err(why);
        }
        return Err(with_draft_named(&draft, why));
    }
    let read = plain_file::read(&draft, MAX_LENGTH)
        .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
    let read = read.map_err(Error::io("read", &draft));
    let after = read.map_err(|error| with_draft_named(&draft, error))?;
    let text = after.trim_end().to_owned();
    if text.is_empty() || text == before.trim_end() {
        let _ = std::fs::remove_file(&draft);
        return Ok(None);
    }
    Ok(Some((PromptEdit { turn, text, is_late: false }, draft)))
}

/// Tells where the text of an edit is that has failed, and returns its error.
fn with_draft_named(draft: &Path, error: Error) -> Error {
    output::tell(&format!("the text is kept in {}", draft.display()));
    error
}

/// Returns the person's editor, and the program for a file. Its words are those of a shell, as other programs read
/// them.
fn editor(file: &Path) -> Result<(OsString, ForegroundProgram), Error> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(named);
    if named.is_none() && !(stdin().is_terminal() && stdout().is_terminal()) {
        let why = "no terminal for an editor; set VISUAL or EDITOR to an editor that does not need a terminal";
        return Err(Error::Usage(why.to_owned()));
    }
    let editor = named.unwrap_or_else(|| USUAL_EDITOR.into());
    let mut words = editor.clone();
    words.push(" \"$@\"");
    let arguments = vec!["-c".into(), words, "editor".into(), file.into()];
    let program =
        ForegroundProgram { program: "sh".into(), arguments, ..ForegroundProgram::default() };
    Ok((editor, program))
}
