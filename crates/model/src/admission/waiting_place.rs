//! The places where agents wait: lines, aside for money, or nowhere while they move.

use super::queue_hosts::{HostChange, HostIndex};
use super::{
    AdmissionQueue, AgentMobility, HeldPermit, PermitRequest, QueuedStanding, WaitingLineKind,
};
use crate::host::HostName;
use crate::id::AgentId;

impl AdmissionQueue {
    /// Returns the number of a host. One that the queue has not heard of is full.
    pub(super) fn host_index(&mut self, host: Option<&HostName>) -> HostIndex {
        let is_known = self.hosts.named(host).is_some();
        let index = self.hosts.index_of(host);
        if !is_known {
            self.movable.select(index, true);
        }
        index
    }

    /// Takes a repeated request: it brings a suspended agent back, and moves one whose host is another one now.
    pub(super) fn ask_again(&mut self, request: PermitRequest) {
        let host = self.host_index(request.host.as_ref());
        let Some(turn) = self.queued.get(&request.agent) else { return };
        if turn.host == host && turn.standing != QueuedStanding::Suspended {
            return;
        }
        let owner = self.leave_place(&request.agent, QueuedStanding::Suspended);
        if let Some(turn) = self.queued.get_mut(&request.agent) {
            turn.host = host;
            turn.mobility = request.mobility;
        }
        self.enter_line(&request.agent);
        self.bring_next(owner);
    }

    /// Puts a queued agent into the lines of its host.
    pub(super) fn enter_line(&mut self, agent: &AgentId) {
        let Some(turn) = self.queued.get_mut(agent) else { return };
        turn.standing = QueuedStanding::InLine;
        let is_movable = turn.mobility != AgentMobility::Fixed
            && turn.place.kind() == WaitingLineKind::New
            && turn.host != HostIndex::HERE;
        if is_movable {
            self.movable.insert(turn.mobility.clone(), turn.host, turn.place, agent.clone());
        }
        self.hosts.insert(turn.host, turn.place, agent.clone(), self.clock);
    }

    /// Takes an agent out of where it waits. Returns the owner of a share that it was brought back for and is not
    /// checked for.
    pub(super) fn leave_place(
        &mut self,
        agent: &AgentId,
        standing: QueuedStanding,
    ) -> Option<AgentId> {
        let turn = self.queued.get_mut(agent)?;
        let (host, place) = (turn.host, turn.place);
        match std::mem::replace(&mut turn.standing, standing) {
            QueuedStanding::InLine => {
                self.movable.remove(&turn.mobility, host, place);
                self.hosts.remove(host, place, agent, self.clock);
                self.aside.left_line(host, agent)
            }
            QueuedStanding::ForShare(owner) => {
                self.aside.remove(&owner, host, place);
                None
            }
            QueuedStanding::Suspended => None,
        }
    }

    /// Gives an agent a permit.
    pub(super) fn hold(&mut self, agent: AgentId, permit: HeldPermit) {
        let host = permit.host;
        if let Some(earlier) = self.holders.insert(agent, permit) {
            let change = self.hosts.stop(earlier.host);
            self.host_changed(earlier.host, change);
        }
        let change = self.hosts.start(host);
        self.host_changed(host, change);
    }

    /// Takes the permit of an agent back, if it has one.
    pub(super) fn let_go(&mut self, agent: &AgentId) {
        if let Some(HeldPermit { host, .. }) = self.holders.remove(agent) {
            let change = self.hosts.stop(host);
            self.host_changed(host, change);
        }
    }

    /// Takes in that a host has become free or full.
    pub(super) fn host_changed(&mut self, host: HostIndex, change: HostChange) {
        let due = match change {
            HostChange::None => return,
            HostChange::Freed => {
                self.movable.select(host, false);
                self.aside.freed(host)
            }
            HostChange::Filled => {
                self.movable.select(host, true);
                self.aside.filled(host)
            }
        };
        for owner in due {
            self.bring_next(Some(owner));
        }
    }

    /// Returns the first agent that was set aside to its line, in each share `agent` belongs to.
    pub(super) fn bring_back(&mut self, agent: &AgentId) {
        if self.aside.is_empty() {
            return;
        }
        for owner in agent.lineage() {
            let owner = self.aside.owner(owner);
            self.bring_next(owner);
        }
    }

    /// Returns the first agent at a free host that waits for a share to its line.
    pub(super) fn bring_next(&mut self, owner: Option<AgentId>) {
        if let Some((_, _, agent)) = owner.and_then(|owner| self.aside.bring(&owner)) {
            self.enter_line(&agent);
        }
    }
}
