//! The check that no work is left undone, by a look at all hosts and agents.

use std::collections::HashMap;

use super::agents::{AgentPhase, SimulatedAgent};
use super::run::Simulation;
use super::world::Millis;

impl Simulation {
    /// Checks that work is conserved. A host has a seat if it takes agents and has a free permit beside those that are left
    /// to agents which return. While the account allows a further turn:
    /// - no agent waits for a permit at a host with a seat;
    /// - no agent that may move waits at a host without a free permit, if a host has a seat for it;
    /// - no agent waits for a host that there is.
    pub(super) fn check_work_is_conserved(&self) {
        if self.spare() == 0 {
            return;
        }
        let (running, returning) = self.load();
        let count = |of: &HashMap<usize, usize>, host: usize| of.get(&host).copied().unwrap_or(0);
        let free = |host: usize| {
            self.table.permits(&self.world.hosts[host].name).saturating_sub(count(&running, host))
        };
        let seats: Vec<usize> = (0..self.world.hosts.len())
            .filter(|host| free(*host) > count(&returning, *host))
            .collect();
        let mut has_seat = HashMap::new();
        for agent in &self.agents {
            let requirement = agent.requirement.as_ref();
            let has_seat = *has_seat.entry(requirement).or_insert_with(|| {
                let host = |host: &usize| &self.world.hosts[*host].name;
                seats.iter().any(|seat| self.table.takes(host(seat), requirement))
            });
            match agent.phase {
                AgentPhase::Unplaced => {
                    assert!(self.table.place(requirement, None).is_err(), "{agent:?}");
                }
                AgentPhase::Waiting => {
                    let host = agent.host();
                    assert!(seats.binary_search(&host).is_err(), "{agent:?} waits at a seat");
                    let is_stuck = free(host) == 0 && has_seat && Self::is_movable(agent);
                    assert!(!is_stuck, "{agent:?} could go elsewhere at {}", self.now);
                }
                AgentPhase::Returning | AgentPhase::Running | AgentPhase::Done => {}
            }
        }
    }

    /// Returns the time that the work would take without faults: that of all agents on all hosts, and then that of the
    /// agents which need the scarcest label on the hosts that have it.
    pub(super) fn ideal_time(&self) -> Millis {
        let turn = u64::midpoint(self.duration.0, self.duration.1);
        let time = |label: Option<&'static str>| {
            let requirement = label.map(super::label);
            let needs =
                |agent: &&SimulatedAgent| label.is_none() || agent.requirement == requirement;
            let turns = self.agents.iter().filter(needs).map(|agent| u64::from(agent.turns));
            let slots = self.world.slots(label).min(self.cap as u64);
            turns.sum::<u64>() * turn / slots.max(1)
        };
        let scarcest = self.labels.iter().map(|label| time(Some(label))).max();
        time(None) + scarcest.unwrap_or(0)
    }

    /// Returns the numbers of agents that run and that are about to ask at each host.
    fn load(&self) -> (HashMap<usize, usize>, HashMap<usize, usize>) {
        let (mut running, mut returning) = (HashMap::new(), HashMap::new());
        for agent in &self.agents {
            match agent.phase {
                AgentPhase::Running => *running.entry(agent.host()).or_default() += 1,
                AgentPhase::Returning => *returning.entry(agent.host()).or_default() += 1,
                AgentPhase::Unplaced | AgentPhase::Waiting | AgentPhase::Done => {}
            }
        }
        (running, returning)
    }

    /// Returns whether an agent has begun nothing, and is not bound to a directory of others.
    fn is_movable(agent: &SimulatedAgent) -> bool {
        let is_single = agent
            .group
            .as_ref()
            .is_none_or(|group| *group == super::PlacementGroup::Worktree(agent.id.clone()));
        agent.last_turn.is_none() && !agent.has_started && is_single && agent.turns_done == 0
    }
}
