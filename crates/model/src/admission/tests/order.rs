//! Tests of the order: what is begun is finished first, and no line waits forever.

use super::*;

const MINUTE: u64 = 60_000;

fn started(admission: &mut AdmissionQueue, agent: AgentId, last_turn: u64) {
    admission.ask(request(agent, Some(last_turn)), NOW);
}

/// Admits the agents one after the other and returns their order.
fn order_of(admission: &mut AdmissionQueue, limits: &AdmissionLimits<'_>) -> Vec<String> {
    let mut order = Vec::new();
    while let [agent] = admit_within(admission, limits).as_slice() {
        admission.release(agent);
        order.push(agent.to_string());
    }
    order
}

#[test]
fn started_agents_go_before_new_agents_by_earliest_last_turn() {
    let mut admission = AdmissionQueue::default();
    (1..=2).for_each(|number| ask(&mut admission, number));
    for (number, last_turn) in [(3, 70), (4, 50), (5, 60)] {
        started(&mut admission, child(number), last_turn);
    }
    let order = order_of(&mut admission, &limits(1));
    assert_eq!(order, ["main.4", "main.5", "main.3", "main.1", "main.2"]);
}

#[test]
fn warm_agents_go_before_cold_agents() {
    let mut admission = AdmissionQueue::default();
    ask(&mut admission, 1);
    for (number, last_turn) in [(2, 50), (3, 60), (4, 70)] {
        started(&mut admission, child(number), last_turn);
    }
    // The idle process of an agent that does not wait plays no part.
    let warm = [child(9), child(4), child(3)];
    let order = order_of(&mut admission, &AdmissionLimits { warm: &warm, ..limits(1) });
    assert_eq!(order, ["main.3", "main.4", "main.2", "main.1"]);
}

#[test]
fn families_alternate_among_started_and_warm_agents() {
    let mut admission = AdmissionQueue::default();
    let (many, few) = (child(1), child(2));
    for number in 1..=3 {
        started(&mut admission, many.child(number), number.into());
    }
    started(&mut admission, few.child(1), 80);
    started(&mut admission, few.child(2), 90);
    let warm = [many.child(1), many.child(2), few.child(1)];
    let order = order_of(&mut admission, &AdmissionLimits { warm: &warm, ..limits(1) });
    assert_eq!(order, ["main.1.1", "main.2.1", "main.1.2", "main.2.2", "main.1.3"]);
}

#[test]
fn breadth_serves_agents_as_they_asked() {
    let mut admission = AdmissionQueue::new(TurnOrder::Breadth, PATIENCE_MS);
    ask(&mut admission, 1);
    started(&mut admission, child(2), 1);
    ask(&mut admission, 3);
    let warm = [child(2)];
    let returning = AdmissionLimits { warm: &warm, returning: 1, ..limits(1) };
    assert_eq!(order_of(&mut admission, &returning), ["main.1", "main.2", "main.3"]);
}

#[test]
fn permits_of_returning_agents_are_not_given_to_new_agents() {
    let mut admission = AdmissionQueue::default();
    (1..=4).for_each(|number| ask(&mut admission, number));
    let returning = AdmissionLimits { returning: 1, ..limits(3) };
    assert_eq!(admit_within(&mut admission, &returning), [child(1), child(2)]);
    started(&mut admission, child(9), 1);
    assert_eq!(admit_within(&mut admission, &returning), [child(9)]);
    assert!(admit_within(&mut admission, &limits(3)).is_empty(), "all permits are held");
}

#[test]
fn overdue_line_goes_before_started_agents_once_per_patience() {
    let mut admission = AdmissionQueue::new(TurnOrder::Depth, 10 * MINUTE);
    (1..=3).for_each(|number| ask(&mut admission, number));
    let mut order = Vec::new();
    for minute in 0..25 {
        let now = NOW.plus(minute * MINUTE);
        admission.ask(request(child(8), Some(now.0)), now);
        let admitted = admit_within(&mut admission, &AdmissionLimits { now, ..limits(1) });
        for agent in &admitted {
            admission.release(agent);
        }
        order.extend(
            admitted.into_iter().filter(|agent| *agent != child(8)).map(|agent| (minute, agent)),
        );
    }
    assert_eq!(order, [(10, child(1)), (20, child(2))]);
}

#[test]
fn head_that_leaves_by_itself_restarts_the_patience_of_its_line() {
    let mut admission = AdmissionQueue::new(TurnOrder::Depth, 10 * MINUTE);
    (1..=2).for_each(|number| ask(&mut admission, number));
    let later = NOW.plus(9 * MINUTE);
    admission.ask(request(child(8), Some(1)), later);
    admission.release(&child(1));
    let now = NOW.plus(10 * MINUTE);
    let admitted = admit_within(&mut admission, &AdmissionLimits { now, ..limits(1) });
    assert_eq!(admitted, [child(8)], "the second agent has been the head for a minute only");
}

#[test]
fn overdue_line_stays_overdue_when_the_clock_is_set_back() {
    let mut admission = AdmissionQueue::new(TurnOrder::Depth, 10 * MINUTE);
    ask(&mut admission, 1);
    let later = AdmissionLimits { now: NOW.plus(10 * MINUTE), ..limits(0) };
    assert!(admit_within(&mut admission, &later).is_empty());
    started(&mut admission, child(8), 1);
    assert_eq!(admit_within(&mut admission, &limits(1)), [child(1)]);
}

/// Runs workers of `states` turns each, a turn a minute, and returns how many processes they took: a worker whose last
/// turn was among the last `permits` processes to become idle is served by its own.
fn processes_of(workers: u32, states: u32, permits: usize, order: TurnOrder) -> usize {
    let mut admission = AdmissionQueue::new(order, 10 * MINUTE);
    (1..=workers).for_each(|number| ask(&mut admission, number));
    let mut turns: BTreeMap<AgentId, u32> = BTreeMap::new();
    let (mut idle, mut processes) = (Vec::<AgentId>::new(), 0);
    for minute in 0.. {
        let now = NOW.plus(minute * MINUTE);
        let admitted =
            admit_within(&mut admission, &AdmissionLimits { now, warm: &idle, ..limits(permits) });
        if admitted.is_empty() {
            break;
        }
        for agent in &admitted {
            let place = idle.iter().position(|other| other == agent);
            processes += usize::from(place.is_none());
            let _ = place.map(|place| idle.remove(place));
        }
        idle.truncate(permits.saturating_sub(admitted.len()));
        for agent in admitted {
            admission.release(&agent);
            let had = turns.entry(agent.clone()).or_default();
            *had += 1;
            if *had < states {
                admission.ask(request(agent.clone(), Some(now.0)), now);
                idle.push(agent);
            }
        }
    }
    assert_eq!(turns.values().sum::<u32>(), workers * states);
    processes
}

#[test]
fn each_worker_of_a_fan_out_keeps_its_process_for_all_its_turns() {
    assert_eq!(processes_of(24, 2, 3, TurnOrder::Depth), 24);
    assert_eq!(processes_of(24, 5, 3, TurnOrder::Depth), 24);
    assert_eq!(processes_of(24, 2, 3, TurnOrder::Breadth), 48);
}
