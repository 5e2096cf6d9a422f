//! A run as a test sees it: the path of each agent, and how each ended. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::event::{AdvancePosition, Event, Record};
use super::id::{AgentId, Folder, StateName, StepMode};
use super::money::Usd;
use super::run::{AgentEnding, Run};
use super::transition::Transition;
use super::turn::FailureCause;

/// A run that is observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedRun {
    /// The states that agents passed, in the order of the journal.
    pub steps: Vec<ObservedStep>,
    /// The transitions that were taken.
    pub ways: BTreeSet<ObservedWay>,
    /// The agents that were ever there.
    pub agents: BTreeSet<AgentId>,
    /// The agents that have ended.
    pub endings: BTreeMap<AgentId, ObservedEnding>,
    /// The cost of the run.
    pub cost: Usd,
    /// The number of turns.
    pub turns: u64,
    /// The number of records.
    pub records: u64,
    /// The reason why the run is paused.
    pub pause: Option<String>,
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

/// A transition from a state to another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedWay {
    /// The state that it leads from.
    pub from: String,
    /// The name of its tag.
    pub tag: &'static str,
    /// The state that it leads to, without its folder.
    pub to: String,
}

impl ObservedWay {
    /// Returns the ways of a transition from a state: one for each state that it enters.
    #[must_use]
    pub fn of(from: &str, transition: &Transition) -> Vec<Self> {
        let forked: Vec<StateName> =
            transition.forked().into_iter().map(|fork| fork.target).collect();
        let entered: Vec<&StateName> = match transition.entered() {
            Some((_, target)) if forked.is_empty() => vec![target],
            _ => forked.iter().collect(),
        };
        let tag = transition.tag().name();
        let last =
            |name: &StateName| name.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        entered.into_iter().map(|to| Self { from: from.to_owned(), tag, to: last(to) }).collect()
    }
}

impl fmt::Display for ObservedWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, tag, to } = self;
        write!(f, "{from}: <{tag}>{to}</{tag}>")
    }
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
            Event::Advanced(advanced) => {
                let agent = &advanced.turn.agent;
                match &advanced.position {
                    AdvancePosition::Graph(progress) => {
                        for visit in &progress.visits {
                            let part = Some(&*visit.node);
                            self.step(agent, place(folder, &advanced.file, part));
                        }
                    }
                    AdvancePosition::Program(progress) => {
                        let place = place(folder, &advanced.file, Some(&progress.state));
                        if self.path(Some(agent)).last() != Some(&place.as_str()) {
                            self.step(agent, place);
                        }
                    }
                    AdvancePosition::Other(_) => {
                        self.step(agent, place(folder, &advanced.file, None));
                    }
                }
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
        self.pause = run.pause.as_ref().map(ToString::to_string);
    }

    /// Returns the states that an agent passed, or all agents together.
    #[must_use]
    pub fn path(&self, agent: Option<&AgentId>) -> Vec<&str> {
        let own = |step: &&ObservedStep| agent.is_none_or(|agent| step.agent == *agent);
        self.steps.iter().filter(own).map(|step| step.place.as_str()).collect()
    }

    /// Returns the result of an agent, if it has one.
    #[must_use]
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
