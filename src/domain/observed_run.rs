//! A run as a test sees it: the path of each agent, and how each ended. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, Record};
use super::id::{AgentId, Folder, StateName, StepMode};
use super::money::Usd;
use super::observed_way::{ObservedWay, ProgramMove, ProgramTrace};
use super::run::{AgentEnding, PauseReason, Run};
use super::turn::FailureCause;

/// A run that is observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedRun {
    /// The states that agents passed, in the order of the journal.
    pub steps: Vec<ObservedStep>,
    /// The transitions that were taken, and the ways between nodes.
    pub ways: BTreeSet<ObservedWay>,
    /// The progress of programs, record by record.
    pub moves: Vec<ProgramMove>,
    /// The positions of the agents that are in programs.
    pub traces: BTreeMap<AgentId, ProgramTrace>,
    /// The agents that were ever there.
    pub agents: BTreeSet<AgentId>,
    /// The agents that have ended.
    pub endings: BTreeMap<AgentId, ObservedEnding>,
    /// The cost of the run.
    pub cost: Usd,
    /// The cost of the run, and what it gave to runs that it has started.
    pub committed: Usd,
    /// The number of turns.
    pub turns: u64,
    /// The number of records.
    pub records: u64,
    /// The reason why the run is paused.
    pub pause: Option<String>,
    /// True if it is paused because its budget is used up.
    pub is_out_of_money: bool,
    /// The reminders of agents, and what was warned of.
    pub warnings: Vec<String>,
    /// The exit code.
    pub exit: u8,
}

/// A state that an agent passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedStep {
    /// The agent.
    pub agent: AgentId,
    /// The state: `START.md`, `review/START.md`, `workflow.yaml#node`, `workflow.lisp#state`.
    pub place: String,
}

/// The ending of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedEnding {
    /// A result.
    Result(String),
    /// A failure.
    Failure {
        /// The cause.
        cause: Option<FailureCause>,
        /// The message.
        message: String,
    },
}

impl ObservedRun {
    /// Takes in a record of the run.
    pub fn observe(&mut self, record: &Record) {
        let folder = record.folder.as_ref();
        if let Some(agent) = record.event.agent() {
            self.agents.insert(agent.clone());
        }
        match &record.event {
            Event::StepFinished(step) if is_one_step(&step.state) => {
                let from = place(folder, &step.state, None);
                self.ways.extend(ObservedWay::of(&from, &step.transition));
                self.step(&step.turn.agent, place(folder, &step.state, None));
            }
            Event::AgentFailed(failed) if is_one_step(&failed.state) => {
                self.step(&failed.turn.agent, place(folder, &failed.state, None));
            }
            Event::GraphAdvanced(advanced) => {
                let onward = advanced.visits.iter().skip(1).map(|visit| &visit.node);
                let onward = onward.chain([&advanced.node]);
                for (visit, to) in advanced.visits.iter().zip(onward) {
                    let from = place(folder, &advanced.file, Some(&*visit.node));
                    self.ways.insert(ObservedWay::from_node(from.clone(), &visit.outcome, to));
                    self.step(&advanced.turn.agent, from);
                }
            }
            Event::ProgramAdvanced(advanced) => {
                let (agent, progress) = (&advanced.turn.agent, &advanced.progress);
                if let Some(trace) = self.traces.get_mut(agent) {
                    self.moves.push(trace.go_on(&progress.state, &progress.position.entries));
                }
                let place = place(folder, &advanced.file, Some(&progress.state));
                if self.path(Some(agent)).last() != Some(&place.as_str()) {
                    self.step(agent, place);
                }
            }
            Event::LanguageAdvanced(advanced) => {
                self.step(&advanced.turn.agent, place(folder, &advanced.file, None));
            }
            Event::ProgramStarted(started) => {
                let trace =
                    ProgramTrace::begin(place(folder, &started.state, None), &started.start);
                self.traces.insert(started.turn.agent.clone(), trace);
            }
            Event::TurnRejected(rejected) => {
                let warning = format!(
                    "{} was reminded in {}: {}",
                    rejected.turn.agent, rejected.state, rejected.violation
                );
                self.warnings.push(warning);
            }
            _ => {}
        }
    }

    /// Takes in the run as it is after its last record.
    pub fn finish(&mut self, run: &Run) {
        self.agents.extend(run.agents.values().map(|agent| agent.id.clone()));
        for agent in &run.finished {
            self.agents.insert(agent.id.clone());
            let ending = match &agent.ending {
                AgentEnding::Result(text) => ObservedEnding::Result(text.clone()),
                AgentEnding::Error(message) => {
                    ObservedEnding::Failure { cause: agent.cause, message: message.clone() }
                }
            };
            self.endings.insert(agent.id.clone(), ending);
        }
        self.records = run.seq;
        self.cost = run.total_cost_usd;
        self.committed = run.committed_usd();
        self.is_out_of_money = matches!(run.pause, Some(PauseReason::Budget { .. }));
        self.pause = run.pause.as_ref().map(ToString::to_string);
    }

    /// Returns the states that an agent passed, or all agents together.
    pub fn path(&self, agent: Option<&AgentId>) -> Vec<&str> {
        let own = |step: &&ObservedStep| agent.is_none_or(|agent| step.agent == *agent);
        self.steps.iter().filter(own).map(|step| step.place.as_str()).collect()
    }

    /// Returns the result of an agent, if it has one.
    pub fn result(&self, agent: &AgentId) -> Option<&str> {
        match self.endings.get(agent)? {
            ObservedEnding::Result(text) => Some(text),
            ObservedEnding::Failure { .. } => None,
        }
    }

    /// Changes the names in all messages.
    pub fn rename(&mut self, change: impl Fn(&str) -> String) {
        for ending in self.endings.values_mut() {
            if let ObservedEnding::Failure { message, .. } = ending {
                *message = change(message);
            }
        }
        self.pause = self.pause.as_deref().map(change);
    }

    fn step(&mut self, agent: &AgentId, place: String) {
        self.steps.push(ObservedStep { agent: agent.clone(), place });
    }
}

/// Returns whether a state is one step, as prompts and scripts are; graphs and programs tell of their own parts.
fn is_one_step(state: &StateName) -> bool {
    match state.steps() {
        Some(StepMode::Asked | StepMode::Tagged) => true,
        Some(StepMode::Executed | StepMode::Watching) | None => false,
    }
}

/// Returns a state as a case names it.
fn place(folder: Option<&Folder>, state: &StateName, part: Option<&str>) -> String {
    let state = match folder {
        Some(folder) => format!("{folder}/{state}"),
        None => state.to_string(),
    };
    match part {
        Some(part) => format!("{state}#{part}"),
        None => state,
    }
}
