//! The hosts with one label: those that take agents, the freest first, and why the others do not.

use std::collections::{BTreeMap, BTreeSet};

use super::known_host::{HostLoad, HostObstacle};
use super::unplaced::Unplaced;
use crate::domain::host::{HostLabel, HostName};

/// The hosts with one label, or all hosts.
#[derive(Debug, Default)]
pub(super) struct HostPool {
    takers: BTreeSet<HostLoad>,
    others: BTreeMap<HostObstacle, BTreeSet<HostName>>,
}

impl HostPool {
    pub(super) fn insert(&mut self, host: &HostName, load: Result<HostLoad, HostObstacle>) {
        match load {
            Ok(load) => {
                self.takers.insert(load);
            }
            Err(obstacle) => {
                self.others.entry(obstacle).or_default().insert(host.clone());
            }
        }
    }

    pub(super) fn remove(&mut self, host: &HostName, load: &Result<HostLoad, HostObstacle>) {
        match load {
            Ok(load) => {
                self.takers.remove(load);
            }
            Err(obstacle) => {
                if let Some(hosts) = self.others.get_mut(obstacle) {
                    hosts.remove(host);
                    if hosts.is_empty() {
                        self.others.remove(obstacle);
                    }
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.takers.is_empty() && self.others.is_empty()
    }

    /// Returns the freest host.
    pub(super) fn freest(&self) -> Option<&HostName> {
        self.takers.first().map(|load| &load.host)
    }

    /// Returns the hosts that take agents, the freest first.
    pub(super) fn takers(&self) -> impl ExactSizeIterator<Item = &HostName> {
        self.takers.iter().map(|load| &load.host)
    }

    /// Returns a host with an obstacle, if no other obstacle keeps a host from taking agents.
    pub(super) fn kept_by(&self, obstacle: HostObstacle) -> Option<&HostName> {
        let others = self.others.get(&obstacle)?;
        others.first().filter(|_| self.others.len() == 1)
    }

    /// Returns why no host takes agents.
    pub(super) fn why_not(&self, label: Option<&HostLabel>) -> Unplaced {
        let label = label.cloned();
        let mut counts: Vec<(HostObstacle, usize)> =
            self.others.iter().map(|(obstacle, hosts)| (*obstacle, hosts.len())).collect();
        match (counts.pop(), counts.is_empty()) {
            (None, _) => label.map_or(Unplaced::NoHost, Unplaced::NoSuchLabel),
            (Some((obstacle, _)), true) => Unplaced::AllAre { label, obstacle },
            (Some(last), false) => {
                counts.push(last);
                Unplaced::Mixed { label, counts }
            }
        }
    }
}
