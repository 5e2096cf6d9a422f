//! Retries: which of the failed agents of a run are retried, and what follows from that.
//!
//! An agent is retried where it failed, so its retry may need the retry of other agents: those that failed with it
//! because they waited for it, and those for which its own wait, join or request failed. An agent that learned of the
//! failure and continued stays where it is, and the new result does not reach it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::id::{AgentId, SessionId, StateName};
use super::money::Usd;
use super::run::{FinishedAgent, Run};
use super::turn::FailureCause;

/// The failed agents that a person chooses. Of each list that is not empty, one entry has to fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetrySelection {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    /// The states they failed in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateName>,
    /// The kinds of failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<FailureCause>,
}

/// An agent that lives again, and the session its next turn runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetriedAgent {
    pub agent: AgentId,
    /// The id of its session from now on.
    pub session: SessionId,
}

/// The outcome of a retry, before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetryPlan {
    /// The agents that are retried, parents before their children.
    pub agents: Vec<PlannedRetry>,
    /// The agents that learned of a failure and continued without the result.
    pub continued: Vec<ContinuedParent>,
    /// The estimated cost of the next turns after that: the most that turns in these states have cost.
    #[serde(rename = "estimated_cost_usd")]
    pub estimated_cost: Usd,
}

/// An agent that is to be retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedRetry {
    /// The agent.
    #[serde(rename = "agent")]
    pub id: AgentId,
    /// The place where it continues, as people see it.
    #[serde(rename = "state")]
    pub place: StateName,
    /// The kind of failure; `None` for a role that had ended with its program.
    pub cause: Option<FailureCause>,
    /// The agent whose retry needs it; `None` if it was chosen.
    pub needed_by: Option<AgentId>,
}

/// An agent that continued after the failure of an agent it waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContinuedParent {
    /// The agent that continued.
    pub parent: AgentId,
    /// The child whose new result it does not see.
    pub child: AgentId,
    /// The place where it is by now; `None` if it has ended.
    #[serde(rename = "state")]
    pub place: Option<StateName>,
}

/// A selection that leads to no retry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetryError {
    /// No agent has failed.
    #[error(
        "no agent of the run has failed; `raymond resume` continues those that wait, `raymond branch` repeats steps that ended well"
    )]
    NothingFailed,
    /// There are failed agents, but none that fits.
    #[error("no failed agent fits the selection; failed are {0}")]
    NothingChosen(String),
    /// A chosen agent has ended otherwise.
    #[error("{0} has not failed: {1}")]
    NotFailed(AgentId, &'static str),
    /// A chosen agent lives.
    #[error("{0} has not failed: it is live")]
    Lives(AgentId),
    /// A chosen agent ends once nothing of it runs.
    #[error("{0} is about to end, as a person asked; retry it once it has ended")]
    IsEnding(AgentId),
    /// There is no such agent.
    #[error("the run has no agent {0}")]
    NoAgent(AgentId),
}

/// The number of failed agents that an error names.
const MAX_NAMED: usize = 8;

impl RetrySelection {
    fn fits(&self, ended: &FinishedAgent) -> bool {
        let is_at = |state: &StateName| {
            ended.failed_in.as_ref() == Some(state)
                || ended.shown_failed_in().as_ref() == Some(state)
                || ended.retryable.as_deref().is_some_and(|agent| agent.place() == *state)
        };
        (self.agents.is_empty() || self.agents.contains(&ended.id))
            && (self.states.is_empty() || self.states.iter().any(is_at))
            && (self.causes.is_empty()
                || self.causes.iter().any(|wanted| ended.cause == Some(*wanted)))
    }
}

/// Plans the retry of the failed agents that a selection chooses.
///
/// # Errors
/// [`RetryError`] if it chooses none.
pub fn plan_retry(run: &Run, selection: &RetrySelection) -> Result<RetryPlan, RetryError> {
    for id in &selection.agents {
        check_has_failed(run, id)?;
    }
    let failed = || run.finished.iter().filter(|ended| ended.has_failed());
    let chosen: Vec<&AgentId> =
        failed().filter(|ended| selection.fits(ended)).map(|ended| &ended.id).collect();
    if chosen.is_empty() {
        let mut all: Vec<&FinishedAgent> = failed().collect();
        if all.is_empty() {
            return Err(RetryError::NothingFailed);
        }
        all.sort_by(|left, right| left.id.cmp_by_number(&right.id));
        let mut names: Vec<String> =
            all.iter().take(MAX_NAMED).map(|ended| named_failure(ended)).collect();
        let more = all.len() - names.len();
        names.extend((more > 0).then(|| format!("{more} more")));
        return Err(RetryError::NothingChosen(names.join(", ")));
    }
    let ended = EndedAgentsById::of(run);
    let needs = ended.with_needed(run, &chosen);
    let mut ids: Vec<&AgentId> = needs.keys().copied().collect();
    ids.sort_by(|left, right| left.cmp_by_number(right));
    let agents: Vec<PlannedRetry> = ids
        .iter()
        .filter_map(|id| {
            let (ended, agent) = ended.retryable(id)?;
            let (place, cause) = (agent.place(), ended.cause.filter(|_| ended.has_failed()));
            let needed_by = needs.get(id)?.cloned();
            Some(PlannedRetry { id: (*id).clone(), place, cause, needed_by })
        })
        .collect();
    let continued = ids.iter().filter_map(|id| ended.continued_parent(run, id, &needs)).collect();
    let mut estimated_cost = Usd::ZERO;
    for agent in ids.iter().filter_map(|id| Some(ended.retryable(id)?.1)) {
        if !agent.waits() && !agent.advances_itself() {
            estimated_cost += run.budget().estimate_cost(agent.prompt());
        }
    }
    Ok(RetryPlan { agents, continued, estimated_cost })
}

/// Checks that an agent has failed.
fn check_has_failed(run: &Run, id: &AgentId) -> Result<(), RetryError> {
    if let Some(agent) = run.agents.get(id) {
        let is_ending = agent.orders.is_ending;
        return Err(if is_ending { RetryError::IsEnding } else { RetryError::Lives }(id.clone()));
    }
    match run.finished.iter().find(|ended| ended.id == *id) {
        None => Err(RetryError::NoAgent(id.clone())),
        Some(ended) if ended.has_failed() => Ok(()),
        Some(_) => Err(RetryError::NotFailed(
            id.clone(),
            "it ended well, or another agent continued without it; `raymond branch` repeats steps that ended well",
        )),
    }
}

fn named_failure(ended: &FinishedAgent) -> String {
    let state = ended.shown_failed_in().map(|state| format!(" in {state}")).unwrap_or_default();
    let cause = ended.cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{}{state}{cause}", ended.id)
}

/// The agents of a run that have ended, by id.
struct EndedAgentsById<'run>(HashMap<&'run AgentId, &'run FinishedAgent>);

impl<'run> EndedAgentsById<'run> {
    fn of(run: &'run Run) -> Self {
        Self(run.finished.iter().map(|ended| (&ended.id, ended)).collect())
    }

    /// Returns an agent that has ended, as its retry begins.
    fn retryable(&self, id: &AgentId) -> Option<(&'run FinishedAgent, &'run Agent)> {
        let ended = *self.0.get(id)?;
        Some((ended, ended.retryable.as_deref()?))
    }

    /// Returns the chosen agents and all that their retries need, each with the agent whose retry needs it.
    fn with_needed(
        &self,
        run: &'run Run,
        chosen: &[&'run AgentId],
    ) -> HashMap<&'run AgentId, Option<&'run AgentId>> {
        let mut needs: HashMap<&AgentId, Option<&AgentId>> =
            chosen.iter().map(|id| (*id, None)).collect();
        let mut open: VecDeque<&AgentId> = chosen.iter().copied().collect();
        while let Some(id) = open.pop_front() {
            for needed in self.needed_by(run, id) {
                if !needs.contains_key(needed) {
                    needs.insert(needed, Some(id));
                    open.push_back(needed);
                }
            }
        }
        needs
    }

    /// Returns the ended agents that the retry of an agent needs at once.
    fn needed_by(&self, run: &'run Run, id: &AgentId) -> BTreeSet<&'run AgentId> {
        let Some((_, agent)) = self.retryable(id) else { return BTreeSet::new() };
        let mut needed: Vec<AgentId> = failed_children(agent);
        needed.extend(agent.roles().cloned());
        if let Some(parent) = id.parent().and_then(|parent| AgentId::parse(parent).ok()) {
            needed.extend(self.failed_ancestor(run, &parent, id));
        }
        let found = needed.iter().filter_map(|id| Some((self.retryable(id)?.0, id)));
        // A role that ended with its program is retried with it. Of all other agents, only those that failed are
        // retried.
        let is_needed = |ended: &FinishedAgent| {
            ended.has_failed() || ended.cause == Some(FailureCause::Unneeded) || is_role(ended)
        };
        found.filter(|(ended, _)| is_needed(ended)).map(|(ended, _)| &ended.id).collect()
    }

    /// Returns the agent that failed together with a failed agent below it: its parent, or the program whose role
    /// delegated the work to it.
    fn failed_ancestor(&self, run: &Run, parent: &AgentId, child: &AgentId) -> Option<AgentId> {
        if let Some((_, agent)) = self.retryable(parent)
            && agent.failed_with(child)
        {
            return Some(parent.clone());
        }
        let role = run.agents.get(parent).or_else(|| Some(self.retryable(parent)?.1))?;
        role.mailbox()?;
        let program = AgentId::parse(parent.parent()?).ok()?;
        let (_, agent) = self.retryable(&program)?;
        agent.lost_requests().any(|lost| lost.agent == *parent).then_some(program)
    }

    /// Returns the agent that learned of a failure and does not wait again for what failed.
    fn continued_parent(
        &self,
        run: &Run,
        id: &AgentId,
        retried: &HashMap<&AgentId, Option<&AgentId>>,
    ) -> Option<ContinuedParent> {
        let ended = self.0.get(id)?;
        let parent = AgentId::parse(id.parent()?).ok()?;
        let retried = retried.contains_key(&parent).then(|| self.retryable(&parent)).flatten();
        let live = run.agents.get(&parent).or(retried.map(|(_, agent)| agent));
        let waits = |agent: &Agent| agent.failed_with(id) || failed_children(agent).contains(id);
        if !ended.parent_notified || live.is_some_and(waits) {
            return None;
        }
        Some(ContinuedParent { place: live.map(Agent::place), parent, child: id.clone() })
    }
}

fn is_role(ended: &FinishedAgent) -> bool {
    ended.retryable.as_deref().is_some_and(|agent| agent.mailbox().is_some())
}

/// Returns the children that an agent waited for when it failed.
fn failed_children(agent: &Agent) -> Vec<AgentId> {
    let joined = agent.pending_join().map(|_| agent.unjoined.numbers(agent.join_depth()));
    let mut children: Vec<AgentId> = joined
        .into_iter()
        .flatten()
        .chain(agent.failed_wait())
        .map(|number| agent.id.child(number))
        .collect();
    for lost in agent.lost_requests() {
        children.push(lost.agent.clone());
        children.extend(lost.delegated_to.clone());
    }
    children
}
