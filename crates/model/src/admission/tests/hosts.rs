//! Tests of hosts: each has its own lines and permits, and delays no other one.

use super::*;

fn host(name: &str) -> HostName {
    HostName::parse(name).expect("a host")
}

/// Asks for a new agent at a host, which could wait at any other one.
fn ask_at(admission: &mut AdmissionQueue, name: &str, agent: AgentId) {
    let mobility = AgentMobility::AnyHost;
    let host = Some(host(name));
    admission.ask(PermitRequest { host, mobility, ..request(agent, None) }, NOW);
}

fn with_permits(permits: &[(&str, usize)]) -> AdmissionQueue {
    let mut admission = AdmissionQueue::default();
    for (name, permits) in permits {
        admission.set_permits(Some(&host(name)), *permits);
    }
    admission
}

fn admitted(admission: &mut AdmissionQueue, permits: usize) -> Vec<String> {
    admit(admission, permits, &UNLIMITED).iter().map(ToString::to_string).collect()
}

#[test]
fn each_host_has_its_own_permits_and_lines() {
    let mut admission = with_permits(&[("a", 1), ("b", 2)]);
    for number in 1..=3 {
        ask_at(&mut admission, "a", child(number));
        ask_at(&mut admission, "b", child(number + 10));
        ask_at(&mut admission, "dead", child(number + 20));
    }
    assert_eq!(admitted(&mut admission, 99), ["main.1", "main.11", "main.12"]);
    admission.release(&child(1));
    assert_eq!(admitted(&mut admission, 99), ["main.2"], "the order of each host is kept");
    admission.set_permits(Some(&host("a")), 0);
    admission.release(&child(2));
    admission.release(&child(12));
    assert_eq!(admitted(&mut admission, 99), ["main.13"]);
    admission.set_permits(Some(&host("dead")), 1);
    assert_eq!(admitted(&mut admission, 99), ["main.21"]);
    assert_eq!((admission.running(), admission.waiting()), (3, 3));
    assert_eq!(admission.running_at(Some(&host("b"))), 2);
}

#[test]
fn permits_of_all_hosts_together_are_limited_and_hosts_take_turns() {
    let mut admission = with_permits(&[("a", 9), ("b", 9)]);
    for number in 1..=3 {
        ask_at(&mut admission, "a", child(number));
    }
    ask_at(&mut admission, "b", child(11));
    let returned = request(child(12), Some(1));
    admission.ask(PermitRequest { host: Some(host("b")), ..returned }, NOW);
    let order = order_of_turns(&mut admission);
    assert_eq!(order, ["main.12", "main.1", "main.11", "main.2", "main.3"]);
}

/// Admits the agents one after the other and returns their order.
fn order_of_turns(admission: &mut AdmissionQueue) -> Vec<String> {
    let mut order = Vec::new();
    while let [agent] = admit(admission, 1, &UNLIMITED).as_slice() {
        admission.release(agent);
        order.push(agent.to_string());
    }
    order
}

#[test]
fn permits_are_left_to_agents_that_return_to_their_host() {
    let mut admission = with_permits(&[("a", 1), ("b", 1)]);
    ask_at(&mut admission, "a", child(1));
    ask_at(&mut admission, "b", child(2));
    let hosts = [(host("a"), HostActivity { returning: 1, ..HostActivity::default() })].into();
    let limits = AdmissionLimits { returning: 1, hosts: &hosts, ..limits(9) };
    assert_eq!(admit_within(&mut admission, &limits), [child(2)]);
    assert_eq!(admitted(&mut admission, 9), ["main.1"]);
}

#[test]
fn agent_with_an_idle_process_goes_first_at_its_host() {
    let mut admission = with_permits(&[("a", 1)]);
    for (number, last_turn) in [(1, 10), (2, 20)] {
        let turn = request(child(number), Some(last_turn));
        admission.ask(PermitRequest { host: Some(host("a")), ..turn }, NOW);
    }
    let activity = HostActivity { warm: vec![child(2)], returning: 0 };
    let hosts = [(host("a"), activity)].into();
    let limits = AdmissionLimits { hosts: &hosts, ..limits(9) };
    assert_eq!(admit_within(&mut admission, &limits), [child(2)]);
}

#[test]
fn overdue_line_of_one_host_goes_before_started_agents_of_another() {
    let mut admission = AdmissionQueue::new(TurnOrder::Depth, 1000);
    for name in ["a", "b"] {
        admission.set_permits(Some(&host(name)), 5);
    }
    ask_at(&mut admission, "a", child(1));
    let now = NOW.plus(1000);
    let returned = request(child(2), Some(1));
    admission.ask(PermitRequest { host: Some(host("b")), ..returned }, now);
    let limits = AdmissionLimits { now, ..limits(1) };
    assert_eq!(admit_within(&mut admission, &limits), [child(1)]);
}

#[test]
fn agent_that_moves_keeps_its_place() {
    let mut admission = with_permits(&[("a", 0), ("b", 1)]);
    for number in [1, 3] {
        ask_at(&mut admission, "a", child(number));
    }
    for number in [2, 4] {
        ask_at(&mut admission, "b", child(number));
    }
    admission.suspend(&child(3));
    ask_at(&mut admission, "b", child(1));
    assert_eq!(admitted(&mut admission, 9), ["main.1"], "it asked before the agents of the host");
    admission.release(&child(1));
    assert_eq!(admitted(&mut admission, 9), ["main.2"]);
    ask_at(&mut admission, "b", child(3));
    admission.release(&child(2));
    assert_eq!(admitted(&mut admission, 9), ["main.3"], "it asked before the fourth");
    assert_eq!(admission.waiting(), 1);
}

#[test]
fn longest_waiting_agents_of_full_hosts_are_found() {
    let mut admission = with_permits(&[("a", 0), ("c", 2)]);
    ask_at(&mut admission, "a", child(1));
    ask_at(&mut admission, "b", child(2));
    ask_at(&mut admission, "a", child(3));
    let fixed = PermitRequest { host: Some(host("a")), ..request(child(4), None) };
    admission.ask(fixed, NOW);
    assert_eq!(admission.crowded().collect::<Vec<_>>(), [&AgentMobility::AnyHost]);
    let waiting = |limit| {
        let found = admission.longest_waiting(&AgentMobility::AnyHost).take(limit);
        found.map(|(agent, host)| format!("{agent} {host}")).collect::<Vec<_>>()
    };
    assert_eq!(waiting(9), ["main.1 a", "main.2 b", "main.3 a"]);
    assert_eq!(waiting(2), ["main.1 a", "main.2 b"]);
    assert_eq!(admission.idle_hosts().collect::<Vec<_>>(), [(&host("c"), 2)]);
    admission.set_permits(Some(&host("a")), 1);
    let crowded: Vec<_> = admission.longest_waiting(&AgentMobility::AnyHost).collect();
    assert_eq!(crowded, [(&child(2), &host("b"))], "a host that is free serves its agents itself");
}

/// Money for one turn at a time in the share of `main.1`, whose children wait at hosts.
struct SharedMoney {
    shares: BTreeMap<AgentId, BudgetShare>,
    known: BTreeMap<StateName, Usd>,
}

impl SharedMoney {
    fn new() -> Self {
        let usd = Usd::from_dollars;
        let share = BudgetShare { limit_usd: usd(1.0), spent_usd: Usd::ZERO, live: 9 };
        let state = StateName::parse("W.md").expect("a state");
        Self { shares: [(child(1), share)].into(), known: [(state, usd(0.6))].into() }
    }

    fn admit(&self, admission: &mut AdmissionQueue) -> Vec<String> {
        let budget = Budget { shares: &self.shares, max_turn_costs: &self.known, ..UNLIMITED };
        admit(admission, 99, &budget).iter().map(ToString::to_string).collect()
    }
}

#[test]
fn dead_host_keeps_no_agent_of_another_from_the_money_of_their_share() {
    let (money, lead) = (SharedMoney::new(), child(1));
    let mut admission = with_permits(&[("a", 1), ("b", 1), ("c", 1)]);
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        ask_at(&mut admission, name, lead.child(number));
    }
    assert_eq!(money.admit(&mut admission), ["main.1.1"]);
    admission.set_permits(Some(&host("b")), 0);
    admission.release(&lead.child(1));
    assert_eq!(money.admit(&mut admission), ["main.1.3"], "the second waits at a dead host");
    admission.set_permits(Some(&host("c")), 0);
    admission.release(&lead.child(3));
    assert!(money.admit(&mut admission).is_empty());
    admission.set_permits(Some(&host("b")), 1);
    assert_eq!(money.admit(&mut admission), ["main.1.2"], "it is owed the money");
}

#[test]
fn host_that_becomes_full_passes_the_money_on() {
    let (money, lead) = (SharedMoney::new(), child(1));
    let mut admission = with_permits(&[("a", 1), ("b", 1), ("c", 1)]);
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        ask_at(&mut admission, name, lead.child(number));
    }
    assert_eq!(money.admit(&mut admission), ["main.1.1"]);
    admission.release(&lead.child(1));
    // The second agent is back in its line, but its host dies before it is checked.
    admission.set_permits(Some(&host("b")), 0);
    assert_eq!(money.admit(&mut admission), ["main.1.3"]);
    admission.release(&lead.child(3));
    assert!(money.admit(&mut admission).is_empty());
    admission.set_permits(Some(&host("b")), 1);
    assert_eq!(money.admit(&mut admission), ["main.1.2"]);
}
