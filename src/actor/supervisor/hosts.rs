//! The supervisor and the hosts of its agents: each agent gets a host, and loses it if the host is lost.
//!
//! The record that lets an agent take its first step also places it. If no host takes it then, it waits, and a separate
//! record places it later. The host table makes all decisions.

use std::collections::BTreeSet;

use actix::{Context as Ctx, Handler};
use tokio::sync::mpsc;

use super::Supervisor;
use crate::actor::observer::HostsSeen;
use crate::actor::registry::AgentView;
use crate::domain::admission::PermitRequest;
use crate::domain::agent::Agent;
use crate::domain::apply::Effect;
use crate::domain::apply::take_homes;
use crate::domain::event::Event;
use crate::domain::host::HostName;
use crate::domain::host::PlacedAgent;
use crate::domain::host_work::WIRE_VERSION;
use crate::domain::id::AgentId;
use crate::domain::placement::{
    HostChanges, HostSighting, HostTable, LostAgent, PlacementGroup, balance, goes_on_elsewhere,
};
use crate::domain::run::Run;
use crate::domain::settings::{AnswererKind, MaxProcs};

/// The placement of agents on hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementMode {
    /// Agents that share a directory share a host.
    OwnDirectories,
    /// All hosts have the run's directory.
    SharedDirectory,
}

/// The news about hosts for a supervisor.
pub struct HostFeed {
    /// The placement of agents.
    pub mode: PlacementMode,
    /// The hosts, all of them each time.
    pub seen: mpsc::UnboundedReceiver<Vec<HostSighting>>,
}

/// The hosts of a run that several machines share.
#[derive(Debug)]
pub(super) struct RunHosts {
    table: HostTable,
    /// True if all hosts have the run's directory.
    has_shared_dir: bool,
    /// The live agents without a host.
    unplaced: BTreeSet<AgentId>,
    /// True once the hosts were seen; before that, no host takes an agent.
    has_seen: bool,
    /// The last reported reason why agents have no host.
    warned: Option<String>,
}

impl RunHosts {
    /// Returns the hosts of a run, with the agents where its records say that they live.
    pub(super) fn of(run: &Run, has_shared_dir: bool) -> Self {
        let starts_claude = run.settings.answerer == AnswererKind::Claude;
        // Turns of Claude Code cost money, so none is sent before it can begin. A waiting turn would take a permit from
        // another host.
        let sends_ahead = !starts_claude && run.settings.max_procs == MaxProcs::Auto;
        let mut hosts = Self {
            table: HostTable::new(WIRE_VERSION)
                .starting_claude(starts_claude)
                .sending_ahead(sends_ahead),
            has_shared_dir,
            unplaced: BTreeSet::new(),
            has_seen: false,
            warned: None,
        };
        for agent in run.agents.values() {
            let home = &agent.spec.working_dir.home;
            let placed = home.host.clone().is_some_and(|host| {
                let placed = PlacedAgent { agent: agent.id.clone(), host, epoch: home.epoch };
                hosts.table.assign(placed, hosts.group(agent))
            });
            if !placed {
                hosts.unplaced.insert(agent.id.clone());
            } else if !agent.is_new() {
                hosts.table.begin(&agent.id);
            }
        }
        hosts
    }

    fn group(&self, agent: &Agent) -> Option<PlacementGroup> {
        PlacementGroup::of(&agent.spec.working_dir, self.has_shared_dir)
    }

    /// Gives an agent a host, if one takes it; otherwise it waits.
    fn place(&mut self, agent: &Agent) -> Option<PlacedAgent> {
        let group = self.group(agent);
        let placed = match self.table.place(agent.spec.options.host.as_ref(), group.as_ref()) {
            Ok(home) => home.host.map(|host| PlacedAgent {
                agent: agent.id.clone(),
                host,
                epoch: home.epoch,
            }),
            Err(reason) => {
                self.warn(&reason.to_string());
                None
            }
        };
        let placed = placed.filter(|placed| self.table.assign(placed.clone(), group));
        match &placed {
            Some(placed) => {
                self.unplaced.remove(&placed.agent);
                self.warned = None;
            }
            None => drop(self.unplaced.insert(agent.id.clone())),
        }
        placed
    }

    /// Tells people why agents wait for a host, once for each reason.
    fn warn(&mut self, reason: &str) {
        if self.has_seen && self.warned.as_deref() != Some(reason) {
            tracing::warn!("agents wait for a host: {reason}");
            self.warned = Some(reason.to_owned());
        }
    }
}

impl Supervisor {
    /// Returns the view of an agent for observers.
    pub(super) fn view_of(&self, agent: &Agent) -> AgentView {
        AgentView::of(agent, self.hosts.is_some())
    }

    /// Gives the agents that a record lets begin a host, and takes those off the hosts that it ends.
    pub(super) fn place_agents(&mut self, effects: &[Effect]) -> Vec<PlacedAgent> {
        let Some(hosts) = &mut self.hosts else { return Vec::new() };
        let mut placed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Proceed(id) => {
                    if hosts.table.home(id).is_none()
                        && let Some(agent) = self.run.agents.get(id)
                    {
                        placed.extend(hosts.place(agent));
                    }
                }
                Effect::Retire(id) | Effect::Discard(id) => {
                    hosts.table.end(id);
                    hosts.unplaced.remove(id);
                }
                Effect::Ask(_)
                | Effect::AwaitApproval(_)
                | Effect::TellApproval { .. }
                | Effect::TellMessage { .. }
                | Effect::Warn { .. }
                | Effect::StopAgent(_)
                | Effect::Hold
                | Effect::Stop
                | Effect::AwaitLimit
                | Effect::Abort
                | Effect::End => {}
            }
        }
        take_homes(&mut self.run, &placed);
        placed
    }

    /// Returns whether an agent has to wait until a host takes it.
    pub(super) fn waits_for_host(&mut self, id: &AgentId) -> bool {
        let Some(hosts) = &mut self.hosts else { return false };
        let is_placed = hosts.table.home(id).is_some();
        if !is_placed {
            hosts.unplaced.insert(id.clone());
        }
        !is_placed
    }

    /// Returns the request for the turn that an agent has due.
    pub(super) fn permit_request(&self, agent: &Agent) -> PermitRequest {
        let request = PermitRequest::of(agent);
        match &self.hosts {
            None => request,
            Some(hosts) => PermitRequest {
                host: agent.spec.working_dir.home.host.clone(),
                mobility: hosts.table.mobility(&agent.id, agent.spec.options.host.as_ref()),
                ..request
            },
        }
    }

    /// Notes that an agent begins something at its host, so that it stays there.
    pub(super) fn begins_at_host(&mut self, id: &AgentId) {
        if let Some(hosts) = &mut self.hosts {
            hosts.table.begin(id);
        }
    }

    /// Takes in what the hosts are now: their permits, the agents of those that were lost, and those that wait.
    fn see_hosts(&mut self, HostsSeen(seen): HostsSeen, ctx: &mut Ctx<Self>) {
        let Some(hosts) = &mut self.hosts else { return };
        let HostChanges { lost, permits, left: _ } = hosts.table.observe_all(seen);
        hosts.has_seen = true;
        for host in &permits {
            self.admission.set_permits(Some(host), hosts.table.permits(host));
        }
        warn_of_lost_sessions(&self.run, &lost);
        let lost_hosts: BTreeSet<HostName> =
            lost.iter().map(|lost| lost.placed.host.clone()).collect();
        for lost in &lost {
            hosts.unplaced.insert(lost.placed.agent.clone());
        }
        let waiting: Vec<AgentId> = hosts.unplaced.iter().cloned().collect();
        let mut placed = Vec::new();
        for id in &waiting {
            match self.run.agents.get(id) {
                Some(agent) => placed.extend(hosts.place(agent)),
                None => drop(hosts.unplaced.remove(id)),
            }
        }
        self.record_homes(lost_hosts.into_iter().collect(), placed, ctx);
        self.keep_hosts_busy(ctx);
        self.schedule(ctx);
    }

    /// Moves agents that have begun nothing from full hosts to idle ones.
    fn keep_hosts_busy(&mut self, ctx: &mut Ctx<Self>) {
        let Some(hosts) = &mut self.hosts else { return };
        let spare = self.throttle.allowed().saturating_sub(self.admission.running());
        let activity = std::collections::BTreeMap::new();
        let moves = balance(&self.admission, &hosts.table, &activity, spare);
        let mut placed = Vec::with_capacity(moves.len());
        for moved in moves {
            let Some(agent) = self.run.agents.get(&moved.agent) else { continue };
            let Some(host) = moved.to.host else { continue };
            let to = PlacedAgent { agent: moved.agent, host, epoch: moved.to.epoch };
            if hosts.table.assign(to.clone(), hosts.group(agent)) {
                placed.push(to);
            }
        }
        self.record_homes(Vec::new(), placed, ctx);
    }

    /// Records the hosts that agents are given. Those that wait for a permit ask again once that is durable.
    fn record_homes(&mut self, lost: Vec<HostName>, placed: Vec<PlacedAgent>, ctx: &mut Ctx<Self>) {
        if lost.is_empty() && placed.is_empty() {
            return;
        }
        for placed in &placed {
            self.admission.suspend(&placed.agent);
        }
        self.commit_placed(Event::AgentsPlaced { lost }, placed, ctx);
    }
}

/// Names the agents whose sessions were only on a host that was lost.
fn warn_of_lost_sessions(run: &Run, lost: &[LostAgent]) {
    let agents = lost.iter().filter_map(|lost| run.agents.get(&lost.placed.agent));
    let bound = agents.filter(|agent| !goes_on_elsewhere(agent.turn_session()));
    let bound: Vec<String> = bound.map(|agent| agent.id.to_string()).collect();
    if !bound.is_empty() && run.settings.answerer == AnswererKind::Claude {
        tracing::warn!(
            "the sessions of {} were only on a host that is lost: each of these agents fails at its next turn, unless that begins a fresh session",
            bound.join(", ")
        );
    }
}

impl Handler<HostsSeen> for Supervisor {
    type Result = ();

    fn handle(&mut self, seen: HostsSeen, ctx: &mut Self::Context) {
        if self.is_going_on() {
            self.see_hosts(seen, ctx);
        }
    }
}
