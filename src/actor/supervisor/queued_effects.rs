//! The agents whose next work starts with a record that is not durable yet.
//!
//! Until then nothing else begins that work, and those that have begun before keep their places among the permits: what
//! is begun is finished first.

use std::collections::HashMap;

use crate::domain::effect::Effect;
use crate::domain::id::AgentId;
use crate::domain::run::Run;

/// The queued effects, by agent.
#[derive(Debug, Default)]
pub(super) struct QueuedEffects {
    agents: HashMap<AgentId, QueuedAgent>,
    begun: usize,
}

#[derive(Debug)]
struct QueuedAgent {
    records: usize,
    has_begun: bool,
}

impl QueuedEffects {
    /// Adds the effects of a record that is on its way to the disk; `run` is the run after it.
    pub(super) fn add(&mut self, effects: &[Effect], run: &Run) {
        for effect in effects {
            let Effect::Proceed(id) = effect else { continue };
            if let Some(queued) = self.agents.get_mut(id) {
                queued.records += 1;
                continue;
            }
            let has_begun = run.agents.get(id).is_some_and(|agent| !agent.is_new());
            self.begun += usize::from(has_begun);
            self.agents.insert(id.clone(), QueuedAgent { records: 1, has_begun });
        }
    }

    /// Removes the effects of a record that is durable.
    pub(super) fn remove(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Proceed(id) = effect else { continue };
            let Some(queued) = self.agents.get_mut(id) else { continue };
            queued.records -= 1;
            if queued.records == 0 {
                self.begun -= usize::from(queued.has_begun);
                self.agents.remove(id);
            }
        }
    }

    /// Returns whether the next work of an agent is queued.
    pub(super) fn contains(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    /// Returns the number of queued agents that have begun before.
    pub(super) fn begun_agents(&self) -> usize {
        self.begun
    }
}
