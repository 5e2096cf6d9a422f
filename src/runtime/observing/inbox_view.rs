//! The commands in the inbox of a run: applied to a view of the run, as they will be when it takes them.

use std::borrow::Cow;

use crate::actor::context::now;
use crate::domain::accepted_answer::AcceptedAnswer;
use crate::domain::agent::Agent;
use crate::domain::apply::Effect;
use crate::domain::apply::apply;
use crate::domain::decide::{answer as decide, stopped};
use crate::domain::event::{AgentHold, AgentMessage, AttachedSession, PromptEdit};
use crate::domain::event::{Event, Record, RunCommand};
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::plugin::sentence::sentence;
use crate::process::transcript::TurnFiles;
use crate::proof::ProofKey;
use crate::runtime::command_name::given_at;
use crate::runtime::directories;
use crate::runtime::error::Error;
use crate::store::inbox::InboxCommand;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::received_commands;
use crate::store::view::{RunView, load_view};

/// A command that a run takes once it is resumed.
#[derive(Debug)]
pub enum InboxItem {
    /// An answer that it accepts.
    Answer(AcceptedAnswer),
    /// The sentence about an order to its agents.
    Order(String),
    /// The sentence about an order that changes nothing any more.
    LateOrder(String),
}

impl InboxItem {
    /// Returns the answer that it is; `None` if it is none.
    pub fn answer(self) -> Option<AcceptedAnswer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Order(_) | Self::LateOrder(_) => None,
        }
    }
}

/// Applies the commands in the inbox to this view of the run, and returns them in their order.
///
/// # Errors
/// [`Error::Store`] if the inbox cannot be read.
pub fn apply_inbox(run: &mut Run, dir: &RunDir, key: &ProofKey) -> Result<Vec<InboxItem>, Error> {
    Ok(apply_commands(run, dir, received_commands::waiting(dir, key)?))
}

/// Applies commands to this view of a run, and returns them in their order.
pub fn apply_commands(run: &mut Run, dir: &RunDir, waiting: Vec<InboxCommand>) -> Vec<InboxItem> {
    let mut items = Vec::new();
    for entry in waiting {
        let Some(command) = entry.command else { continue };
        match command {
            RunCommand::Answer(given) => {
                let accepted = decide(run, &given).ok().and_then(AcceptedAnswer::of);
                if let Some(accepted) = accepted {
                    apply_event(run, accepted.event());
                    items.push(InboxItem::Answer(accepted));
                }
            }
            // They are about the run as a whole.
            RunCommand::Stop | RunCommand::Retry(_) => {}
            RunCommand::Tell(_)
            | RunCommand::Hold(_)
            | RunCommand::Release(_)
            | RunCommand::Edit(_)
            | RunCommand::Attach(_)
            | RunCommand::StopAgent { .. } => items.push(order(run, dir, (entry.name, command))),
        }
    }
    items
}

/// Applies an order to an agent, as the raymond that resumes the run will.
fn order(run: &mut Run, dir: &RunDir, (id, mut command): (String, RunCommand)) -> InboxItem {
    let has_begun = |agent: &AgentId, run: &Run| {
        let turn = run.agents.get(agent).map(Agent::turn_id);
        turn.is_some_and(|turn| TurnFiles::of(&dir.steps(), &turn).are_there())
    };
    if let RunCommand::Edit(PromptEdit { turn, is_late, .. })
    | RunCommand::Attach(AttachedSession { turn, is_late, .. }) = &mut command
    {
        *is_late = has_begun(&turn.agent, run);
    }
    let is_for_nobody = !has_receiver(run, &command);
    let to_stop =
        if let RunCommand::StopAgent { agent } = &command { Some(agent.clone()) } else { None };
    let at = given_at(&id).unwrap_or_else(now);
    let record = Record::next(run, at, Event::CommandReceived { id, command });
    let effects = apply(run, &record).unwrap_or_default();
    let is_refused = effects.iter().any(|effect| matches!(effect, Effect::Warn { .. }));
    if let Some(agent) = to_stop.filter(|agent| !has_begun(agent, run))
        && let Some(event) = run.agents.get(&agent).and_then(stopped)
    {
        apply_event(run, event);
    }
    let sentence = sentence(&record);
    if is_for_nobody || is_refused {
        InboxItem::LateOrder(sentence)
    } else {
        InboxItem::Order(sentence)
    }
}

/// Returns whether an agent that an order is for lives.
fn has_receiver(run: &Run, command: &RunCommand) -> bool {
    match command {
        RunCommand::Hold(AgentHold { family, .. })
        | RunCommand::Release(AgentHold { family, .. }) => {
            run.agents.unordered().any(|agent| family.has(&agent.id))
        }
        RunCommand::Tell(AgentMessage { agent, .. }) | RunCommand::StopAgent { agent } => {
            run.agents.contains_key(agent)
        }
        RunCommand::Edit(PromptEdit { turn, .. })
        | RunCommand::Attach(AttachedSession { turn, .. }) => run.agents.contains_key(&turn.agent),
        RunCommand::Stop | RunCommand::Answer(_) | RunCommand::Retry(_) => true,
    }
}

/// Applies an event to this view of the run.
pub fn apply_event(run: &mut Run, event: Event) {
    let record = Record::next(run, now(), event);
    let _ = apply(run, &record);
}

/// Returns a run as it stands on the disk, once it has taken the commands in its inbox, whoever executes it.
///
/// # Errors
/// [`Error::Store`] if the run or its inbox cannot be read.
pub fn load_with_inbox(root: &RunsRoot, id: &RunId) -> Result<RunView, Error> {
    let dir = root.run(id);
    // What is taken between the two looks is in the journal then, and changes nothing twice.
    let waiting = received_commands::waiting(&dir, &directories::user_state()?.key()?)?;
    let mut view = load_view(root, id)?;
    apply_commands(&mut view.run, &dir, waiting);
    Ok(view)
}

/// Returns a run as it is once it has taken the commands in its inbox. One that somebody holds takes them soon, and an
/// inbox that cannot be read hides nothing: in both cases the run is as its journal says.
pub fn with_inbox<'run>(dir: &RunDir, run: &'run Run, held: bool) -> Cow<'run, Run> {
    let waiting = || -> Result<Vec<InboxCommand>, Error> {
        Ok(received_commands::waiting(dir, &directories::user_state()?.key()?)?)
    };
    let may_take = run.can_resume() && !held;
    let waiting = if may_take { waiting().unwrap_or_default() } else { Vec::new() };
    if waiting.is_empty() {
        return Cow::Borrowed(run);
    }
    let mut after = run.clone();
    apply_commands(&mut after, dir, waiting);
    Cow::Owned(after)
}
