//! The run of the simulation: its events in the order of their times, and the births of agents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::agents::{AgentPhase, ExpectedLines, SimulatedAgent};
use super::random::SeededRandom;
use super::world::{Millis, SimulatedTurn, SimulatedWorld};
use super::{HostTable, PlacementGroup, WIRE};
use crate::admission::{AdmissionQueue, HostActivity};
use crate::host::{HostLabel, HostName};
use crate::id::AgentId;

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimulationEvent {
    Poll,
    /// So many agents are born.
    Wave(usize),
    /// An agent asks for a permit, if nothing has come in between.
    Ask(usize, u32),
    TurnEnds(SimulatedTurn),
    CutOff(usize),
    BringBack(usize),
    Replace(usize),
    Drain(usize, bool),
}

/// The longest time of a simulation.
const LONGEST: Millis = 10 * 60 * 60 * 1000;

/// The simulation.
pub(super) struct Simulation {
    pub(super) now: Millis,
    pub(super) random: SeededRandom,
    pub(super) world: SimulatedWorld,
    pub(super) table: HostTable,
    pub(super) queue: AdmissionQueue,
    pub(super) agents: Vec<SimulatedAgent>,
    pub(super) activity: BTreeMap<HostName, HostActivity>,
    /// The permits of the account.
    pub(super) cap: usize,
    /// The range of the durations of turns.
    pub(super) duration: (Millis, Millis),
    /// The largest number of turns of an agent.
    pub(super) most_turns: u64,
    /// The labels that agents ask for.
    pub(super) labels: Vec<&'static str>,
    /// One in so many agents works in a directory of its own, and forks into it.
    pub(super) directories: u64,
    pub(super) turns_done: u64,
    pub(super) longest_wait: Millis,
    pub(super) losses: u64,
    pub(super) moves: u64,
    /// One in so many steps is checked in full.
    pub(super) checked: u64,
    pub(super) lines: ExpectedLines,
    pub(super) by_id: HashMap<AgentId, usize>,
    pub(super) unplaced: BTreeMap<Option<HostLabel>, Vec<usize>>,
    events: BinaryHeap<Reverse<(Millis, u64, SimulationEvent)>>,
    last_event: u64,
    pub(super) last_ticket: u64,
    pub(super) live: usize,
    waves: usize,
}

impl Simulation {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: 0,
            random: SeededRandom(seed),
            world: SimulatedWorld::default(),
            table: HostTable::new(WIRE),
            queue: AdmissionQueue::default(),
            agents: Vec::new(),
            activity: BTreeMap::new(),
            cap: usize::MAX,
            duration: (20_000, 20_000),
            most_turns: 1,
            labels: Vec::new(),
            directories: u64::MAX,
            turns_done: 0,
            longest_wait: 0,
            losses: 0,
            moves: 0,
            checked: 1,
            lines: ExpectedLines::default(),
            by_id: HashMap::new(),
            unplaced: BTreeMap::new(),
            events: BinaryHeap::new(),
            last_event: 0,
            last_ticket: 0,
            live: 0,
            waves: 0,
        }
    }

    pub(super) fn at(&mut self, time: Millis, event: SimulationEvent) {
        self.last_event += 1;
        self.waves += usize::from(matches!(event, SimulationEvent::Wave(_)));
        self.events.push(Reverse((time, self.last_event, event)));
    }

    /// Runs until all agents have ended. Returns the time.
    pub(super) fn run(&mut self) -> Millis {
        self.at(0, SimulationEvent::Poll);
        let mut steps = 0;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            self.now = time;
            assert!(time < LONGEST, "agents wait for ever");
            self.happen(event);
            self.settle();
            steps += 1;
            if steps % self.checked == 0 {
                self.check_work_is_conserved();
            }
            if self.live == 0 && self.waves == 0 {
                break;
            }
        }
        assert_eq!((self.live, self.queue.waiting(), self.queue.running()), (0, 0, 0));
        let due: u64 = self.agents.iter().map(|agent| u64::from(agent.turns)).sum();
        assert_eq!(self.turns_done, due, "each turn that is due is done once");
        self.now
    }

    fn happen(&mut self, event: SimulationEvent) {
        match event {
            SimulationEvent::Poll => self.poll(),
            SimulationEvent::Wave(agents) => {
                self.waves -= 1;
                (0..agents).for_each(|_| self.bear());
            }
            SimulationEvent::Ask(agent, attempt) => {
                if self.agents[agent].attempt == attempt {
                    self.ask(agent);
                }
            }
            SimulationEvent::TurnEnds(turn) => {
                if self.world.end(turn) {
                    self.turn_done(turn);
                }
            }
            SimulationEvent::CutOff(host) => self.world.cut_off(host, self.now),
            SimulationEvent::BringBack(host) => {
                let (ended, started) = self.world.bring_back(host);
                for turn in ended {
                    self.turn_done(turn);
                }
                for turn in started {
                    self.at(self.now + turn.duration, SimulationEvent::TurnEnds(turn));
                }
            }
            SimulationEvent::Replace(host) => self.world.replace(host),
            SimulationEvent::Drain(host, yes) => self.world.drain(host, yes),
        }
    }

    fn bear(&mut self) {
        let number = u32::try_from(self.agents.len()).expect("few agents");
        let id = AgentId::main().child(number % 7 + 1).child(number + 1);
        let has_directory = self.random.once_in(self.directories);
        let group = has_directory.then(|| PlacementGroup::Worktree(id.clone()));
        let children = if has_directory { self.random.between(0, 2) } else { 0 };
        let asks = !self.labels.is_empty() && self.random.once_in(4);
        let label = asks.then(|| self.labels[self.random.index(self.labels.len())]);
        let requirement = label.map(super::label);
        self.add(id, requirement, group, u32::try_from(children).expect("few"));
    }

    pub(super) fn add(
        &mut self,
        id: AgentId,
        requirement: Option<HostLabel>,
        group: Option<PlacementGroup>,
        children: u32,
    ) {
        let turns = self.random.between(1, self.most_turns);
        let index = self.agents.len();
        self.by_id.insert(id.clone(), index);
        self.agents.push(SimulatedAgent {
            id,
            requirement,
            group,
            phase: AgentPhase::Unplaced,
            home: None,
            turns: u32::try_from(turns).expect("few turns"),
            turns_done: 0,
            children,
            attempt: 0,
            has_started: false,
            last_turn: None,
            ticket: 0,
            due_since: self.now,
        });
        self.live += 1;
        self.place(index);
    }
}
