//! Properties of the queue, whatever agents do.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A change of the queue.
#[derive(Debug, Clone)]
enum QueueStep {
    /// An agent asks; its last turn ended at that time.
    Ask(u32, u32, Option<u64>),
    /// The holder at this place (modulo their number) has ended its turn.
    Release(usize),
    /// The agent at this place of those that wait leaves.
    Leave(usize),
    /// Time passes.
    Wait(u64),
    /// Permits are given; so many agents are warm.
    Admit(usize),
}

fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
    let step = prop_oneof![
        4 => (1..4u32, 1..9u32, prop::option::of(1..50u64))
            .prop_map(|(family, number, last)| QueueStep::Ask(family, number, last)),
        3 => any::<usize>().prop_map(QueueStep::Release),
        1 => any::<usize>().prop_map(QueueStep::Leave),
        1 => (0..400_000u64).prop_map(QueueStep::Wait),
        4 => (0..4usize).prop_map(QueueStep::Admit),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #[test]
    fn permits_are_never_exceeded_nor_left_unused(steps in steps(), permits in 1..5usize) {
        let mut admission = AdmissionQueue::default();
        let mut now = NOW;
        let (mut holders, mut waiting) = (Vec::new(), BTreeSet::new());
        for step in steps {
            match step {
                QueueStep::Ask(family, number, last) => {
                    let agent = child(family).child(number);
                    if !holders.contains(&agent) {
                        waiting.insert(agent.clone());
                    }
                    admission.ask(request(agent, last), now);
                }
                QueueStep::Release(place) if !holders.is_empty() => {
                    let agent: AgentId = holders.remove(place % holders.len());
                    admission.release(&agent);
                }
                QueueStep::Leave(place) if !waiting.is_empty() => {
                    let agent = waiting.iter().nth(place % waiting.len()).cloned();
                    let agent = agent.expect("it waits");
                    waiting.remove(&agent);
                    admission.release(&agent);
                }
                QueueStep::Wait(time) => now = now.plus(time),
                QueueStep::Admit(warm) => {
                    let warm: Vec<AgentId> = waiting.iter().take(warm).cloned().collect();
                    let limits = AdmissionLimits { now, warm: &warm, ..limits(permits) };
                    for agent in admit_within(&mut admission, &limits) {
                        prop_assert!(waiting.remove(&agent), "{agent} did not wait");
                        holders.push(agent);
                    }
                    prop_assert!(holders.len() <= permits);
                    prop_assert!(holders.len() == permits || waiting.is_empty());
                }
                QueueStep::Release(_) | QueueStep::Leave(_) => {}
            }
            prop_assert_eq!(admission.running(), holders.len());
            prop_assert_eq!(admission.waiting(), waiting.len());
        }
    }

    #[test]
    fn no_agent_waits_longer_than_its_line_has_patience(
        loops in 1..6u32,
        new in 1..6u32,
        permits in 1..4usize,
        turn in 1..20u64,
    ) {
        const MINUTE: u64 = 60_000;
        let patience = 10 * MINUTE;
        let mut admission = AdmissionQueue::new(TurnOrder::Depth, patience);
        let mut warm: Vec<AgentId> = Vec::new();
        for number in 1..=loops {
            admission.ask(request(child(1).child(number), Some(1)), NOW);
        }
        for number in 1..=new {
            admission.ask(request(child(2).child(number), None), NOW);
        }
        let mut served = BTreeSet::new();
        let rounds = u64::from(new + 1) * (patience / (turn * MINUTE) + 2);
        for round in 0..rounds {
            let now = NOW.plus(round * turn * MINUTE);
            let limits = AdmissionLimits { now, warm: &warm, ..limits(permits) };
            let admitted = admit_within(&mut admission, &limits);
            for agent in &admitted {
                admission.release(agent);
                if agent.is_within(&child(2)) {
                    served.insert(agent.clone());
                } else {
                    admission.ask(request(agent.clone(), Some(now.0)), now);
                }
            }
            warm = admitted;
        }
        prop_assert_eq!(served.len(), usize::try_from(new).expect("a few"));
    }
}
