//! The turns of a run that have ended, in order, as a fold over its records.
//!
//! A record tells how a turn ended. Its prompt, its session and its visit follow from the agent as it was before, so
//! each record is read together with the run before it, as for the [history](super::history) of one agent.

use super::agent::Agent;
use super::event::{AgentFailed, Event, Record};
use super::id::{AgentId, Folder, StateName};
use super::ledger::{ChargeKind, cost_of};
use super::restart::without_exhaustion;
use super::run::Run;
use super::session::Session;
use super::turn::{FailureCause, TurnId};
use super::worktree_snapshot::WorkingDir;
use crate::turn::TurnCost;

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTurn {
    /// The id of the turn.
    pub id: TurnId,
    /// The number of the record that ended it.
    pub seq: u64,
    /// The prompt: the state's, its evaluator's, or that of a node or a role.
    pub state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    pub folder: Option<Folder>,
    /// The number of turns that the agent had had with this prompt before.
    pub visit: u32,
    /// The session it ran in.
    pub session: Session,
    /// The directory it ran in.
    pub working_dir: WorkingDir,
    /// The way it ended.
    pub ending: TurnEnding,
    pub cost: TurnCost,
    /// True if its reply was accepted.
    pub is_accepted: bool,
    /// True if its agent failed in this step, and was retried later, so that another turn came in its place.
    pub is_retried: bool,
    /// The reply that a person had given for it, so that it was not asked.
    pub given: Option<String>,
}

/// The way a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnding {
    /// The model answered.
    Replied,
    /// No answer came, and the turn was run again.
    Failed {
        /// The kind of failure.
        cause: FailureCause,
        /// The error.
        message: String,
    },
    /// The agent ended. It may have had no turn, if the cause does not come from a turn.
    AgentFailed {
        /// The kind of failure.
        cause: FailureCause,
        /// The error.
        message: String,
    },
    /// The agent was ended by others, perhaps during a turn.
    Cut,
}

/// The fold.
#[derive(Debug, Default)]
pub struct EndedTurns {
    turns: Vec<EndedTurn>,
    /// The pending turns of agents that the last record may have ended.
    doubtful: Vec<EndedTurn>,
}

impl EndedTurns {
    /// Adds a record; `before` is the run as it was before it.
    pub fn see(&mut self, before: &Run, record: &Record) {
        self.settle(before);
        let event = &record.event;
        if let Event::CostCounted { turn, cost } = event {
            let mut cut =
                self.turns.iter_mut().filter(|turn_cut| turn_cut.ending == TurnEnding::Cut);
            if let Some(turn_cut) = cut.find(|turn_cut| turn_cut.id == *turn) {
                turn_cut.cost = cost.clone();
            }
            return;
        }
        if let Event::AgentsRetried { agents } = event {
            for turn_cut in agents {
                self.retried(&turn_cut.agent);
            }
            return;
        }
        if let Some(charge) = cost_of(event)
            && let Some(agent) = before.agents.get(&charge.turn.agent)
            && (charge.on != ChargeKind::Nothing || agent.given_reply.is_some())
        {
            let ending = ending(event, agent, charge.cost);
            self.turns.push(EndedTurn {
                id: charge.turn.clone(),
                cost: charge.cost.clone(),
                is_accepted: is_accepted(charge.on),
                given: agent.given_reply.clone(),
                ..turn_of(agent, record.seq, ending)
            });
        }
        if event.ends_others() {
            let others = before.agents.values().filter(|agent| event.agent() != Some(&agent.id));
            self.doubtful =
                others.map(|agent| turn_of(agent, record.seq, TurnEnding::Cut)).collect();
        }
    }

    /// Returns the turns. `run` is the run after the last record.
    pub fn finish(mut self, run: &Run) -> Vec<EndedTurn> {
        self.settle(run);
        self.turns
    }

    /// Marks the turns of a step that an agent is to take again.
    fn retried(&mut self, agent: &AgentId) {
        let mut of_agent =
            self.turns.iter_mut().rev().filter(|turn| turn.id.agent == *agent).peekable();
        let step = of_agent.peek().map(|last| last.id.step);
        let again = of_agent.take_while(|turn| Some(turn.id.step) == step && !turn.is_accepted);
        again.for_each(|turn| turn.is_retried = true);
    }

    /// Adds the turns of the agents that no longer live.
    fn settle(&mut self, run: &Run) {
        let doubtful = std::mem::take(&mut self.doubtful).into_iter();
        self.turns.extend(doubtful.filter(|turn| run.agents.get(&turn.id.agent).is_none()));
    }
}

/// Returns the pending turn of an agent.
fn turn_of(agent: &Agent, seq: u64, ending: TurnEnding) -> EndedTurn {
    EndedTurn {
        seq,
        id: agent.turn_id(),
        state: agent.prompt().clone(),
        folder: agent.folder(),
        visit: agent.visit(),
        session: agent.turn_session().clone(),
        working_dir: agent.spec.working_dir.clone(),
        ending,
        cost: TurnCost::default(),
        is_accepted: false,
        is_retried: false,
        given: None,
    }
}

fn is_accepted(on: ChargeKind) -> bool {
    match on {
        ChargeKind::Answer | ChargeKind::Nothing => true,
        ChargeKind::Rejected | ChargeKind::Failed(_) | ChargeKind::Late => false,
    }
}

/// Returns the way in which an event that reports a cost has ended a turn.
fn ending(event: &Event, agent: &Agent, cost: &TurnCost) -> TurnEnding {
    match event {
        Event::TurnFailed(failed) => {
            TurnEnding::Failed { cause: failed.cause, message: failed.message.clone() }
        }
        Event::TurnSuspended(_) => {
            let message = "the turn was ended while tool calls needed approval".to_owned();
            TurnEnding::Failed { cause: FailureCause::Unapproved, message }
        }
        // With a duration, the model had replied and its reply was refused: it is a reply. So is a turn that failed for
        // a refused tool, which a replay judges again.
        Event::AgentFailed(failed)
            if cost.duration_ms.is_none() && failed.cause != FailureCause::ToolRefused =>
        {
            let message = message_of(failed, agent);
            TurnEnding::AgentFailed { cause: failed.cause, message }
        }
        _ => TurnEnding::Replied,
    }
}

/// Returns the message of the failure that ended an agent, without the state and the count of restarts around it.
fn message_of(failed: &AgentFailed, agent: &Agent) -> String {
    let before = format!("in {}: ", failed.state.shown_in(agent.folder().as_ref()));
    let message = failed.error.strip_prefix(&before).unwrap_or(&failed.error);
    without_exhaustion(message).to_owned()
}

#[cfg(test)]
mod tests;
