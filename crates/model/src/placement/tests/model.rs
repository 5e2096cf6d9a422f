//! The table against a plain model of it, whatever hosts and agents do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];

/// Something that happens to the table.
#[derive(Debug, Clone, Copy)]
enum TableStep {
    /// A host is seen; its epoch is the known one, the one before, or the next.
    See {
        host: usize,
        epoch: i64,
        standing: HostStanding,
        is_alive: bool,
        slots: u32,
        labels: u8,
        wire: u32,
    },
    Lose(usize),
    Place {
        agent: u32,
        requirement: usize,
        group: Option<u32>,
    },
    Begin(u32),
    End(u32),
}

fn steps() -> impl Strategy<Value = Vec<TableStep>> {
    let standing = prop_oneof![
        6 => Just(HostStanding::Active),
        2 => Just(HostStanding::Draining),
        1 => Just(HostStanding::Lost),
    ];
    let epoch = prop_oneof![6 => Just(0i64), 2 => Just(1), 1 => Just(-1)];
    let alive = prop::bool::weighted(0.8);
    let wire = prop_oneof![9 => Just(WIRE), 1 => Just(WIRE + 1)];
    let seen = (0..HOSTS.len(), epoch, standing, alive, 0..4u32, 0..4u8, wire);
    let see = seen.prop_map(|(host, epoch, standing, is_alive, slots, labels, wire)| {
        TableStep::See { host, epoch, standing, is_alive, slots, labels, wire }
    });
    let place = (0..12u32, 0..4usize, prop::option::weighted(0.3, 0..3u32));
    let step = prop_oneof![
        4 => see,
        1 => (0..HOSTS.len()).prop_map(TableStep::Lose),
        6 => place.prop_map(|(agent, requirement, group)| TableStep::Place { agent, requirement, group }),
        2 => (0..12u32).prop_map(TableStep::Begin),
        2 => (0..12u32).prop_map(TableStep::End),
    ];
    prop::collection::vec(step, 0..80)
}

fn requirements() -> [Option<HostLabel>; 4] {
    [None, Some(label("gpu")), Some(label("big")), Some(label("c"))]
}

/// An agent of the model.
#[derive(Debug, Clone, PartialEq)]
struct ModelAgent {
    host: String,
    epoch: HostEpoch,
    group: Option<u32>,
    has_started: bool,
}

/// The table, as plain as it can be.
#[derive(Debug, Default)]
struct TableModel {
    hosts: BTreeMap<String, HostSighting>,
    agents: BTreeMap<u32, ModelAgent>,
    started_groups: BTreeSet<u32>,
}

impl TableModel {
    fn members(&self, group: u32) -> Vec<&ModelAgent> {
        self.agents.values().filter(|agent| agent.group == Some(group)).collect()
    }

    fn agents_at(&self, host: &str) -> usize {
        self.agents.values().filter(|agent| agent.host == host).count()
    }

    fn has(host: &HostSighting, requirement: Option<&HostLabel>) -> bool {
        requirement.is_none_or(|label| {
            host.report.labels.contains(label) || host.host.as_str() == label.as_str()
        })
    }

    fn place(&self, requirement: Option<&HostLabel>, group: Option<u32>) -> Option<String> {
        if let Some(member) = group.and_then(|group| self.members(group).first().copied()) {
            let host = &self.hosts[&member.host];
            return Self::has(host, requirement).then(|| member.host.clone());
        }
        let takers = self.hosts.values().filter(|host| {
            host.standing == HostStanding::Active
                && host.is_alive
                && host.report.wire == WIRE
                && host.report.slots > 0
                && Self::has(host, requirement)
        });
        let load = |host: &HostSighting| {
            let agents = self.agents_at(host.host.as_str()) + 1;
            // The numbers of slots are below 4, so 12 makes whole numbers of all loads.
            agents * 12 / host.report.slots as usize
        };
        let freest = takers.min_by_key(|host| (load(host), host.host.clone()));
        freest.map(|host| host.host.to_string())
    }

    /// Takes a sighting; returns the agents that are lost.
    fn see(&mut self, sighting: HostSighting) -> Vec<u32> {
        let key = sighting.host.to_string();
        if let Some(known) = self.hosts.get(&key) {
            let is_back = known.standing == HostStanding::Lost
                && sighting.standing != HostStanding::Lost
                && sighting.epoch == known.epoch;
            if sighting.epoch < known.epoch || is_back {
                return Vec::new();
            }
        }
        let (epoch, standing) = (sighting.epoch, sighting.standing);
        self.hosts.insert(key.clone(), sighting);
        self.evict(&key, |agent| standing == HostStanding::Lost || agent.epoch != epoch)
    }

    fn evict(&mut self, host: &str, is_lost: impl Fn(&ModelAgent) -> bool) -> Vec<u32> {
        let lost = self.agents.iter().filter(|(_, placed)| placed.host == host && is_lost(placed));
        let lost: Vec<u32> = lost.map(|(agent, _)| *agent).collect();
        for agent in &lost {
            self.end(*agent);
        }
        lost
    }

    fn end(&mut self, agent: u32) {
        let group = self.agents.remove(&agent).and_then(|agent| agent.group);
        if let Some(group) = group.filter(|group| self.members(*group).is_empty()) {
            self.started_groups.remove(&group);
        }
    }

    fn begin(&mut self, agent: u32) {
        if let Some(agent) = self.agents.get_mut(&agent) {
            agent.has_started = true;
            self.started_groups.extend(agent.group);
        }
    }

    fn may_move(&self, agent: u32) -> bool {
        self.agents.get(&agent).is_some_and(|agent| {
            let is_free = |group: u32| {
                self.members(group).len() == 1 && !self.started_groups.contains(&group)
            };
            !agent.has_started && agent.group.is_none_or(is_free)
        })
    }
}

fn group_of(number: u32) -> PlacementGroup {
    PlacementGroup::Worktree(AgentId::main().child(100 + number))
}

fn numbers(changes: &HostChanges) -> Vec<u32> {
    changes.lost.iter().map(|lost| lost.placed.agent.number()).collect()
}

/// Does a step with both, and compares what follows.
fn take(
    table: &mut HostTable,
    model: &mut TableModel,
    step: TableStep,
) -> Result<(), TestCaseError> {
    match step {
        TableStep::See { host, epoch, standing, is_alive, slots, labels, wire } => {
            let known = model.hosts.get(HOSTS[host]).map_or(1, |host| host.epoch.0);
            let all = [(1, "gpu"), (2, "big")].into_iter();
            let labels: Vec<&str> =
                all.filter(|(bit, _)| labels & bit != 0).map(|(_, label)| label).collect();
            let mut seen = sighting(HOSTS[host], slots, &labels);
            seen.report.wire = wire;
            let epoch = HostEpoch(known.saturating_add_signed(epoch));
            let seen = HostSighting { epoch, standing, is_alive, ..seen };
            let changes = table.observe(seen.clone());
            prop_assert_eq!(numbers(&changes), model.see(seen));
        }
        TableStep::Lose(host) => {
            let changes = table.lose(&name(HOSTS[host]));
            if let Some(host) = model.hosts.get_mut(HOSTS[host]) {
                host.standing = HostStanding::Lost;
            }
            prop_assert_eq!(numbers(&changes), model.evict(HOSTS[host], |_| true));
        }
        TableStep::Place { agent, requirement, group } => {
            let requirement = requirements()[requirement].clone();
            let placed = table.place(requirement.as_ref(), group.map(group_of).as_ref());
            let host = placed.ok().and_then(|home| home.host);
            let expected = model.place(requirement.as_ref(), group);
            prop_assert_eq!(host.as_ref().map(ToString::to_string), expected);
            let is_new = !model.agents.contains_key(&agent);
            if let Some(host) = host.filter(|_| is_new) {
                let epoch = model.hosts[host.as_str()].epoch;
                let agent_id = AgentId::main().child(agent);
                let placed = PlacedAgent { agent: agent_id, host: host.clone(), epoch };
                prop_assert!(table.assign(placed, group.map(group_of)));
                let host = host.to_string();
                model.agents.insert(agent, ModelAgent { host, epoch, group, has_started: false });
            }
        }
        TableStep::Begin(agent) => {
            table.begin(&AgentId::main().child(agent));
            model.begin(agent);
        }
        TableStep::End(agent) => {
            table.end(&AgentId::main().child(agent));
            model.end(agent);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn table_is_what_a_look_at_all_hosts_and_agents_says(steps in steps()) {
        let (mut table, mut model) = (HostTable::new(WIRE), TableModel::default());
        for step in steps {
            take(&mut table, &mut model, step)?;
            for requirement in requirements() {
                let host = table.place(requirement.as_ref(), None).ok().and_then(|home| home.host);
                let expected = model.place(requirement.as_ref(), None);
                prop_assert_eq!(host.map(|host| host.to_string()), expected);
            }
            for host in HOSTS {
                prop_assert_eq!(table.agents_at(&name(host)), model.agents_at(host));
            }
            for number in 0..12 {
                let id = AgentId::main().child(number);
                prop_assert_eq!(table.may_move(&id), model.may_move(number));
                let epoch = table.home(&id).map(|home| home.epoch);
                prop_assert_eq!(epoch, model.agents.get(&number).map(|agent| agent.epoch));
            }
        }
    }
}
