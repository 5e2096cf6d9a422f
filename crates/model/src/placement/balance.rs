//! Moves of agents that wait at full hosts to hosts that have nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use super::HostTable;
use crate::admission::{AdmissionQueue, AgentMobility, HostActivity};
use crate::host::Home;
use crate::host::HostName;
use crate::id::AgentId;

/// The move of an agent that has begun nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMove {
    /// The agent.
    pub agent: AgentId,
    /// The host at which it waits.
    pub from: HostName,
    /// The home that it gets.
    pub to: Home,
}

/// Proposes moves so that no host idles while an agent waits that could go there.
///
/// An agent is moved if it has begun nothing, waits in a line at a host without a free permit, and a host that takes
/// agents and has the label it needs has a free permit while nobody waits in a line there. Those that have waited
/// longest move first; those that need a label choose before the others. No host is given more than it has free permits
/// beside those that are left to agents which return or move there (`activity`), and all together get at most `spare`.
///
/// The cost depends on the idle hosts, and is constant if no agent could be moved.
pub fn balance(
    queue: &AdmissionQueue,
    hosts: &HostTable,
    activity: &BTreeMap<HostName, HostActivity>,
    spare: usize,
) -> Vec<AgentMove> {
    let mut moves: Vec<AgentMove> = Vec::new();
    let mut given: BTreeMap<HostName, usize> = BTreeMap::new();
    for mobility in queue.crowded() {
        let mut seats = Seats::default();
        for host in idle_hosts(queue, hosts, mobility) {
            let returning = activity.get(host).map_or(0, |activity| activity.returning);
            let taken = returning + given.get(host).copied().unwrap_or_default();
            seats.add(host, queue.idle_permits(host).saturating_sub(taken));
        }
        let limit = seats.count.min(spare.saturating_sub(moves.len()));
        // Since it asked, others may have been given its directory.
        let movable = queue.longest_waiting(mobility).filter(|(agent, _)| hosts.may_move(agent));
        for (agent, from) in movable.take(limit) {
            let Some(to) = seats.take() else { break };
            let Some(home) = hosts.home_at(&to) else { continue };
            *given.entry(to).or_default() += 1;
            moves.push(AgentMove { agent: agent.clone(), from: from.clone(), to: home });
        }
    }
    moves
}

/// Returns the idle hosts to which agents of a mobility could go. It looks at the idle hosts, or at those with the label,
/// whichever are fewer.
fn idle_hosts<'a>(
    queue: &'a AdmissionQueue,
    hosts: &'a HostTable,
    mobility: &'a AgentMobility,
) -> Vec<&'a HostName> {
    let requirement = match mobility {
        AgentMobility::Fixed => return Vec::new(),
        AgentMobility::HostsWith(label) => Some(label),
        AgentMobility::AnyHost => None,
    };
    let Some(pool) = hosts.pool(requirement) else { return Vec::new() };
    let takers = pool.takers();
    let mut idle: Vec<&HostName> = if takers.len() < queue.idle_host_count() {
        takers.filter(|host| queue.idle_permits(host) > 0).collect()
    } else {
        let idle = queue.idle_hosts().map(|(host, _)| host);
        idle.filter(|host| hosts.takes(host, requirement)).collect()
    };
    idle.retain(|host| !hosts.is_last_choice(host));
    idle
}

/// The free permits of idle hosts.
#[derive(Debug, Default)]
struct Seats {
    hosts: BTreeSet<(std::cmp::Reverse<usize>, HostName)>,
    count: usize,
}

impl Seats {
    fn add(&mut self, host: &HostName, free: usize) {
        if free > 0 {
            self.hosts.insert((std::cmp::Reverse(free), host.clone()));
            self.count += free;
        }
    }

    /// Takes a permit of the host with the most.
    fn take(&mut self) -> Option<HostName> {
        let (std::cmp::Reverse(free), host) = self.hosts.pop_first()?;
        self.count -= free;
        self.add(&host, free - 1);
        Some(host)
    }
}
