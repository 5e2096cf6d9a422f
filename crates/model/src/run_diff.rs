//! The difference of two runs: where they differ first, and then in transitions, results, costs and files.
//!
//! The moments of an agent are aligned by step, and within a step by their order. A record that both runs share is not
//! compared. Costs are reported, but runs that differ only in cost are equal. So are runs that only began with other
//! inputs or files.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::id::{AgentId, StateName};
use super::ledger::LedgerLine;
use super::money::Usd;
use super::run_trace::{
    RunHistory, TraceAspect, TracedEnding, TracedFile, TracedMoment, TracedText,
};

/// The same of each of two runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunPair<T> {
    /// Of the first run.
    pub a: T,
    /// Of the second run.
    pub b: T,
}

/// The difference of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDiff {
    /// The number of records at the beginning that both share.
    pub shared: u64,
    /// The inputs that differ, by name.
    pub inputs: Vec<InputDifference>,
    /// The earliest moment in which they differ.
    pub first: Option<MomentDifference>,
    /// The steps in which states, transitions or failures differ, of each agent in the order of their numbers.
    pub steps: Vec<StepDifference>,
    /// The endings that differ, in the order of the agents' numbers.
    pub results: Vec<EndingDifference>,
    /// The whole costs, with those of the shared records.
    pub cost: CostDifference,
    /// The costs by state, where they differ.
    pub state_costs: Vec<StateCostDifference>,
    /// The changed files that differ.
    pub files: Vec<FileDifference>,
}

/// An input that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InputDifference {
    pub name: String,
    /// Its values; `None` if a run was not given it.
    #[serde(flatten)]
    pub values: RunPair<Option<TracedText>>,
}

/// The endings of an agent that differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndingDifference {
    pub agent: AgentId,
    /// Its endings; `None` if a run does not have it.
    #[serde(flatten)]
    pub endings: RunPair<Option<TracedEnding>>,
}

/// Costs of two runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostDifference {
    #[serde(flatten)]
    pub costs: RunPair<Usd>,
    /// The cost of the second run less that of the first, in US dollars.
    pub difference: f64,
}

/// The costs of a state that differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateCostDifference {
    /// Its costs.
    #[serde(flatten)]
    pub cost: CostDifference,
    pub state: StateName,
}

/// A moment in which two runs differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MomentDifference {
    pub agent: AgentId,
    pub step: u64,
    /// The moments; `None` if a run has none there.
    #[serde(flatten)]
    pub moments: RunPair<Option<TracedMoment>>,
    /// The parts that differ, the cause before its consequence. Empty, if a run has no moment there.
    #[serde(skip)]
    pub aspects: Vec<(TraceAspect, RunPair<Option<TracedText>>)>,
}

/// A step in which two runs went different ways.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDifference {
    pub agent: AgentId,
    pub step: u64,
    /// The ways; `None` if the agent did not come so far.
    #[serde(flatten)]
    pub traces: RunPair<Option<StepTrace>>,
}

/// The way that a step took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTrace {
    /// The number of its first record.
    #[serde(rename = "record")]
    pub seq: u64,
    pub state: TracedText,
    /// The failures, refusals, requests and transitions, in order.
    pub outcomes: Vec<TracedText>,
}

/// A file that was changed differently.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileDifference {
    pub path: String,
    /// The owner of the worktree that has it, if it is not in the run's own directory.
    #[serde(rename = "worktree_of")]
    pub tree: Option<AgentId>,
    /// The changes; `None` if a run did not change it.
    #[serde(flatten)]
    pub files: RunPair<Option<TracedFile>>,
}

impl<T> RunPair<T> {
    /// Returns the pair of what a function makes of both.
    pub fn map<U>(self, mut of: impl FnMut(T) -> U) -> RunPair<U> {
        RunPair { a: of(self.a), b: of(self.b) }
    }

    /// Returns the pair of references.
    pub fn as_ref(&self) -> RunPair<&T> {
        RunPair { a: &self.a, b: &self.b }
    }
}

impl From<RunPair<Usd>> for CostDifference {
    fn from(costs: RunPair<Usd>) -> Self {
        Self { costs, difference: costs.b.dollars() - costs.a.dollars() }
    }
}

impl RunDiff {
    /// Returns whether the runs came to the same.
    pub fn is_equal(&self) -> bool {
        // Costs and inputs differ between runs that came to the same.
        let Self { shared: _, inputs: _, cost: _, state_costs: _, first, steps, results, files } =
            self;
        first.is_none() && steps.is_empty() && results.is_empty() && files.is_empty()
    }
}

/// Compares two runs, of `agent` alone if one is named. The moments of shared records are to be forgotten before.
pub fn compare(a: &RunHistory, b: &RunHistory, agent: Option<&AgentId>) -> RunDiff {
    let is_named = |id: &AgentId| agent.is_none_or(|agent| agent == id);
    let agents: BTreeSet<&AgentId> = a.agents.keys().chain(b.agents.keys()).collect();
    let mut agents: Vec<&AgentId> = agents.into_iter().filter(|id| is_named(id)).collect();
    agents.sort_by(|left, right| left.cmp_by_number(right));
    let (mut firsts, mut steps) = (Vec::new(), Vec::new());
    for id in agents {
        let is_unneeded =
            [a, b].iter().any(|run| run.endings.get(id) == Some(&TracedEnding::Unneeded));
        let (steps_a, steps_b) = (steps_of(a.agents.get(id)), steps_of(b.agents.get(id)));
        firsts.extend(first_of(id, &steps_a, &steps_b, is_unneeded));
        steps.extend(different_steps(id, &steps_a, &steps_b, is_unneeded));
    }
    firsts.sort_by_key(MomentDifference::rank);
    RunDiff {
        shared: a.lineage.shared_with(&b.lineage),
        inputs: different(&a.inputs, &b.inputs)
            .map(|(name, values)| InputDifference { name: name.clone(), values })
            .collect(),
        first: firsts.into_iter().next(),
        steps,
        results: results(a, b, is_named),
        cost: RunPair { a, b }
            .map(|run| match agent {
                None => run.costs.total.used.cost_usd,
                Some(agent) => cost_of(run.costs.agents.get(agent)),
            })
            .into(),
        state_costs: if agent.is_some() { Vec::new() } else { state_costs(a, b) },
        files: files(a, b, agent),
    }
}

/// The moments of an agent, by step.
type MomentsBySteps<'run> = BTreeMap<u64, Vec<&'run TracedMoment>>;

fn steps_of(moments: Option<&Vec<TracedMoment>>) -> MomentsBySteps<'_> {
    let mut steps = MomentsBySteps::new();
    for moment in moments.into_iter().flatten() {
        steps.entry(moment.turn.step).or_default().push(moment);
    }
    steps
}

/// Returns the pairs of the values of two maps that differ.
fn different<'map, K: Ord, V: Clone + PartialEq>(
    a: &'map BTreeMap<K, V>,
    b: &'map BTreeMap<K, V>,
) -> impl Iterator<Item = (&'map K, RunPair<Option<V>>)> {
    let keys: BTreeSet<&K> = a.keys().chain(b.keys()).collect();
    keys.into_iter().filter_map(|key| {
        let pair = RunPair { a: a.get(key), b: b.get(key) };
        (pair.a != pair.b).then(|| (key, pair.map(Option::<&V>::cloned)))
    })
}

/// Returns the first moment of an agent in which the runs differ. How far an agent came that nobody needed is chance.
fn first_of(
    agent: &AgentId,
    a: &MomentsBySteps<'_>,
    b: &MomentsBySteps<'_>,
    is_unneeded: bool,
) -> Option<MomentDifference> {
    let steps: BTreeSet<u64> = a.keys().chain(b.keys()).copied().collect();
    for step in steps {
        let (moments_a, moments_b) = (moments_at(a, step), moments_at(b, step));
        for index in 0..moments_a.len().max(moments_b.len()) {
            let pair =
                RunPair { a: moments_a.get(index).copied(), b: moments_b.get(index).copied() };
            let aspects = match (pair.a, pair.b) {
                (Some(left), Some(right)) => different_aspects(left, right),
                (Some(_) | None, _) if is_unneeded => continue,
                (Some(_) | None, _) => Vec::new(),
            };
            if !aspects.is_empty() || pair.a.is_none() || pair.b.is_none() {
                let (agent, moments) = (agent.clone(), pair.map(Option::<&TracedMoment>::cloned));
                return Some(MomentDifference { agent, step, moments, aspects });
            }
        }
    }
    None
}

fn moments_at<'steps, 'run>(
    steps: &'steps MomentsBySteps<'run>,
    step: u64,
) -> &'steps [&'run TracedMoment] {
    steps.get(&step).map_or(&[], Vec::as_slice)
}

fn different_aspects(
    a: &TracedMoment,
    b: &TracedMoment,
) -> Vec<(TraceAspect, RunPair<Option<TracedText>>)> {
    let is_known = |(aspect, pair): &(TraceAspect, RunPair<Option<TracedText>>)| {
        !aspect.may_be_unknown() || (pair.a.is_some() && pair.b.is_some())
    };
    let found = different(&a.aspects, &b.aspects).map(|(aspect, pair)| (*aspect, pair));
    found.filter(is_known).collect()
}

/// Returns the steps of an agent that went different ways.
fn different_steps(
    agent: &AgentId,
    a: &MomentsBySteps<'_>,
    b: &MomentsBySteps<'_>,
    is_unneeded: bool,
) -> Vec<StepDifference> {
    let steps: BTreeSet<u64> = a.keys().chain(b.keys()).copied().collect();
    let difference = |step: u64| {
        let traces =
            RunPair { a: step_trace(moments_at(a, step)), b: step_trace(moments_at(b, step)) };
        let is_same = match (&traces.a, &traces.b) {
            (Some(left), Some(right)) => {
                let ends = left.outcomes.len().min(right.outcomes.len());
                let is_prefix = left.outcomes[..ends] == right.outcomes[..ends];
                left.state == right.state
                    && is_prefix
                    && (is_unneeded || left.outcomes.len() == right.outcomes.len())
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => is_unneeded,
        };
        (!is_same).then(|| StepDifference { agent: agent.clone(), step, traces })
    };
    steps.into_iter().filter_map(difference).collect()
}

/// Returns the way that a step took; `None` without moments.
fn step_trace(moments: &[&TracedMoment]) -> Option<StepTrace> {
    let first = moments.first()?;
    let state = first.aspects.get(&TraceAspect::State).cloned();
    let state = state.unwrap_or_else(|| TracedText::from(""));
    let outcomes = moments.iter().flat_map(|moment| moment.outcomes());
    Some(StepTrace { seq: first.seq, state, outcomes: outcomes.collect() })
}

fn results(
    a: &RunHistory,
    b: &RunHistory,
    is_named: impl Fn(&AgentId) -> bool,
) -> Vec<EndingDifference> {
    let found = different(&a.endings, &b.endings).filter(|(id, _)| is_named(id));
    let mut found: Vec<EndingDifference> =
        found.map(|(id, endings)| EndingDifference { agent: id.clone(), endings }).collect();
    found.sort_by(|left, right| left.agent.cmp_by_number(&right.agent));
    found
}

fn cost_of(line: Option<&LedgerLine>) -> Usd {
    line.map(|line| line.used.cost_usd).unwrap_or_default()
}

/// Returns the costs of the states that differ, the largest difference first.
fn state_costs(a: &RunHistory, b: &RunHistory) -> Vec<StateCostDifference> {
    let costs = |run: &RunHistory| -> BTreeMap<StateName, Usd> {
        let lines = run.costs.states.iter();
        lines.map(|(state, line)| (state.clone(), line.used.cost_usd)).collect()
    };
    let (a, b) = (costs(a), costs(b));
    let pair = |(state, pair): (&StateName, RunPair<Option<Usd>>)| {
        let cost = pair.map(Option::unwrap_or_default).into();
        StateCostDifference { state: state.clone(), cost }
    };
    let mut found: Vec<_> = different(&a, &b)
        .map(pair)
        .filter(|found| found.cost.costs.a != found.cost.costs.b)
        .collect();
    found.sort_by_key(|found| {
        let RunPair { a, b } = found.cost.costs;
        std::cmp::Reverse(a.saturating_sub(b).saturating_add(b.saturating_sub(a)))
    });
    found
}

fn files(a: &RunHistory, b: &RunHistory, agent: Option<&AgentId>) -> Vec<FileDifference> {
    let is_of = |file: &Option<TracedFile>| {
        let by = file.iter().flat_map(|file| &file.by);
        agent.is_none_or(|agent| by.into_iter().any(|turn| turn.agent == *agent))
    };
    let found = different(&a.files.files, &b.files.files);
    let found = found.filter(|(_, files)| {
        let content = files.as_ref().map(|file| file.as_ref().map(|file| &file.content));
        content.a != content.b && (is_of(&files.a) || is_of(&files.b))
    });
    found
        .map(|((tree, path), files)| FileDifference {
            tree: tree.clone(),
            path: path.clone(),
            files,
        })
        .collect()
}

impl MomentDifference {
    /// Returns the rank of a difference: the cause of others comes before them. An agent that a run does not have, or
    /// that did not come so far in it, is a consequence, or the end of what is known.
    fn rank(&self) -> (bool, u64, u64) {
        let seq = |moment: &Option<TracedMoment>| moment.as_ref().map_or(0, |moment| moment.seq);
        let (a, b) = (seq(&self.moments.a), seq(&self.moments.b));
        (a == 0 || b == 0, a, b)
    }
}

impl TracedMoment {
    /// Returns its part in the way of a step.
    fn outcomes(&self) -> impl Iterator<Item = TracedText> {
        let outcomes = self.aspects.iter().filter(|(aspect, _)| aspect.is_outcome());
        outcomes.map(|(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests;
