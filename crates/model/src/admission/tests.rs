//! Tests of the order of admission, with a few agents and little money.

use std::collections::BTreeMap;

mod hosts;
mod order;
mod properties;

use super::*;
use crate::budget::BudgetShare;
use crate::budget::tests::UNLIMITED;
use crate::money::Usd;

fn child(number: u32) -> AgentId {
    AgentId::main().child(number)
}

const NOW: Timestamp = Timestamp(1_000_000);

/// The limits of an admission without limits of money, at `NOW`.
fn limits(permits: usize) -> AdmissionLimits<'static> {
    let (warm, hosts) = (&[], &NO_OTHER_HOSTS);
    AdmissionLimits { permits, budget: UNLIMITED, warm, returning: 0, hosts, now: NOW }
}

fn admit(admission: &mut AdmissionQueue, permits: usize, budget: &Budget<'_>) -> Vec<AgentId> {
    admit_within(admission, &AdmissionLimits { budget: *budget, ..limits(permits) })
}

fn admit_within(admission: &mut AdmissionQueue, limits: &AdmissionLimits<'_>) -> Vec<AgentId> {
    admission.admit(limits).into_iter().map(|permit| permit.agent).collect()
}

fn request(agent: AgentId, last_turn: Option<u64>) -> PermitRequest {
    let state = StateName::parse("W.md").expect("a state");
    let mobility = AgentMobility::Fixed;
    PermitRequest { agent, state, last_turn: last_turn.map(Timestamp), host: None, mobility }
}

fn ask(admission: &mut AdmissionQueue, number: u32) {
    ask_as(admission, child(number));
}

/// Asks for a new agent.
fn ask_as(admission: &mut AdmissionQueue, agent: AgentId) {
    admission.ask(request(agent, None), NOW);
}

#[test]
fn turn_that_waits_for_person_reserves_no_money() {
    let dollar = |share| Budget { limit: Some(Usd::from_dollars(1.0)), shares: share, ..UNLIMITED };
    let no_shares = BTreeMap::new();
    let share = BudgetShare { limit_usd: Usd::from_dollars(1.0), spent_usd: Usd::ZERO, live: 3 };
    let shares = BTreeMap::from([(child(1).child(1), share.clone()), (AgentId::main(), share)]);
    for budget in [dollar(&no_shares), dollar(&shares)] {
        let mut admission = AdmissionQueue::default();
        (1..=3).for_each(|number| ask(&mut admission, number));
        assert_eq!(admit(&mut admission, 9, &budget), [child(1)]);
        admission.set_waits_for_person(&child(1), true);
        assert_eq!(admit(&mut admission, 9, &budget), [child(2)]);
        assert!(admit(&mut admission, 9, &budget).is_empty());
        admission.set_waits_for_person(&child(1), false);
        admission.set_waits_for_person(&child(2), true);
        assert!(admit(&mut admission, 9, &budget).is_empty());
        admission.release(&child(1));
        assert_eq!(admit(&mut admission, 9, &budget), [child(3)]);
        assert_eq!(admission.running(), 2);
    }
}

#[test]
fn agents_are_admitted_first_come_first_served_within_permits() {
    let mut admission = AdmissionQueue::default();
    (1..=4).for_each(|number| ask(&mut admission, number));
    assert_eq!(admit(&mut admission, 2, &UNLIMITED), [child(1), child(2)]);
    assert!(admit(&mut admission, 2, &UNLIMITED).is_empty());
    admission.release(&child(2));
    assert_eq!(admit(&mut admission, 2, &UNLIMITED), [child(3)]);
    assert_eq!((admission.running(), admission.waiting()), (2, 1));
}

#[test]
fn repeated_ask_is_queued_once() {
    let mut admission = AdmissionQueue::default();
    ask(&mut admission, 1);
    ask(&mut admission, 1);
    assert_eq!(admit(&mut admission, 1, &UNLIMITED), [child(1)]);
    ask(&mut admission, 1);
    assert_eq!(admission.waiting(), 0);
}

#[test]
fn returning_agent_joins_end_of_queue() {
    let mut admission = AdmissionQueue::default();
    ask(&mut admission, 1);
    ask(&mut admission, 2);
    admission.release(&child(1));
    ask(&mut admission, 1);
    assert_eq!(admit(&mut admission, 1, &UNLIMITED), [child(2)]);
    admission.release(&child(2));
    assert_eq!(admit(&mut admission, 1, &UNLIMITED), [child(1)]);
}

#[test]
fn families_are_admitted_round_robin() {
    let mut admission = AdmissionQueue::default();
    let many = child(1);
    let few = child(2);
    (1..=4).for_each(|number| ask_as(&mut admission, many.child(number)));
    (1..=2).for_each(|number| ask_as(&mut admission, few.child(number)));
    let mut order = Vec::new();
    while let [agent] = admit(&mut admission, 1, &UNLIMITED).as_slice() {
        admission.release(agent);
        order.push(agent.to_string());
    }
    assert_eq!(order, ["main.1.1", "main.2.1", "main.1.2", "main.2.2", "main.1.3", "main.1.4"]);
}

#[test]
fn reserved_turn_is_admitted_despite_permits_and_budget() {
    let known = BTreeMap::new();
    let spent = Usd::from_dollars(1.0);
    let empty = Budget { spent, limit: Some(spent), max_turn_costs: &known, ..UNLIMITED };
    let mut admission = AdmissionQueue::default();
    for number in [1, 2] {
        admission.reserve(request(child(number), None));
    }
    ask(&mut admission, 3);
    assert!(admit(&mut admission, 1, &UNLIMITED).is_empty(), "the permits are taken already");
    admission.close();
    assert!(admission.is_reserved(&child(2)));
    ask(&mut admission, 2);
    ask(&mut admission, 1);
    assert!(!admission.is_reserved(&child(2)) && !admission.is_starved(&empty));
    assert_eq!(admit(&mut admission, 1, &empty), [child(2), child(1)]);
}

#[test]
fn closed_queue_admits_no_agent() {
    let mut admission = AdmissionQueue::default();
    ask(&mut admission, 1);
    admission.close();
    assert!(admit(&mut admission, 1, &UNLIMITED).is_empty());
}

#[test]
fn spent_budget_blocks_admission() {
    let spent = Usd::from_dollars(1.0);
    let budget = Budget { spent, limit: Some(spent), ..UNLIMITED };
    let mut admission = AdmissionQueue::default();
    assert!(!admission.is_starved(&budget));
    ask(&mut admission, 1);
    assert!(admit(&mut admission, 4, &budget).is_empty());
    assert!(admission.is_starved(&budget));
}

#[test]
fn agent_waiting_for_share_does_not_block_others() {
    let usd = Usd::from_dollars;
    let worker = StateName::parse("W.md").expect("a state");
    let known = BTreeMap::from([(worker.clone(), usd(0.2))]);
    let mut shares = BTreeMap::from([(
        AgentId::main().child(1),
        BudgetShare { limit_usd: usd(0.3), spent_usd: Usd::ZERO, live: 1 },
    )]);
    let mut admission = AdmissionQueue::default();
    let poor = child(1);
    (1..=2).for_each(|number| ask_as(&mut admission, poor.child(number)));
    ask(&mut admission, 2);
    assert_eq!(
        admit(&mut admission, 3, &Budget { shares: &shares, max_turn_costs: &known, ..UNLIMITED }),
        [poor.child(1), child(2)]
    );
    assert_eq!((admission.waiting(), admission.is_idle()), (1, false));
    admission.release(&poor.child(1));
    for share in shares.values_mut() {
        share.spent_usd = usd(0.3);
    }
    assert!(
        admit(&mut admission, 3, &Budget { shares: &shares, max_turn_costs: &known, ..UNLIMITED })
            .is_empty()
    );
    assert_eq!(admission.rejected(), [(poor.child(2), BudgetScope::Share(poor))]);
    assert_eq!(admission.waiting(), 0);
}

#[test]
fn spent_budget_rejects_agents_only_if_rejection_is_enabled() {
    let spent = Usd::from_dollars(1.0);
    let budget = Budget { spent, limit: Some(spent), ..UNLIMITED };
    let mut admission = AdmissionQueue::default();
    ask(&mut admission, 1);
    assert!(admit(&mut admission, 1, &budget).is_empty() && admission.is_starved(&budget));
    admission.turn_away_without_budget(true);
    assert!(admit(&mut admission, 1, &budget).is_empty());
    assert_eq!(admission.rejected(), [(child(1), BudgetScope::Run)]);
    assert!(admission.is_idle());
}

#[test]
fn freed_share_admits_first_agent_waiting_for_it() {
    let usd = Usd::from_dollars;
    let worker = StateName::parse("W.md").expect("a state");
    let known = BTreeMap::from([(worker.clone(), usd(0.4))]);
    let lead = child(1);
    let share = |spent| BudgetShare { limit_usd: usd(1.0), spent_usd: usd(spent), live: 9 };
    let mut admission = AdmissionQueue::default();
    (1..=6).for_each(|number| ask_as(&mut admission, lead.child(number)));
    let admitted = |admission: &mut AdmissionQueue, spent| {
        let shares = [(lead.clone(), share(spent))].into();
        let agents =
            admit(admission, 8, &Budget { shares: &shares, max_turn_costs: &known, ..UNLIMITED });
        agents.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(admitted(&mut admission, 0.0), ["main.1.1", "main.1.2"]);
    admission.release(&lead.child(2));
    assert_eq!(admitted(&mut admission, 0.1), ["main.1.3"], "and no more than there is room for");
    admission.release(&lead.child(1));
    admission.release(&lead.child(4));
    assert_eq!(admitted(&mut admission, 0.1), ["main.1.5"], "who has left is passed over");
    admission.release(&lead.child(3));
    assert!(admitted(&mut admission, 1.0).is_empty());
    let away: Vec<AgentId> = admission.rejected().into_iter().map(|(agent, _)| agent).collect();
    assert_eq!(away, [lead.child(6)], "all who still wait, not only the first");
}

#[test]
fn released_agent_is_not_admitted_with_its_reserved_permit() {
    let mut admission = AdmissionQueue::default();
    admission.reserve(request(child(1), None));
    ask(&mut admission, 1);
    admission.release(&child(1));
    assert!(admission.is_idle());
    ask(&mut admission, 2);
    ask(&mut admission, 1);
    assert_eq!(admit(&mut admission, 1, &UNLIMITED), [child(2)], "there is one permit");
    admission.release(&child(2));
    assert_eq!(admit(&mut admission, 1, &UNLIMITED), [child(1)]);
}

#[test]
fn dropped_reservation_frees_its_share() {
    let usd = Usd::from_dollars;
    let worker = StateName::parse("W.md").expect("a state");
    let known = BTreeMap::from([(worker.clone(), usd(0.4))]);
    let lead = child(1);
    let share = BudgetShare { limit_usd: usd(0.5), spent_usd: Usd::ZERO, live: 3 };
    let shares = [(lead.clone(), share)].into();
    let budget = Budget { shares: &shares, max_turn_costs: &known, ..UNLIMITED };
    let mut admission = AdmissionQueue::default();
    admission.reserve(request(lead.child(1), None));
    ask_as(&mut admission, lead.child(2));
    assert!(admit(&mut admission, 8, &budget).is_empty());
    admission.drop_reserved();
    assert_eq!(admit(&mut admission, 8, &budget), [lead.child(2)]);
}
