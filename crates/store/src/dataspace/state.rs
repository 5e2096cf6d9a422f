//! The facts as a fold over their changes, and the steps of programs that change facts.
//!
//! A step that runs again after a crash changes no fact a second time: the change and the mark of its step are one
//! record. An agent has one mark, of its last step that changed a fact, and the facts that its last steps have taken.
//! Both are dropped when its run ends. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{self, QueuedFact};
use raymond_model::id::{AgentId, RunId};

/// A step of an agent: it may assert, retract or take one fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataspaceStep {
    pub run: RunId,
    pub agent: AgentId,
    /// The agent's step, counted from 1.
    pub step: u64,
}

impl DataspaceStep {
    /// Returns the name of a step's agent. A run's id has no `~`, an agent's no `-`.
    fn agent_name(&self) -> String {
        format!("{}~{}", self.run, self.agent.file_name())
    }
}

/// The operation of a step on a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FactOperation {
    Assert,
    Retract,
}

/// The mark of a step that changes a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IdempotencyKey {
    pub(super) step: u64,
    #[serde(rename = "deed")]
    pub(super) operation: FactOperation,
    pub(super) label: String,
    pub(super) key: String,
    /// The number of the fact: of its first assertion, or of the fact that is removed.
    pub(super) seq: u64,
}

/// A change of the facts, as the journal has it and machines share it; `F` is a fact in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", bound(deserialize = "F: Deserialize<'de>"))]
pub(super) enum LoggedChange<F = QueuedFact> {
    /// The fact is asserted, by a step or by somebody else.
    Asserted {
        fact: F,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<DataspaceStep>,
    },
    /// The fact with this number is retracted.
    Retracted {
        seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<DataspaceStep>,
    },
    /// The fact is taken by a step. The next value holds then, if there is one.
    Claimed {
        fact: F,
        step: DataspaceStep,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<F>,
    },
    /// The run has ended: its marks and claims are removed. The change has no label and no key.
    RunEnded { run: RunId },
    /// Nothing.
    Reread {},
    /// The mark of an agent, where a journal begins again. It is not shared.
    Marked { agent: String, mark: IdempotencyKey },
    /// A fact that a step of an agent has taken, where a journal begins again. It is not shared.
    Taken { agent: String, step: u64, fact: F },
}

/// A change, with the label and the key of its fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedChange {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) change: LoggedChange,
}

impl NamedChange {
    pub(super) fn new(label: &str, key: &str, change: LoggedChange) -> Self {
        Self { label: label.to_owned(), key: key.to_owned(), change }
    }

    /// Returns the step that makes the change.
    fn step(&self) -> Option<&DataspaceStep> {
        match &self.change {
            LoggedChange::Asserted { step, .. } | LoggedChange::Retracted { step, .. } => {
                step.as_ref()
            }
            LoggedChange::Claimed { step, .. } => Some(step),
            _ => None,
        }
    }

    /// Returns the mark that the change of a step leaves.
    fn mark(&self, step: u64) -> Option<IdempotencyKey> {
        let (operation, seq) = match &self.change {
            LoggedChange::Asserted { fact, .. } => (FactOperation::Assert, fact.seq),
            LoggedChange::Retracted { seq, .. } => (FactOperation::Retract, *seq),
            _ => return None,
        };
        let (label, key) = (self.label.clone(), self.key.clone());
        Some(IdempotencyKey { step, operation, label, key, seq })
    }

    /// Returns whether the change with this number may be applied: its fact has the label and key that the change
    /// names, and is valid.
    pub(super) fn is_sound(&self, seq: u64) -> bool {
        let Self { label, key, change } = self;
        let is_named = || fact::of_label(label).is_ok() && fact::of_key(key).is_ok();
        let is_fact = |fact: &QueuedFact| {
            (&fact.label, &fact.key) == (label, key)
                && fact::check_value(label, key, &fact.value).is_ok()
                && fact.last_seq() <= seq
        };
        match change {
            LoggedChange::Asserted { fact, .. } | LoggedChange::Taken { fact, .. } => {
                is_named() && is_fact(fact)
            }
            LoggedChange::Retracted { .. } => is_named(),
            LoggedChange::Claimed { fact, next, .. } => {
                is_named() && is_fact(fact) && next.as_ref().is_none_or(is_fact)
            }
            LoggedChange::RunEnded { .. }
            | LoggedChange::Reread {}
            | LoggedChange::Marked { .. } => true,
        }
    }
}

/// What the steps of an agent have done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AgentSteps {
    pub(super) mark: Option<IdempotencyKey>,
    /// The taken facts, by step.
    pub(super) claims: BTreeMap<u64, QueuedFact>,
}

/// What all changes together make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FactState {
    /// The facts that hold, by label and key.
    pub(super) facts: BTreeMap<String, BTreeMap<String, QueuedFact>>,
    /// The steps of programs, by the name of their agent.
    pub(super) agents: BTreeMap<String, AgentSteps>,
    /// The number of the last change.
    pub(super) last: u64,
}

impl FactState {
    /// Returns the fact that holds.
    pub(super) fn held(&self, label: &str, key: &str) -> Option<&QueuedFact> {
        self.facts.get(label)?.get(key)
    }

    /// Iterates over all facts that hold, by label and key.
    pub(super) fn all(&self) -> impl Iterator<Item = &QueuedFact> {
        self.facts.values().flat_map(BTreeMap::values)
    }

    /// Returns the mark of a step if it was about the same operation.
    pub(super) fn marked(
        &self,
        step: Option<&DataspaceStep>,
        operation: FactOperation,
        (label, key): (&str, &str),
    ) -> Option<&IdempotencyKey> {
        let step = step?;
        let mark = self.agents.get(&step.agent_name())?.mark.as_ref()?;
        let own = (step.step, operation, label, key);
        ((mark.step, mark.operation, &*mark.label, &*mark.key) == own).then_some(mark)
    }

    /// Returns the fact that a step has taken.
    pub(super) fn claimed(&self, step: &DataspaceStep) -> Option<&QueuedFact> {
        self.agents.get(&step.agent_name())?.claims.get(&step.step)
    }

    /// Returns whether a run has left marks or claims.
    pub(super) fn has_steps_of(&self, run: &RunId) -> bool {
        self.agents.keys().any(|agent| is_of(agent, run))
    }

    pub(super) fn put(&mut self, fact: QueuedFact) {
        self.facts.entry(fact.label.clone()).or_default().insert(fact.key.clone(), fact);
    }

    fn remove(&mut self, label: &str, key: &str) {
        if let Some(facts) = self.facts.get_mut(label) {
            facts.remove(key);
            if facts.is_empty() {
                self.facts.remove(label);
            }
        }
    }

    /// Applies the next change. A later step of an agent settles the earlier ones.
    pub(super) fn apply(&mut self, seq: u64, named: NamedChange) {
        if let Some(step) = named.step() {
            let agent = self.agents.entry(step.agent_name()).or_default();
            agent.claims = agent.claims.split_off(&step.step);
            agent.mark = named.mark(step.step).or_else(|| agent.mark.take());
        }
        let NamedChange { label, key, change } = named;
        match change {
            LoggedChange::Asserted { fact, .. } => self.put(fact),
            LoggedChange::Retracted { .. } => self.remove(&label, &key),
            LoggedChange::Claimed { fact, step, next } => {
                match next {
                    Some(next) => self.put(next),
                    None => self.remove(&label, &key),
                }
                self.steps_of(step.agent_name()).claims.insert(step.step, fact);
            }
            LoggedChange::RunEnded { run } => self.agents.retain(|agent, _| !is_of(agent, &run)),
            LoggedChange::Reread {} => {}
            LoggedChange::Marked { agent, mark } => self.steps_of(agent).mark = Some(mark),
            LoggedChange::Taken { agent, step, fact } => {
                self.steps_of(agent).claims.insert(step, fact);
            }
        }
        self.last = seq;
    }

    pub(super) fn steps_of(&mut self, agent: String) -> &mut AgentSteps {
        self.agents.entry(agent).or_default()
    }

    /// Returns changes that make all of this, to begin a journal with.
    pub(super) fn changes(&self) -> impl Iterator<Item = NamedChange> {
        let steps = self.agents.iter().flat_map(|(agent, AgentSteps { mark, claims })| {
            let mark = mark.iter().map(|mark| {
                let change = LoggedChange::Marked { agent: agent.clone(), mark: mark.clone() };
                NamedChange::new("", "", change)
            });
            let claims = claims.iter().map(|(step, fact)| {
                let (agent, step) = (agent.clone(), *step);
                let change = LoggedChange::Taken { agent, step, fact: fact.clone() };
                NamedChange::new(&fact.label, &fact.key, change)
            });
            mark.chain(claims)
        });
        let facts = self.all().map(|fact| {
            let change = LoggedChange::Asserted { fact: fact.clone(), step: None };
            NamedChange::new(&fact.label, &fact.key, change)
        });
        std::iter::once(NamedChange::new("", "", LoggedChange::Reread {})).chain(steps).chain(facts)
    }
}

fn is_of(agent: &str, run: &RunId) -> bool {
    agent.strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('~'))
}
