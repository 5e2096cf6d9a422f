//! What the supervisor of the simulation does with the table and the queue.

use super::agents::AgentPhase;
use super::run::{Simulation, SimulationEvent};
use super::world::{Millis, SimulatedTurn};
use super::{HostChanges, PlacedAgent};
use crate::admission::{AdmissionLimits, AdmittedTurn, PermitRequest};
use crate::budget::tests::UNLIMITED;
use crate::id::StateName;
use crate::placement::{Home, balance};
use crate::time::Timestamp;

/// The time in which a record becomes durable.
const RECORD_DELAY: Millis = 5;

/// The time between two looks at the registry.
const POLL: Millis = 5_000;

/// The silence after which a host is declared lost.
const LOST_AFTER: Millis = 90_000;

impl Simulation {
    pub(super) fn poll(&mut self) {
        let changes = self.table.observe_all(self.world.sightings(self.now));
        self.hosts_changed(changes);
        for host in self.world.silent_for(LOST_AFTER, self.now) {
            self.world.lose(host);
            let changes = self.table.lose(&self.world.hosts[host].name);
            self.hosts_changed(changes);
        }
        self.at(self.now + POLL, SimulationEvent::Poll);
    }

    fn hosts_changed(&mut self, changes: HostChanges) {
        for host in changes.permits {
            self.queue.set_permits(Some(&host), self.table.permits(&host));
        }
        let lost: Vec<usize> =
            changes.lost.iter().map(|lost| self.by_id[&lost.placed.agent]).collect();
        for agent in &lost {
            self.losses += 1;
            self.leave_queue(*agent);
        }
        for agent in lost {
            self.place(agent);
        }
        for host in changes.left {
            for id in self.table.movable_at(&host) {
                let agent = self.by_id[&id];
                let home = self.table.place(self.agents[agent].requirement.as_ref(), None);
                if let Ok(home) = home {
                    self.move_to(agent, home);
                }
            }
        }
    }

    /// Gives an agent a host, or notes that there is none.
    pub(super) fn place(&mut self, index: usize) {
        let agent = &self.agents[index];
        match self.table.place(agent.requirement.as_ref(), agent.group.as_ref()) {
            Ok(home) => {
                self.assign(index, home);
                let has_session = self.agents[index].last_turn.is_some();
                if has_session {
                    self.ask_later(index);
                } else {
                    self.ask(index);
                }
            }
            Err(_) => self.unplaced.entry(agent.requirement.clone()).or_default().push(index),
        }
    }

    fn assign(&mut self, index: usize, home: Home) {
        let agent = &mut self.agents[index];
        let host = home.host.clone().expect("not here");
        let placed = PlacedAgent { agent: agent.id.clone(), host, epoch: home.epoch };
        assert!(self.table.assign(placed, agent.group.clone()), "{} is fenced", agent.id);
        agent.home = Some(home);
        agent.has_started = false;
    }

    fn place_waiting(&mut self) {
        for requirement in self.unplaced.keys().cloned().collect::<Vec<_>>() {
            if self.table.place(requirement.as_ref(), None).is_ok() {
                let agents = self.unplaced.remove(&requirement).unwrap_or_default();
                for agent in agents {
                    self.place(agent);
                }
            }
        }
    }

    fn move_to(&mut self, index: usize, home: Home) {
        if self.agents[index].phase == AgentPhase::Waiting {
            self.lines.leave(&self.agents[index]);
            self.queue.suspend(&self.agents[index].id);
        } else {
            self.leave_queue(index);
        }
        self.moves += 1;
        self.assign(index, home);
        self.ask_later(index);
    }

    /// Lets an agent ask once the record before is durable.
    fn ask_later(&mut self, index: usize) {
        let agent = &mut self.agents[index];
        agent.phase = AgentPhase::Returning;
        agent.attempt += 1;
        let attempt = agent.attempt;
        let host = self.world.hosts[agent.host()].name.clone();
        self.activity.entry(host).or_default().returning += 1;
        self.at(self.now + RECORD_DELAY, SimulationEvent::Ask(index, attempt));
    }

    fn has_returned(&mut self, index: usize) {
        let host = &self.world.hosts[self.agents[index].host()].name;
        if let Some(activity) = self.activity.get_mut(host) {
            activity.returning -= 1;
        }
    }

    pub(super) fn ask(&mut self, index: usize) {
        if self.agents[index].phase == AgentPhase::Returning {
            self.has_returned(index);
        }
        let agent = &mut self.agents[index];
        agent.phase = AgentPhase::Waiting;
        if agent.ticket == 0 {
            self.last_ticket += 1;
            agent.ticket = self.last_ticket;
        }
        let mobility = self.table.mobility(&agent.id, agent.requirement.as_ref());
        let request = PermitRequest {
            agent: agent.id.clone(),
            state: StateName::parse("W.md").expect("a state"),
            last_turn: agent.last_turn,
            host: agent.home.clone().and_then(|home| home.host),
            mobility,
        };
        self.lines.enter(agent);
        self.queue.ask(request, Timestamp(self.now));
    }

    /// Takes an agent out of the queue, whatever it does there.
    fn leave_queue(&mut self, index: usize) {
        match self.agents[index].phase {
            AgentPhase::Returning => self.has_returned(index),
            AgentPhase::Waiting => {
                self.lines.leave(&self.agents[index]);
            }
            AgentPhase::Running | AgentPhase::Unplaced | AgentPhase::Done => {}
        }
        let agent = &mut self.agents[index];
        agent.attempt += 1;
        agent.ticket = 0;
        agent.phase = AgentPhase::Unplaced;
        self.queue.release(&agent.id);
    }

    /// Gives agents permits and homes until nothing more can be done now.
    pub(super) fn settle(&mut self) {
        self.place_waiting();
        loop {
            self.admit();
            let moves = balance(&self.queue, &self.table, &self.activity, self.spare());
            if moves.is_empty() {
                break;
            }
            for change in moves {
                self.move_to(self.by_id[&change.agent], change.to);
            }
        }
    }

    pub(super) fn spare(&self) -> usize {
        self.cap.saturating_sub(self.queue.running())
    }

    fn admit(&mut self) {
        let admitted = self.queue.admit(&AdmissionLimits {
            permits: self.cap,
            budget: UNLIMITED,
            warm: &[],
            returning: 0,
            hosts: &self.activity,
            now: Timestamp(self.now),
        });
        assert!(self.queue.running() <= self.cap);
        for AdmittedTurn { agent, .. } in admitted {
            self.begin_turn(self.by_id[&agent]);
        }
    }

    fn begin_turn(&mut self, index: usize) {
        let agent = &mut self.agents[index];
        assert_eq!(agent.phase, AgentPhase::Waiting, "{} gets one permit", agent.id);
        let home = agent.home.clone().expect("it has a home");
        assert_eq!(self.table.home(&agent.id).as_ref(), Some(&home));
        assert!(self.table.is_usable(&home), "{} begins at {home:?}", agent.id);
        let permits = self.table.permits(home.host.as_ref().expect("not here"));
        assert!(self.queue.running_at(home.host.as_ref()) <= permits);
        assert!(self.lines.leave(agent), "{} goes before others of its line", agent.id);
        self.table.begin(&agent.id);
        self.longest_wait = self.longest_wait.max(self.now - agent.due_since);
        (agent.phase, agent.has_started, agent.ticket) = (AgentPhase::Running, true, 0);
        agent.attempt += 1;
        let (attempt, host, epoch) = (agent.attempt, agent.host(), home.epoch);
        let duration = self.random.between(self.duration.0, self.duration.1);
        let turn = SimulatedTurn { agent: index, attempt, host, epoch, duration };
        if self.world.ask(turn) {
            self.at(self.now + duration, SimulationEvent::TurnEnds(turn));
        }
    }

    pub(super) fn turn_done(&mut self, turn: SimulatedTurn) {
        let agent = &mut self.agents[turn.agent];
        if agent.attempt != turn.attempt {
            return;
        }
        assert_eq!(agent.phase, AgentPhase::Running);
        self.turns_done += 1;
        agent.turns_done += 1;
        agent.last_turn = Some(Timestamp(self.now));
        agent.due_since = self.now;
        self.queue.release(&agent.id);
        let children = std::mem::take(&mut agent.children);
        let (id, requirement, group) =
            (agent.id.clone(), agent.requirement.clone(), agent.group.clone());
        for number in 1..=children {
            self.add(id.child(number), requirement.clone(), group.clone(), 0);
        }
        let agent = &mut self.agents[turn.agent];
        if agent.turns_done < agent.turns {
            return self.ask_later(turn.agent);
        }
        agent.phase = AgentPhase::Done;
        self.live -= 1;
        self.table.end(&id);
    }
}
