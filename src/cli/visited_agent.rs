//! An agent that is held while a person works on it: nothing of it begins meanwhile, and afterwards it goes on.

use std::time::Duration;

use super::agent_orders::{GivenOrder, given};
use super::args::runs::DirArgs;
use super::exit::Error;
use super::{output, run_choice};
use crate::domain::agent::Agent;
use crate::domain::event::RunCommand;
use crate::domain::id::{AgentId, RunId};
use crate::domain::person_command::AgentFamily;
use crate::domain::run::Run;
use crate::process::transcript::TurnFiles;
use crate::runtime::directories;
use crate::store::inbox;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view};

/// Poll interval while its turn is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A held agent.
pub(super) struct VisitedAgent<'a> {
    place: (&'a RunsRoot, &'a DirArgs),
    run: RunId,
    agent: AgentId,
    /// True if it was held before, so that it stays held.
    was_held: bool,
}

impl<'a> VisitedAgent<'a> {
    /// Holds a live agent.
    ///
    /// # Errors
    /// [`Error`] if there is no such live agent, or an agent gives the order.
    pub(super) fn hold(
        place: (&'a RunsRoot, &'a DirArgs),
        run: &RunId,
        agent: &AgentId,
    ) -> Result<Self, Error> {
        let run = run_choice::find(place.0, run)?;
        let was_held = is_held_later(&place.0.run(&run), &load_view(place.0, &run)?.run, agent)?;
        if !was_held {
            given(place, &run, &RunCommand::Hold(family(agent)))?;
        }
        Ok(Self { place, run, agent: agent.clone(), was_held })
    }

    /// Returns the directory of its run.
    pub(super) fn dir(&self) -> RunDir {
        self.place.0.run(&self.run)
    }

    /// Returns its run once nothing of it runs.
    ///
    /// # Errors
    /// [`Error`] if it ends meanwhile, or if its turn is not recorded because nobody executes its run.
    pub(super) fn at_rest(&self) -> Result<Run, Error> {
        let (steps, mut has_told) = (self.dir().steps(), false);
        loop {
            let RunView { run, held: is_live, .. } = load_view(self.place.0, &self.run)?;
            let Some(agent) = run.agents.get(&self.agent) else {
                return Err(Error::Usage(format!("{} has ended meanwhile", self.agent)));
            };
            let has_begun = TurnFiles::of(&steps, &agent.turn_id()).are_there();
            match (is_live, has_begun) {
                (true, false) if agent.is_held() => return Ok(run),
                (false, false) => return Ok(run),
                (false, true) => {
                    let (run, agent) = (&self.run, &self.agent);
                    return Err(Error::Usage(format!(
                        "nobody executes {run}, and a turn of {agent} has begun; `raymond resume {run}` takes it up"
                    )));
                }
                (true, _) => {}
            }
            if has_begun && agent.is_held() && !has_told {
                output::tell(&format!(
                    "{} is held; its turn is waited for (Ctrl-C leaves it held until `raymond release {} {}`)",
                    self.agent, self.run, self.agent
                ));
                has_told = true;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Gives it an order, if there is one, and releases it. Returns the end of the sentence about it.
    ///
    /// # Errors
    /// [`Error`] if the order cannot be left.
    pub(super) fn leave(self, order: Option<&RunCommand>) -> Result<String, Error> {
        let mut later = String::new();
        if let Some(order) = order {
            later = given(self.place, &self.run, order)?.later();
        }
        if self.was_held {
            let (run, agent) = (&self.run, &self.agent);
            return Ok(format!("{later}; it is held as before: raymond release {run} {agent}"));
        }
        let released: GivenOrder =
            given(self.place, &self.run, &RunCommand::Release(family(&self.agent)))?;
        Ok(if later.is_empty() { released.later() } else { later })
    }
}

/// Returns whether an agent is held, also after the orders that lie in the inbox.
fn is_held_later(dir: &RunDir, run: &Run, agent: &AgentId) -> Result<bool, Error> {
    let key = directories::user_state()?.key()?;
    let orders = inbox::list(&dir.inbox(), Some(&key))?.into_iter().filter_map(|one| one.command);
    let now = run.agents.get(agent).is_some_and(Agent::is_held);
    Ok(orders.fold(now, |is_held, order| match order {
        RunCommand::Hold(family) if family.has(agent) => true,
        RunCommand::Release(family) if family.has(agent) => false,
        RunCommand::Hold(_)
        | RunCommand::Release(_)
        | RunCommand::Stop
        | RunCommand::Answer(_)
        | RunCommand::Retry(_)
        | RunCommand::Tell(_)
        | RunCommand::Edit(_)
        | RunCommand::Attach(_)
        | RunCommand::StopAgent { .. } => is_held,
    }))
}

fn family(agent: &AgentId) -> AgentFamily {
    AgentFamily { agent: agent.clone(), descendants: false }
}
