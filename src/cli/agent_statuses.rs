//! The status of a run's live agents and what they wait for, for people and for programs.
//!
//! It comes from the run's records and the files of its turns.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::age;
use crate::actor::context::now;
use crate::domain::agent::Agent;
use crate::domain::agent_status::{AgentStatus, RunObservation};
use crate::domain::budget_shortage::BudgetShortage;
use crate::domain::time::Timestamp;
use crate::domain::wait_reason::WaitReason;
use crate::plugin::sentence::date;
use crate::plugin::sentence::wait::{own_work, wait_sentence, waits_of_many};
use crate::process::transcript::TurnFiles;
use crate::store;
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunDir;
use crate::store::view::RunView;

/// An hour in milliseconds.
const HOUR: u64 = 3_600_000;

/// The source of the status of a run's live agents.
pub struct AgentStatuses<'run> {
    view: &'run RunView,
    steps: PathBuf,
    /// The note of a run that an engine has.
    note: Option<EngineNote>,
    seen: RunObservation,
    shortage: OnceCell<BudgetShortage<'run>>,
}

impl<'run> AgentStatuses<'run> {
    /// Observes a run as it is now.
    ///
    /// # Errors
    /// [`store::Error`] if the note of its engine cannot be read.
    pub fn of(view: &'run RunView, dir: &RunDir) -> Result<Self, store::Error> {
        let note = EngineNote::of(dir.path())?;
        let seen = RunObservation { now: now(), held: view.held, is_shared: note.is_some() };
        Ok(Self { view, steps: dir.steps(), note, seen, shortage: OnceCell::new() })
    }

    /// Returns the status of an agent. Looks for turn files only in a locked run.
    pub fn status(&self, agent: &Agent) -> AgentStatus {
        let run = &self.view.run;
        match AgentStatus::of(run, agent, self.seen, self.has_begun(agent)) {
            status @ AgentStatus::Waiting(WaitReason::Permit) => {
                self.shortage().refine(agent, status)
            }
            status => status,
        }
    }

    fn has_begun(&self, agent: &Agent) -> bool {
        let turn = agent.turn_id();
        self.seen.held
            && match &self.note {
                Some(note) => note.has_begun(&turn),
                None => TurnFiles::of(&self.steps, &turn).are_there(),
            }
    }

    fn shortage(&self) -> &BudgetShortage<'run> {
        self.shortage.get_or_init(|| {
            let run = &self.view.run;
            let is_limited = run.settings.budget_usd.is_some()
                || !run.shares.is_empty()
                || run.budget().calls.is_any();
            let running = run.agents.values().filter(|agent| is_limited && self.has_begun(agent));
            BudgetShortage::of(run, running)
        })
    }
}

/// Returns the status of an agent in words.
pub fn sentence(agent: &Agent, status: &AgentStatus) -> String {
    let held = match status {
        AgentStatus::Waiting(WaitReason::Held) => "",
        AgentStatus::Running | AgentStatus::Waiting(_) => held_beside(agent),
    };
    format!("{}{held}", without_hold(agent, status))
}

/// Returns the end of a sentence about an agent that does something else, if a person holds it as well.
pub fn held_beside(agent: &Agent) -> &'static str {
    if agent.is_held() { "; is held" } else { "" }
}

fn without_hold(agent: &Agent, status: &AgentStatus) -> String {
    let host = &agent.spec.working_dir.home.host;
    match status {
        AgentStatus::Running => match (own_work(agent), host) {
            (Some(work), _) => work,
            (None, None) => "running".to_owned(),
            (None, Some(host)) => format!("running on {host}"),
        },
        AgentStatus::Waiting(WaitReason::Permit) => match host {
            None => wait_sentence(&WaitReason::Permit, when),
            Some(host) => format!("waits for a free process on {host}"),
        },
        AgentStatus::Waiting(reason) => wait_sentence(reason, when),
    }
}

/// Returns a time as that from now if it comes within the hour, else as a date.
fn when(until: Timestamp) -> String {
    match until.since(now()) {
        0 | HOUR.. => date(until),
        soon => format!("in {}", age::text(soon)),
    }
}

/// Returns the status of several agents that have the same, to stand behind their number.
pub fn of_many(status: &AgentStatus) -> &'static str {
    match status {
        AgentStatus::Running => "running",
        AgentStatus::Waiting(reason) => waits_of_many(reason),
    }
}
