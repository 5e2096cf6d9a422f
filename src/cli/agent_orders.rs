//! Orders to single agents of a run: `raymond tell`, `hold`, `release`, and `stop --agent`.
//!
//! An order lies in the run's inbox once it is made, so it is not lost. The raymond that holds the run takes it, or the next
//! one that resumes it.

use serde_json::json;
use uuid::Uuid;

use super::agent_selector::check_agent_exists;
use super::answer::from_stdin;
use super::args::NamedRunArgs;
use super::args::orders::{HoldArgs, TellArgs};
use super::args::runs::DirArgs;
use super::exit::{CliExitCode, Error};
use super::{engine, output, person, run_choice};
use crate::actor::clock::now;
use crate::domain::event::RunCommand;
use crate::domain::id::{AgentId, RunId};
use crate::domain::person_command::{AgentFamily, AgentMessage};
use crate::domain::run::Run;
use crate::runtime::directories;
use crate::store::inbox;
use crate::store::view::{RunView, load_view};

/// Runs `raymond tell`.
///
/// # Errors
/// [`Error`] if there is no such live agent, or an agent gives the order.
pub fn tell(args: &TellArgs) -> Result<CliExitCode, Error> {
    let mut text = args.text.clone();
    if text == "-" {
        text = from_stdin("read the message from")?;
    }
    if text.trim().is_empty() {
        return Err(Error::Usage("the message is empty".to_owned()));
    }
    let family = AgentFamily { agent: args.agent.clone(), descendants: false };
    let command = RunCommand::Tell(AgentMessage { agent: args.agent.clone(), text });
    let given = given((&args.run, &args.dir), &family, command, "tell an agent something")?;
    given.print(args.json, "tell", |agent| format!("{agent} is told with its next prompt"))
}

/// Runs `raymond hold`.
///
/// # Errors
/// As [`tell`].
pub fn hold(args: &HoldArgs) -> Result<CliExitCode, Error> {
    let family = args.agent.family().clone();
    let command = RunCommand::Hold(family.clone());
    let given = given((&args.run, &args.dir), &family, command, "hold an agent")?;
    given.print(args.json, "hold", |agent| {
        format!("{agent} begins nothing more until it is released; what runs already ends as usual")
    })
}

/// Runs `raymond release`.
///
/// # Errors
/// As [`tell`].
pub fn release(args: &HoldArgs) -> Result<CliExitCode, Error> {
    let family = args.agent.family().clone();
    let command = RunCommand::Release(family.clone());
    let given = given((&args.run, &args.dir), &family, command, "release an agent")?;
    given.print(args.json, "release", |agent| format!("{agent} goes on"))
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
    let family = AgentFamily { agent: agent.clone(), descendants: false };
    let command = RunCommand::StopAgent { agent: agent.clone() };
    let given = given((&run, dir), &family, command, "stop an agent")?;
    given.print(json, "stop_agent", |agent| {
        format!("{agent} ends as failed, and whoever waits for it is told; `raymond retry` lets it live again")
    })
}

/// An order that was given.
struct GivenOrder {
    run: RunId,
    family: AgentFamily,
    /// True if a raymond holds the run, and takes the order soon.
    is_live: bool,
}

impl GivenOrder {
    fn print(
        &self,
        json: bool,
        command: &str,
        says: impl Fn(&AgentFamily) -> String,
    ) -> Result<CliExitCode, Error> {
        let Self { run, family, is_live } = self;
        if json {
            let agent = family.to_string();
            return output::print_json(
                &json!({ "run": run, "agent": agent, "command": command, "is_live": is_live }),
            );
        }
        let later = if *is_live {
            String::new()
        } else {
            format!("; nobody runs {run} now, so that is once it is resumed: raymond resume {run}")
        };
        output::print(&format!("{}{later}\n", says(family)))
    }
}

/// Leaves an order in the inbox of a run; it is durable when this returns.
fn given(
    (run, dir): (&RunId, &DirArgs),
    family: &AgentFamily,
    command: RunCommand,
    what: &'static str,
) -> Result<GivenOrder, Error> {
    person::must_act(what)?;
    let root = dir.root();
    let id = run_choice::find(&root, run)?;
    engine::must_be_named(dir, &root, &id)?;
    let RunView { run, held, .. } = load_view(&root, &id)?;
    check_lives(&run, family)?;
    let key = directories::user_state()?.key()?;
    let name = format!("{:013}-{}", now().0, Uuid::new_v4().simple());
    inbox::put(&root.run(&id).inbox(), &name, &command, &key)?;
    Ok(GivenOrder { run: id, family: family.clone(), is_live: held })
}

fn check_lives(run: &Run, family: &AgentFamily) -> Result<(), Error> {
    check_agent_exists(run, &family.agent)?;
    if run.agents.keys().any(|id| family.has(id)) {
        return Ok(());
    }
    let id = &run.workflow_id;
    Err(Error::Usage(format!(
        "{family} has ended, so nothing can be done with it; `raymond tree {id}` shows the live agents"
    )))
}
