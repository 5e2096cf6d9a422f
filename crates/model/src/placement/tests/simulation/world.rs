//! The world of the simulation: the hosts as they are, their registry, and the turns that run on them.
//!
//! A host that is cut off goes on with its turns, and delivers their ends when it is back. A host that was declared lost,
//! or whose name another worker has taken, has no turns any more: it is fenced by its epoch.

use std::collections::{BTreeMap, HashMap};

use super::super::{HostSighting, HostStanding, name, sighting};
use crate::host::{HostEpoch, HostName};

/// The time in milliseconds.
pub(super) type Millis = u64;

/// The longest time without a heartbeat of a host that counts as alive.
const SILENT_AFTER: Millis = 15_000;

/// A turn that a host is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SimulatedTurn {
    pub(super) agent: usize,
    pub(super) attempt: u32,
    pub(super) host: usize,
    pub(super) epoch: HostEpoch,
    pub(super) duration: Millis,
}

/// A host.
#[derive(Debug)]
pub(super) struct SimulatedHost {
    pub(super) name: HostName,
    slots: u32,
    labels: Vec<&'static str>,
    pub(super) epoch: HostEpoch,
    standing: HostStanding,
    /// The epoch that its worker believes in.
    worker_epoch: HostEpoch,
    cut_off_since: Option<Millis>,
    running: BTreeMap<usize, SimulatedTurn>,
    /// The turns that have ended while it was cut off.
    ended: Vec<SimulatedTurn>,
    /// The turns that it was asked for meanwhile.
    mail: Vec<SimulatedTurn>,
}

/// All hosts.
#[derive(Debug, Default)]
pub(super) struct SimulatedWorld {
    pub(super) hosts: Vec<SimulatedHost>,
    /// The hosts at which agents run.
    running_at: HashMap<usize, usize>,
}

impl SimulatedWorld {
    pub(super) fn add(&mut self, slots: u32, labels: &[&'static str]) {
        let index = self.hosts.len();
        let name = name(&format!("host-{index:04}"));
        self.hosts.push(SimulatedHost {
            name,
            slots,
            labels: labels.to_vec(),
            epoch: HostEpoch(1),
            standing: HostStanding::Active,
            worker_epoch: HostEpoch(1),
            cut_off_since: None,
            running: BTreeMap::new(),
            ended: Vec::new(),
            mail: Vec::new(),
        });
    }

    /// Returns the number of slots of all hosts with a label.
    pub(super) fn slots(&self, label: Option<&'static str>) -> u64 {
        let has = |host: &&SimulatedHost| label.is_none_or(|label| host.labels.contains(&label));
        self.hosts.iter().filter(has).map(|host| u64::from(host.slots)).sum()
    }

    /// Returns what the registry says of all hosts.
    pub(super) fn sightings(&self, now: Millis) -> Vec<HostSighting> {
        let seen = |host: &SimulatedHost| HostSighting {
            epoch: host.epoch,
            standing: host.standing,
            is_alive: host.cut_off_since.is_none_or(|since| now - since < SILENT_AFTER),
            ..sighting(host.name.as_str(), host.slots, &host.labels)
        };
        self.hosts.iter().map(seen).collect()
    }

    /// Returns the hosts that have been cut off for longer than `limit` and are not declared lost.
    pub(super) fn silent_for(&self, limit: Millis, now: Millis) -> Vec<usize> {
        let is_gone = |host: &SimulatedHost| {
            host.standing != HostStanding::Lost
                && host.cut_off_since.is_some_and(|since| now - since > limit)
        };
        (0..self.hosts.len()).filter(|index| is_gone(&self.hosts[*index])).collect()
    }

    /// Asks a host for a turn. Returns whether it has begun.
    pub(super) fn ask(&mut self, turn: SimulatedTurn) -> bool {
        let host = &mut self.hosts[turn.host];
        if host.epoch != turn.epoch || host.standing == HostStanding::Lost {
            return false;
        }
        if host.cut_off_since.is_some() {
            host.mail.push(turn);
            return false;
        }
        self.begin(turn);
        true
    }

    fn begin(&mut self, turn: SimulatedTurn) {
        let elsewhere = self.running_at.insert(turn.agent, turn.host);
        assert_eq!(elsewhere, None, "{turn:?} runs already");
        let host = &mut self.hosts[turn.host];
        assert_eq!(host.epoch, turn.epoch, "nothing begins in an epoch that is over");
        assert_ne!(host.standing, HostStanding::Lost);
        host.running.insert(turn.agent, turn);
        let running = host.running.len();
        assert!(running <= host.slots as usize, "{} runs {running} turns", host.name);
    }

    /// Takes the end of a turn. Returns whether the supervisor hears of it now.
    pub(super) fn end(&mut self, turn: SimulatedTurn) -> bool {
        let host = &mut self.hosts[turn.host];
        if host.running.get(&turn.agent) != Some(&turn) {
            return false;
        }
        host.running.remove(&turn.agent);
        self.running_at.remove(&turn.agent);
        if host.cut_off_since.is_some() {
            host.ended.push(turn);
        }
        host.cut_off_since.is_none()
    }

    /// Begins a new epoch of a host: what it does for the one before does not count any more.
    fn fence(&mut self, host: usize) -> &mut SimulatedHost {
        let host = &mut self.hosts[host];
        for agent in std::mem::take(&mut host.running).into_keys() {
            self.running_at.remove(&agent);
        }
        host.ended.clear();
        host.mail.clear();
        host.epoch.0 += 1;
        host
    }

    pub(super) fn cut_off(&mut self, host: usize, now: Millis) {
        self.hosts[host].cut_off_since.get_or_insert(now);
    }

    /// Brings a host back. Returns the turns that have ended there, and those that it begins now.
    pub(super) fn bring_back(&mut self, host: usize) -> (Vec<SimulatedTurn>, Vec<SimulatedTurn>) {
        if self.hosts[host].worker_epoch != self.hosts[host].epoch {
            self.register(host);
        }
        let back = &mut self.hosts[host];
        back.cut_off_since = None;
        let (ended, started) = (std::mem::take(&mut back.ended), std::mem::take(&mut back.mail));
        for turn in &started {
            self.begin(*turn);
        }
        (ended, started)
    }

    /// Lets another worker take the name of a host.
    pub(super) fn replace(&mut self, host: usize) {
        if self.hosts[host].cut_off_since.is_none() {
            self.register(host);
        }
    }

    fn register(&mut self, host: usize) {
        let host = self.fence(host);
        host.worker_epoch = host.epoch;
        host.standing = HostStanding::Active;
    }

    pub(super) fn drain(&mut self, host: usize, yes: bool) {
        let standing = &mut self.hosts[host].standing;
        if *standing != HostStanding::Lost {
            *standing = if yes { HostStanding::Draining } else { HostStanding::Active };
        }
    }

    pub(super) fn lose(&mut self, host: usize) {
        self.fence(host).standing = HostStanding::Lost;
    }
}
