//! A simulation of many hosts in virtual time: what a supervisor does with the table and the queue while hosts fail.
//!
//! Hosts are cut off, drained, declared lost and replaced. It checks at each step:
//! - No agent runs at two hosts at once, and none begins at a host in an epoch that is over.
//! - No host runs more turns than it has slots, and the account no more than it allows.
//! - The agents of a line get their permits in its order.
//! - No host idles while an agent waits that could go there.
//!
//! At the end each turn was done once, and nobody has waited too long.

mod agents;
mod checks;
mod random;
mod run;
mod supervising;
mod world;

use self::run::{Simulation, SimulationEvent};
use self::world::Millis;
use super::*;

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;

/// The time until which hosts fail.
const FAULTS_END: Millis = 10 * MINUTE;

/// Adds hosts with up to `slots` slots, every fifth with the label `gpu` and every seventh with `big`.
fn add_hosts(simulation: &mut Simulation, hosts: usize, slots: u64) {
    simulation.labels = vec!["gpu", "big"];
    for index in 0..hosts {
        let slots = simulation.random.between(1, slots);
        let labels = [("gpu", 5), ("big", 7)].into_iter().filter(|(_, every)| index % every == 0);
        let labels: Vec<&'static str> = labels.map(|(label, _)| label).collect();
        simulation.world.add(u32::try_from(slots).expect("few slots"), &labels);
    }
}

/// Plans that so many hosts are cut off, briefly or until they are lost, drained, and replaced.
fn add_faults(simulation: &mut Simulation, faults: usize) {
    let hosts = simulation.world.hosts.len();
    for _ in 0..faults {
        let host = simulation.random.index(hosts);
        let begin = simulation.random.between(0, FAULTS_END);
        let end = begin + simulation.random.between(SECOND, 4 * MINUTE);
        match simulation.random.between(1, 4) {
            1 | 2 => {
                simulation.at(begin, SimulationEvent::CutOff(host));
                simulation.at(end, SimulationEvent::BringBack(host));
            }
            3 => {
                simulation.at(begin, SimulationEvent::Drain(host, true));
                simulation.at(end, SimulationEvent::Drain(host, false));
            }
            _ => simulation.at(begin, SimulationEvent::Replace(host)),
        }
    }
}

fn add_waves(simulation: &mut Simulation, agents: usize, waves: usize) {
    for wave in 0..waves {
        let time = simulation.random.between(0, FAULTS_END);
        simulation.at(if wave == 0 { 0 } else { time }, SimulationEvent::Wave(agents / waves));
    }
}

#[test]
fn equal_turns_take_little_longer_than_ideal() {
    let mut simulation = Simulation::new(1);
    (0..10).for_each(|_| simulation.world.add(16, &[]));
    simulation.at(0, SimulationEvent::Wave(10_000));
    simulation.checked = 500;
    let time = simulation.run();
    let ideal = 10_000 * 20 * SECOND / 160;
    assert!(ideal * 100 >= time * 95, "{time} ms, ideally {ideal} ms");
}

#[test]
fn uneven_turns_on_uneven_hosts_keep_all_hosts_busy() {
    let mut simulation = Simulation::new(2);
    (1..=40).for_each(|slots| simulation.world.add(slots % 10 + 1, &[]));
    simulation.at(0, SimulationEvent::Wave(4_000));
    simulation.duration = (SECOND, 60 * SECOND);
    simulation.checked = 100;
    let time = simulation.run();
    let slots: u64 = (1..=40u64).map(|slots| slots % 10 + 1).sum();
    let ideal = 4_000 * 61 * SECOND / 2 / slots;
    assert!(ideal * 100 >= time * 90, "{time} ms, ideally {ideal} ms");
}

#[test]
fn few_hosts_that_fail_often_do_all_turns_once() {
    for seed in 1..=12 {
        let mut simulation = Simulation::new(seed);
        add_hosts(&mut simulation, 8, 6);
        add_faults(&mut simulation, 40);
        add_waves(&mut simulation, 300, 4);
        simulation.checked = 4;
        simulation.duration = (SECOND, 40 * SECOND);
        (simulation.most_turns, simulation.directories) = (3, 5);
        let time = simulation.run();
        let longest = FAULTS_END + 5 * MINUTE + simulation.ideal_time();
        assert!(time < longest, "seed {seed}: {time} of {longest} ms");
        assert!(simulation.losses > 0 && simulation.moves > 0, "seed {seed} is too easy");
    }
}

#[test]
fn account_with_few_permits_is_shared_by_all_hosts() {
    for seed in 1..=4 {
        let mut simulation = Simulation::new(seed);
        add_hosts(&mut simulation, 20, 4);
        add_faults(&mut simulation, 20);
        add_waves(&mut simulation, 300, 3);
        (simulation.most_turns, simulation.directories, simulation.cap) = (3, 5, 10);
        let time = simulation.run();
        let longest = FAULTS_END + 5 * MINUTE + simulation.ideal_time();
        assert!(time < longest, "seed {seed}: {time} of {longest} ms");
    }
}

#[test]
fn thousand_hosts_do_ten_thousand_agents() {
    for seed in 1..=2 {
        let mut simulation = Simulation::new(seed);
        add_hosts(&mut simulation, 1_000, 4);
        add_faults(&mut simulation, 400);
        add_waves(&mut simulation, 10_000, 5);
        simulation.duration = (5 * SECOND, 60 * SECOND);
        (simulation.most_turns, simulation.directories) = (2, 10);
        simulation.checked = 500;
        let time = simulation.run();
        assert!(time < FAULTS_END + 10 * MINUTE, "seed {seed}: {time}");
        assert!(simulation.longest_wait < 8 * MINUTE, "{}", simulation.longest_wait);
    }
}
