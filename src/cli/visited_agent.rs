//! An agent that is held while a person works on it: nothing of it begins meanwhile, and afterwards it goes on.

use std::time::{Duration, Instant};

use super::agent_orders::{GivenOrder, check_lives, put_order};
use super::args::runs::DirArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice};
use crate::domain::agent::{Agent, PersonOrders};
use crate::domain::event::RunCommand;
use crate::domain::event::{AgentFamily, AgentHold};
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::process::transcript::TurnFiles;
use crate::runtime::command_name::command_name;
use crate::runtime::directories;
use crate::runtime::observing::inbox_view::load_with_inbox;
use crate::store::inbox;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::received_commands;
use crate::store::view::{RunView, load_view};

/// Poll interval while its turn is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The longest time for a raymond to take an order.
const TAKING_TIMEOUT: Duration = Duration::from_secs(30);

/// A held agent.
pub(super) struct VisitedAgent<'a> {
    place: (RunsRoot, &'a DirArgs),
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
        let run = load_view(&root, &run_choice::find(&root, run)?)?.run;
        check_lives(&run, &AgentFamily { agent: agent.clone(), descendants: false })
    }

    /// Holds a live agent.
    ///
    /// # Errors
    /// [`Error`] if there is no such live agent, or an agent gives the order.
    pub(super) fn hold(dir: &'a DirArgs, run: &RunId, agent: &AgentId) -> Result<Self, Error> {
        // Its path stands in prompts, which are read in other directories.
        let root = directories::root(dir.root().path())?;
        let run = run_choice::find(&root, run)?;
        let visited = Self { place: (root, dir), run, agent: agent.clone(), visit: command_name() };
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
        put_order((self.root(), self.place.1), &self.run, order)
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
        Ok(load_with_inbox(self.root(), &self.run)?.run)
    }

    /// Returns the directory of all runs.
    pub(super) fn root(&self) -> &RunsRoot {
        &self.place.0
    }

    /// Returns the directory of its run.
    pub(super) fn dir(&self) -> RunDir {
        self.root().run(&self.run)
    }

    /// Returns its run, and itself, once no turn of it runs.
    ///
    /// # Errors
    /// [`Error`] if it ends meanwhile, if it is at no prompt, or if its turn is not recorded because nobody executes its
    /// run.
    pub(super) fn at_rest(&self) -> Result<(Run, Agent), Error> {
        let (steps, mut has_told) = (self.dir().steps(), false);
        loop {
            let RunView { run, held: is_live, .. } = load_view(self.root(), &self.run)?;
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
            let has_begun = TurnFiles::of(&steps, &agent.turn_id()).are_there();
            if begins_nothing && !has_begun {
                self.check_no_other()?;
                return Ok((run, agent));
            }
            if !is_live {
                let (run, agent) = (&self.run, &self.agent);
                return Err(Error::Usage(format!(
                    "{run} is not live, and a turn of {agent} has begun; `raymond resume {run}` finishes it"
                )));
            }
            if begins_nothing && !has_told {
                let (run, agent) = (&self.run, &self.agent);
                output::tell(&format!(
                    "{agent} is held; waiting for its running turn to finish (Ctrl-C leaves it held until `raymond release {run} {agent}`)"
                ));
                has_told = true;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Checks that no earlier order of this kind lies in the inbox, which this one could not know of.
    fn check_nothing_waits(&self) -> Result<(), Error> {
        let key = directories::user_state()?.key()?;
        let waiting = received_commands::waiting(&self.dir(), &key)?;
        let is_earlier = |order: &RunCommand| match order {
            RunCommand::Edit(edit) => edit.turn.agent == self.agent,
            RunCommand::Attach(attached) => attached.turn.agent == self.agent,
            _ => false,
        };
        if waiting.iter().filter_map(|one| one.command.as_ref()).any(is_earlier) {
            let (run, agent) = (&self.run, &self.agent);
            return Err(Error::Usage(format!(
                "what was said to {agent} or edited for it before waits for `raymond resume {run}`"
            )));
        }
        Ok(())
    }

    /// Gives it an order, and waits until the raymond that executes its run has taken it. `has_effect` tells whether the
    /// agent is as ordered.
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
            if !waiting.iter().any(|one| one.name == given.name) {
                break;
            }
            let is_live = load_view(self.root(), &self.run)?.held;
            if !is_live || began.elapsed() > TAKING_TIMEOUT {
                return self.foreseen(&given.name, has_effect);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let run = load_view(self.root(), &self.run)?.run;
        let is_taken = run.agents.get(&self.agent).is_some_and(has_effect);
        Ok(if is_taken { OrderState::Taken } else { OrderState::Refused })
    }

    /// Returns what becomes of an order in the inbox. One that comes too late is taken back.
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
