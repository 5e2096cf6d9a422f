//! Orders to single agents of a run: `raymond tell`, `hold`, `release`, and `stop --agent`.
//!
//! An order lies in the run's inbox once it is made, so it is not lost. The raymond that holds the run takes it, or the next
//! one that resumes it.

use serde_json::{Value, json};

use super::agent_selector::check_agent_exists;
use super::answer::from_stdin;
use super::args::NamedRunArgs;
use super::args::orders::{HoldArgs, TellArgs};
use super::args::runs::DirArgs;
use super::exit::{CliExitCode, Error};
use super::{engine, output, run_choice};
use crate::domain::agent::Agent;
use crate::domain::event::RunCommand;
use crate::domain::event::{AgentFamily, AgentMessage, AttachedSession, PromptEdit};
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::process::transcript::TurnFiles;
use crate::runtime::command_name::next_command_name;
use crate::runtime::directories;
use crate::runtime::observing::inbox_view::load_with_inbox;
use crate::store::inbox;
use crate::store::layout::RunsRoot;
use crate::store::view::RunView;

/// Runs `raymond tell`.
///
/// # Errors
/// [`Error`] if there is no such live agent, or an agent gives the order.
pub fn tell(args: &TellArgs) -> Result<CliExitCode, Error> {
    let mut text = args.text.clone();
    if text == "-" {
        text = from_stdin("read the message from")?;
    }
    let command = RunCommand::Tell(AgentMessage { agent: args.agent.clone(), text });
    let given = put_order((&args.dir.root(), &args.dir), &args.run, &command)?;
    let with = if given.has_turn { "next request to the model" } else { "next prompt" };
    given.print(args.json, |agent| format!("{agent} gets the message with its {with}"))
}

/// Runs `raymond hold`.
///
/// # Errors
/// As [`tell`].
pub fn hold(args: &HoldArgs) -> Result<CliExitCode, Error> {
    let command = RunCommand::Hold(args.agent.family().clone().into());
    let given = put_order((&args.dir.root(), &args.dir), &args.run, &command)?;
    let already = match given.held_before {
        HeldAgents::All => " is held already: it",
        HeldAgents::None | HeldAgents::Some => "",
    };
    given.print(args.json, |agent| {
        format!("{agent}{already} starts nothing new until it is released; what already runs finishes as usual")
    })
}

/// Runs `raymond release`.
///
/// # Errors
/// As [`tell`].
pub fn release(args: &HoldArgs) -> Result<CliExitCode, Error> {
    let command = RunCommand::Release(args.agent.family().clone().into());
    let given = put_order((&args.dir.root(), &args.dir), &args.run, &command)?;
    match given.held_before {
        HeldAgents::None if !args.json => {
            output::print(&format!("{} is not held, so nothing changes\n", given.order.family))
        }
        HeldAgents::None | HeldAgents::Some | HeldAgents::All => {
            given.print(args.json, |agent| format!("{agent} continues"))
        }
    }
}

/// Runs `raymond stop --agent`.
///
/// # Errors
/// As [`tell`].
pub(super) fn stop_agent(
    run: &NamedRunArgs,
    (dir, json): (&DirArgs, bool),
    agent: &AgentId,
) -> Result<CliExitCode, Error> {
    let run = run_choice::chosen(run, &dir.root())?;
    let command = RunCommand::StopAgent { agent: agent.clone() };
    let given = put_order((&dir.root(), dir), &run, &command)?;
    given.print(json, |agent| {
        format!(
            "{agent} ends as failed, and waiting agents are notified; `raymond retry` retries it"
        )
    })
}

/// Gives an order to an agent of a run, and returns what `--json` prints.
///
/// # Errors
/// As [`tell`].
pub(super) fn put_order_as_json(
    place: (&RunsRoot, &DirArgs),
    run: &RunId,
    order: &RunCommand,
) -> Result<Value, Error> {
    Ok(put_order(place, run, order)?.as_json())
}

/// An order that was given.
pub(super) struct GivenOrder {
    run: RunId,
    /// Its name in the inbox.
    pub(super) name: String,
    order: AgentOrder,
    /// True if a raymond holds the run, and takes the order soon.
    is_live: bool,
    /// True if a turn of the agent runs.
    has_turn: bool,
    /// The agents of the family that were held before it.
    held_before: HeldAgents,
}

impl GivenOrder {
    fn as_json(&self) -> Value {
        let Self { run, order: AgentOrder { family, name, .. }, is_live, .. } = self;
        json!({ "run": run, "agent": family.to_string(), "command": name, "is_live": is_live })
    }

    /// Returns the end of a sentence about it: when it takes effect, if nobody executes the run.
    pub(super) fn later(&self) -> String {
        let Self { run, is_live, .. } = self;
        if *is_live {
            return String::new();
        }
        format!(
            "; {run} is not live, so this takes effect when it is resumed: raymond resume {run}"
        )
    }

    fn print(
        &self,
        json: bool,
        says: impl Fn(&AgentFamily) -> String,
    ) -> Result<CliExitCode, Error> {
        if json {
            return output::print_json(&self.as_json());
        }
        output::print(&format!("{}{}\n", says(&self.order.family), self.later()))
    }
}

/// The agents of a family that a person holds.
#[derive(Clone, Copy)]
enum HeldAgents {
    None,
    Some,
    All,
}

impl HeldAgents {
    fn of(run: &Run, family: &AgentFamily) -> Self {
        let members = || run.agents.unordered().filter(|agent| family.has(&agent.id));
        let is_held = |agent: &Agent| agent.orders.held_since.is_some();
        if members().all(|agent| !agent.is_held()) {
            Self::None
        } else if members().all(is_held) {
            Self::All
        } else {
            Self::Some
        }
    }
}

/// The words about an order.
struct AgentOrder {
    family: AgentFamily,
    name: &'static str,
}

impl AgentOrder {
    /// Returns the words; `None` for a command that is no order to an agent.
    fn of(command: &RunCommand) -> Option<Self> {
        let alone = |agent: &AgentId| AgentFamily { agent: agent.clone(), descendants: false };
        let (family, name) = match command {
            RunCommand::Tell(message) => (alone(&message.agent), "tell"),
            RunCommand::Hold(hold) => (hold.family.clone(), "hold"),
            RunCommand::Release(hold) => (hold.family.clone(), "release"),
            RunCommand::StopAgent { agent } => (alone(agent), "stop_agent"),
            RunCommand::Edit(PromptEdit { turn, .. }) => (alone(&turn.agent), "edit"),
            RunCommand::Attach(AttachedSession { turn, .. }) => (alone(&turn.agent), "attach"),
            RunCommand::Stop | RunCommand::Answer(_) | RunCommand::Retry(_) => return None,
        };
        Some(Self { family, name })
    }
}

/// Leaves an order in the inbox of a run; it is durable when this returns.
///
/// # Errors
/// As [`tell`].
pub(super) fn put_order(
    (root, dir): (&RunsRoot, &DirArgs),
    run: &RunId,
    command: &RunCommand,
) -> Result<GivenOrder, Error> {
    let no_order = || Error::Usage("this is not an order to an agent".to_owned());
    let order = AgentOrder::of(command).ok_or_else(no_order)?;
    if let RunCommand::Tell(AgentMessage { text, .. }) = command
        && text.trim().is_empty()
    {
        return Err(Error::Usage("the message is empty".to_owned()));
    }
    let id = run_choice::find(root, run)?;
    engine::must_be_named(dir, root, &id)?;
    let RunView { run, held, .. } = load_with_inbox(root, &id)?;
    check_lives(&run, &order.family)?;
    let held_before = HeldAgents::of(&run, &order.family);
    let (key, inbox) = (directories::user_state()?.key()?, root.run(&id).inbox());
    let name = next_command_name(&inbox, &key);
    inbox::put(&inbox, &name, command, &key)?;
    let agent = run.agents.get(&order.family.agent).map(Agent::turn_id);
    let has_turn = |turn| TurnFiles::of(&root.run(&id).steps(), &turn).are_there();
    let has_turn = held && agent.is_some_and(has_turn);
    Ok(GivenOrder { run: id, name, order, is_live: held, has_turn, held_before })
}

/// Checks that an agent of a family lives.
///
/// # Errors
/// [`Error::Usage`] if none does.
pub(super) fn check_lives(run: &Run, family: &AgentFamily) -> Result<(), Error> {
    check_agent_exists(run, &family.agent)?;
    if run.agents.keys().any(|id| family.has(id)) {
        return Ok(());
    }
    let id = &run.workflow_id;
    Err(Error::Usage(format!(
        "{family} has already ended; `raymond tree {id}` shows the live agents"
    )))
}
