//! The live picture of all agents and their work, which a screen reads while the actors write it.
//!
//! It is a map that many threads share, so a slow terminal never holds up the run. It is only a
//! picture: the truth is the supervisor's state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;

use crate::domain::agent::Agent;
use crate::domain::agent_status::WaitReason;
use crate::domain::id::{AgentId, SessionId, StateKind, StateName};
use crate::domain::money::Usd;
use crate::domain::run::FinishedAgent;
use crate::domain::time::Timestamp;
use crate::domain::tool_call::flat;

/// The maximum length of the item that is shown of an agent, in bytes.
const MAX_ITEM_BYTES: usize = 80;

/// A live agent as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    /// The id by which people and commands name the agent, such as `main.2`.
    pub id: AgentId,
    /// The state it began in.
    pub began: StateName,
    /// The state it is in.
    pub state: StateName,
    /// The entry of the fork list that it was forked with, in short.
    pub item: Option<String>,
    /// The session its next turn runs in.
    pub session: SessionId,
    /// The number of its pending returns.
    pub stack: usize,
    /// Its turn, its other work, or its wait.
    pub activity: AgentActivity,
    /// The cost of its turns.
    pub cost: Usd,
}

/// The activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentActivity {
    /// Its turn runs.
    Turn {
        /// The start of the turn.
        since: Timestamp,
        /// Its last seen activity.
        seen: String,
    },
    /// It advances in a state of this kind, or an operation of that is performed.
    Executing(StateKind),
    /// It waits.
    Waiting(WaitReason),
}

impl AgentView {
    /// Returns the view of an agent that waits, in a run whose turns are at hosts if it `is_shared`.
    pub fn of(agent: &Agent, is_shared: bool) -> Self {
        Self {
            id: agent.id.clone(),
            began: agent.spec.shown_state(),
            state: agent.shown_place(),
            item: item_of(agent),
            session: agent.session.id.clone(),
            stack: agent.stack.len(),
            activity: AgentActivity::of(agent, is_shared),
            cost: agent.cost_usd,
        }
    }
}

/// Returns the beginning of a forked agent's input: its `item`, or else its first own variable.
pub fn item_of(agent: &Agent) -> Option<String> {
    agent.id.parent()?;
    let variables = &agent.spec.variables;
    let first = || agent.spec.spawn_variables().map(|(_, value)| value).next();
    let item = variables.get("item").or_else(first)?;
    Some(flat(&item[..item.floor_char_boundary(MAX_ITEM_BYTES * 2)], MAX_ITEM_BYTES))
}

impl AgentActivity {
    /// Returns the activity of an agent with no running turn.
    fn of(agent: &Agent, is_shared: bool) -> Self {
        let due = || WaitReason::of_due_turn(agent, is_shared);
        match WaitReason::of_agent(agent) {
            Some(reason) => Self::Waiting(reason),
            None => agent.current_execution().map_or_else(|| Self::Waiting(due()), Self::Executing),
        }
    }
}

/// The agents that have begun in the same state and at the same depth: as a rule those of one fan-out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FanOutKey {
    /// The number of their ancestors.
    pub depth: usize,
    /// The state they began in; `None` if it is not known.
    pub began: Option<StateName>,
}

impl FanOutKey {
    /// Returns the key of an agent that began in a state.
    pub fn of(agent: &AgentId, began: Option<&StateName>) -> Self {
        Self { depth: agent.lineage().count() - 1, began: began.cloned() }
    }
}

/// The agents of a fan-out that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedTally {
    /// The number of agents.
    pub ended: usize,
    /// The number of failed ones among them.
    pub failed: usize,
    /// The cost of their turns.
    pub cost: Usd,
}

/// All live agents of a run, and the numbers of those that have ended.
#[derive(Debug, Default)]
pub struct AgentRegistry {
    live: DashMap<AgentId, Arc<AgentView>>,
    /// Locked while an agent changes from live to ended, so that it is always counted once.
    ended: Mutex<EndedAgents>,
}

/// The agents that have ended, and their numbers.
#[derive(Debug, Default)]
struct EndedAgents {
    keys: HashMap<AgentId, EndedShare>,
    tallies: HashMap<FanOutKey, EndedTally>,
}

/// The part of an ended agent in the counts of its fan-out.
#[derive(Debug)]
struct EndedShare {
    key: FanOutKey,
    failed: bool,
    cost: Usd,
}

impl AgentRegistry {
    /// Shows an agent as it is now.
    pub fn show(&self, view: AgentView) {
        self.live.insert(view.id.clone(), Arc::new(view));
    }

    /// Counts an agent that has ended, and no longer shows it.
    pub fn end(&self, agent: &FinishedAgent) {
        let key = FanOutKey::of(&agent.id, agent.began().as_ref());
        let mut ended = self.ended();
        self.live.remove(&agent.id);
        let (failed, cost) = (agent.has_failed(), agent.cost_usd);
        let share = EndedShare { key: key.clone(), failed, cost };
        if ended.keys.insert(agent.id.clone(), share).is_none() {
            let tally = ended.tallies.entry(key).or_default();
            tally.ended += 1;
            tally.failed += usize::from(failed);
            tally.cost += cost;
        }
    }

    /// Counts an agent no longer as ended, because it is retried.
    pub fn live_again(&self, agent: &AgentId) {
        let mut ended = self.ended();
        let Some(EndedShare { key, failed, cost }) = ended.keys.remove(agent) else { return };
        if let Some(tally) = ended.tallies.get_mut(&key) {
            tally.ended -= 1;
            tally.failed -= usize::from(failed);
            tally.cost = tally.cost.saturating_sub(cost);
        }
    }

    /// Shows that an agent's turn runs.
    pub fn running(&self, agent: &AgentId, since: Timestamp) {
        if let Some(mut view) = self.live.get_mut(agent) {
            Arc::make_mut(&mut view).activity = AgentActivity::Turn { since, seen: String::new() };
        }
    }

    /// Shows the last seen activity of a running turn.
    pub fn active(&self, agent: &AgentId, now_seen: &str) {
        if let Some(mut view) = self.live.get_mut(agent)
            && let AgentActivity::Turn { seen, .. } = &view.activity
            && seen != now_seen
            && let AgentActivity::Turn { seen, .. } = &mut Arc::make_mut(&mut view).activity
        {
            now_seen.clone_into(seen);
        }
    }

    /// Returns whether no agent is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Returns the number of all agents, live or ended.
    pub fn total(&self) -> usize {
        let ended = self.ended();
        self.live.len() + ended.keys.len()
    }

    /// Returns the fan-out of an agent, live or ended.
    pub fn fan_out_of(&self, agent: &AgentId) -> Option<FanOutKey> {
        let live = self.live.get(agent).map(|view| FanOutKey::of(agent, Some(&view.began)));
        live.or_else(|| self.ended().keys.get(agent).map(|share| share.key.clone()))
    }

    /// Returns the picture as it is now: the live agents in the order of their numbers, and the numbers of the others.
    pub fn snapshot(&self) -> (Vec<Arc<AgentView>>, Vec<(FanOutKey, EndedTally)>) {
        let ended = self.ended();
        let mut views: Vec<Arc<AgentView>> =
            self.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let tallies = ended.tallies.iter().map(|(key, tally)| (key.clone(), *tally)).collect();
        drop(ended);
        views.sort_unstable_by(|a, b| a.id.cmp_by_number(&b.id));
        (views, tallies)
    }

    fn ended(&self) -> MutexGuard<'_, EndedAgents> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;

    #[test]
    fn agents_are_ordered_by_number_and_counted_once_when_they_end() {
        let mut scene = Scene::begin();
        (0..11).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        let registry = AgentRegistry::default();
        scene.run.agents.values().for_each(|agent| registry.show(AgentView::of(agent, false)));
        let ids = |registry: &AgentRegistry| -> Vec<String> {
            registry.snapshot().0.iter().map(|view| view.id.to_string()).collect()
        };
        assert_eq!(ids(&registry)[..3], ["main", "main.1", "main.2"]);
        assert_eq!(ids(&registry)[10..], ["main.10", "main.11"]);

        scene.take("main.2", result("done"));
        (0..2).for_each(|_| registry.end(&scene.run.finished[0]));
        assert_eq!((registry.total(), ids(&registry).len()), (12, 11));
        let (_, ended) = registry.snapshot();
        let key = FanOutKey { depth: 1, began: StateName::parse("WORK.md").ok() };
        assert_eq!(ended.len(), 1);
        assert_eq!((&ended[0].0, ended[0].1.ended, ended[0].1.failed), (&key, 1, 0));
        for id in ["main.1", "main.2"] {
            let id = AgentId::parse(id).expect("an id");
            assert_eq!(registry.fan_out_of(&id), Some(key.clone()), "{id}");
        }
    }
}
