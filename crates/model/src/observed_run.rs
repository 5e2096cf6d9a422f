//! A run as a test sees it: the path of each agent, how each ended, and the ways taken between states and nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::event::{Event, Record};
use crate::graph_execution::NodeName;
use crate::id::{AgentId, Folder, StateName, StepMode};
use crate::money::Usd;
use crate::run::{AgentEnding, PauseReason, Run};
use crate::transition::Transition;
use crate::turn::FailureCause;

/// A run that is observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedRun {
    /// The states that agents passed, in the order of the journal.
    pub steps: Vec<ObservedStep>,
    /// The transitions that were taken, and the ways between nodes.
    pub transitions: BTreeSet<ObservedTransition>,
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
    pub agent: AgentId,
    /// The state: `START.md`, `review/START.md`, `workflow.yaml#node`, `workflow.lisp#state`.
    pub place: String,
}

/// The ending of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedEnding {
    Result(String),
    Failure { cause: Option<FailureCause>, message: String },
}

impl ObservedRun {
    /// Takes in a record of the run.
    pub fn observe(&mut self, record: &Record) {
        let folder = record.folder.as_ref();
        if let Some(agent) = record.event.agent() {
            self.agents.insert(agent.clone());
        }
        match &record.event {
            Event::StepFinished(step) if is_single_step(&step.state) => {
                let from = place(folder, &step.state, None);
                self.transitions.extend(ObservedTransition::of(&from, &step.transition));
                self.step(&step.turn.agent, place(folder, &step.state, None));
            }
            Event::AgentFailed(failed) if is_single_step(&failed.state) => {
                self.step(&failed.turn.agent, place(folder, &failed.state, None));
            }
            Event::GraphAdvanced(advanced) => {
                let onward = advanced.visits.iter().skip(1).map(|visit| &visit.node);
                let onward = onward.chain([&advanced.node]);
                for (visit, to) in advanced.visits.iter().zip(onward) {
                    let from = place(folder, &advanced.file, Some(&*visit.node));
                    self.transitions.insert(ObservedTransition::from_node(
                        from.clone(),
                        &visit.outcome,
                        to,
                    ));
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
        let is_of_agent = |step: &&ObservedStep| agent.is_none_or(|agent| step.agent == *agent);
        self.steps.iter().filter(is_of_agent).map(|step| step.place.as_str()).collect()
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

/// Returns whether a state is one step, like a prompt or a script. Graphs and programs report their parts themselves.
fn is_single_step(state: &StateName) -> bool {
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

// The ways that a run has taken, as a test sees them: from state to state, and from node to node.

/// A way from a state to another one, or from a node of a graph to a node or an ending.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedTransition {
    /// The state that it leads from: `START.md`, `workflow.yaml#node`.
    pub from: String,
    /// The case in which it is taken.
    pub case: TransitionCase,
    /// The state that it leads to, without its folder or its file; empty for a result.
    pub to: String,
}

/// The case in which a way is taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransitionCase {
    /// A transition with this tag.
    Tag(&'static str),
    /// The node has this outcome.
    Outcome(String),
    /// The node has any outcome.
    Any,
}

impl ObservedTransition {
    /// Returns the ways of a transition from a state: one for each state that it enters, or one for the question or the
    /// result.
    pub fn of(from: &str, transition: &Transition) -> Vec<Self> {
        let forked: Vec<StateName> =
            transition.forked().into_iter().map(|fork| fork.target).collect();
        let entered: Vec<&StateName> = match transition {
            Transition::Ask { next, .. } => vec![next],
            Transition::Result { .. } => {
                let case = TransitionCase::Tag(transition.tag().name());
                return vec![Self { from: from.to_owned(), case, to: String::new() }];
            }
            Transition::Goto { .. }
            | Transition::Reset { .. }
            | Transition::Call { .. }
            | Transition::Function { .. }
            | Transition::Fork { .. } => match transition.entered() {
                Some((_, target)) if forked.is_empty() => vec![target],
                _ => forked.iter().collect(),
            },
        };
        let case = TransitionCase::Tag(transition.tag().name());
        let last =
            |name: &StateName| name.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        let entry =
            |to: &StateName| Self { from: from.to_owned(), case: case.clone(), to: last(to) };
        entered.into_iter().map(entry).collect()
    }

    /// Returns the way from a node that had an outcome.
    pub fn from_node(from: String, outcome: &str, to: &NodeName) -> Self {
        Self { from, case: TransitionCase::Outcome(outcome.to_owned()), to: to.to_string() }
    }

    /// Returns whether this way matches the described one.
    pub fn is(&self, described: &Self) -> bool {
        let fits = described.case == TransitionCase::Any || described.case == self.case;
        fits && self.from == described.from && self.to == described.to
    }
}

impl fmt::Display for ObservedTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, case, to } = self;
        match case {
            TransitionCase::Tag("ask") => write!(f, "{from}: <ask next=\"{to}\">"),
            TransitionCase::Tag(tag) if to.is_empty() => write!(f, "{from}: <{tag}>"),
            TransitionCase::Tag(tag) => write!(f, "{from}: <{tag}>{to}</{tag}>"),
            TransitionCase::Outcome(outcome) => write!(f, "{from} → {to} ({outcome})"),
            TransitionCase::Any => write!(f, "{from} → {to}"),
        }
    }
}

/// The progress of a program in one record. It may have passed several states, of which the record tells the number of
/// moves to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramMove {
    /// The program: `workflow.lisp`.
    pub program: String,
    /// The state that it was in before.
    pub from: Arc<str>,
    /// The state that it is in.
    pub to: Arc<str>,
    /// The number of moves to each state in between. To fall through from a state to the next one is none.
    pub entered: BTreeMap<String, u64>,
}

/// The position of an agent in its program, as its last record tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramTrace {
    program: String,
    state: Arc<str>,
    entries: BTreeMap<String, u64>,
}

impl ProgramTrace {
    /// Returns the trace of a program that begins.
    pub fn begin(program: String, state: &Arc<str>) -> Self {
        Self { program, state: Arc::clone(state), entries: BTreeMap::new() }
    }

    /// Goes on to a state; returns the move. `entries` counts the moves to each state since the beginning.
    pub fn go_on(&mut self, state: &Arc<str>, entries: &BTreeMap<String, u64>) -> ProgramMove {
        let before = |name: &String| self.entries.get(name).copied().unwrap_or_default();
        let more = entries.iter().map(|(name, count)| {
            let count = count.saturating_sub(before(name));
            (name.clone(), count)
        });
        let entered = more.filter(|(_, count)| *count > 0).collect();
        let from = std::mem::replace(&mut self.state, Arc::clone(state));
        self.entries.clone_from(entries);
        ProgramMove { program: self.program.clone(), from, to: Arc::clone(state), entered }
    }
}

#[cfg(test)]
mod observed_transition_tests {
    use super::*;

    #[test]
    fn question_and_result_are_transitions_too() {
        let shown = |json: serde_json::Value| -> Vec<String> {
            let transition = serde_json::from_value(json).expect("a transition");
            ObservedTransition::of("A.md", &transition).iter().map(ToString::to_string).collect()
        };
        let ask = serde_json::json!({"tag": "ask", "question": "Keep?", "next": "B.md"});
        assert_eq!(shown(ask), ["A.md: <ask next=\"B.md\">"]);
        let result = serde_json::json!({"tag": "result", "payload": "one"});
        let other = serde_json::json!({"tag": "result", "payload": "other"});
        assert_eq!(shown(result.clone()), ["A.md: <result>"]);
        assert_eq!(shown(result), shown(other));
        assert_eq!(
            shown(serde_json::json!({"tag": "goto", "target": "B.md"})),
            ["A.md: <goto>B.md</goto>"]
        );
    }
}
