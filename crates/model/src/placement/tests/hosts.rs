//! Tests of hosts that go silent, drain, are lost and come back, and of the moves between hosts.

use super::*;
use crate::admission::{AdmissionLimits, AdmissionQueue, NO_OTHER_HOSTS, PermitRequest};
use crate::budget::tests::UNLIMITED;
use crate::id::StateName;
use crate::time::Timestamp;

#[test]
fn lost_host_gives_its_agents_back_and_is_fenced_until_its_next_epoch() {
    let mut table = table(&[sighting("a", 1, &[]), sighting("b", 1, &[])]);
    for number in [10, 2, 3] {
        settle(&mut table, &agent(number), Some("a"), None);
    }
    table.begin(&agent(2));
    let home = table.home(&agent(2)).expect("a home");
    assert!(table.is_usable(&home));
    let changes = table.lose(&name("a"));
    assert_eq!(lost(&changes), [("main.2", true), ("main.3", false), ("main.10", false)]);
    assert_eq!((changes.permits, changes.left), (vec![name("a")], vec![name("a")]));
    assert!(!table.is_usable(&home) && table.home(&agent(2)).is_none());
    let _ = table.observe(sighting("a", 1, &[]));
    assert_eq!(why_not(&table, Some("a")), "all hosts with the label a are lost");
    let old = PlacedAgent { agent: agent(2), host: name("a"), epoch: HostEpoch(1) };
    assert!(!table.assign(old.clone(), None), "its epoch is over");
    let again = HostSighting { epoch: HostEpoch(3), ..sighting("a", 1, &[]) };
    assert_eq!(table.observe(again).permits, [name("a")]);
    assert!(!table.is_usable(&home) && !table.assign(old, None));
    assert_eq!(settle(&mut table, &agent(2), Some("a"), None), "a");
    assert_eq!(table.home(&agent(2)).expect("a home").epoch, HostEpoch(3));
}

#[test]
fn agents_of_an_earlier_epoch_are_lost_when_the_host_is_seen_in_the_next() {
    let mut table = HostTable::new(WIRE);
    for (number, epoch) in [(1, 1), (2, 2)] {
        let placed = PlacedAgent { agent: agent(number), host: name("a"), epoch: HostEpoch(epoch) };
        assert!(table.assign(placed, None), "the host is not seen yet");
    }
    assert_eq!(
        (why_not(&table, None).as_str(), table.permits(&name("a"))),
        ("no host is alive", 0)
    );
    let second = HostSighting { epoch: HostEpoch(2), ..sighting("a", 4, &[]) };
    assert_eq!(lost(&table.observe(second)), [("main.1", false)]);
    assert_eq!(table.agents_at(&name("a")), 1);
    let third = HostSighting { epoch: HostEpoch(3), ..sighting("a", 4, &[]) };
    assert_eq!(lost(&table.observe(third)), [("main.2", false)]);
    assert_eq!(lost(&table.observe_all(Vec::new())), []);
    assert_eq!(why_not(&table, None), "all hosts are lost");
}

#[test]
fn group_whose_host_was_lost_meets_where_its_first_agent_goes() {
    let mut table = table(&[sighting("b", 1, &[])]);
    let tree = || Some(PlacementGroup::Worktree(agent(1)));
    // The supervisor ended between the records of the two agents.
    let old = |number| PlacedAgent { agent: agent(number), host: name("a"), epoch: HostEpoch(1) };
    assert!(table.assign(old(2), tree()));
    let new = PlacedAgent { host: name("b"), ..old(1) };
    assert!(table.assign(new, tree()));
    assert_eq!(lost(&table.observe_all(vec![sighting("b", 1, &[])])), [("main.2", false)]);
    assert_eq!(settle(&mut table, &agent(2), None, tree()), "b");
}

#[test]
fn permits_follow_slots_memory_and_standing() {
    let permits = |change: &dyn Fn(&mut HostSighting)| {
        let mut changed = sighting("a", 8, &[]);
        change(&mut changed);
        let mut table = HostTable::new(WIRE).starting_claude(true);
        let _ = table.observe_all(vec![changed]);
        table.permits(&name("a"))
    };
    assert_eq!(permits(&|_| ()), 8);
    assert_eq!(permits(&|host| host.report.room = Some(3)), 3);
    assert_eq!(permits(&|host| host.report.room = Some(0)), 1, "one turn may always run");
    assert_eq!(permits(&|host| host.standing = HostStanding::Draining), 8, "it keeps its agents");
    assert_eq!(permits(&|host| host.standing = HostStanding::Lost), 0);
    assert_eq!(permits(&|host| host.is_alive = false), 0);
    assert_eq!(permits(&|host| host.report.wire = 9), 0);
    let mut short_of_memory = sighting("a", 8, &[]);
    short_of_memory.report.room = Some(3);
    let scripted = table(&[short_of_memory]).permits(&name("a"));
    assert_eq!(scripted, 8, "turns without Claude Code need none of its memory");
}

#[test]
fn short_turns_are_sent_before_a_slot_is_free() {
    let permits = |slots| {
        let table = table(&[sighting("a", slots, &[])]).sending_ahead(true);
        table.permits(&name("a"))
    };
    assert_eq!([1, 2, 8, 100].map(permits), [1, 16, 64, 164]);
}

#[test]
fn only_unstarted_agents_may_leave_a_draining_host() {
    let mut table = table(&[sighting("a", 1, &[])]);
    for number in [1, 2, 10] {
        settle(&mut table, &agent(number), None, None);
    }
    table.begin(&agent(2));
    let mut draining = sighting("a", 1, &[]);
    draining.standing = HostStanding::Draining;
    let changes = table.observe(draining);
    assert_eq!((changes.lost.len(), changes.left), (0, vec![name("a")]));
    assert_eq!(table.movable_at(&name("a")), [agent(1), agent(10)]);
}

/// A table and a queue that know the same hosts.
struct Cluster {
    table: HostTable,
    queue: AdmissionQueue,
}

impl Cluster {
    fn new(hosts: &[HostSighting]) -> Self {
        let mut cluster = Self { table: table(hosts), queue: AdmissionQueue::default() };
        for host in hosts {
            cluster.queue.set_permits(Some(&host.host), cluster.table.permits(&host.host));
        }
        cluster
    }

    /// Places an agent at a host and queues it; it could be elsewhere, too, where the requirement allows it.
    fn add(&mut self, number: u32, host: &str, requirement: Option<&str>) {
        self.add_to(None, number, host, requirement);
    }

    fn add_to(
        &mut self,
        group: Option<PlacementGroup>,
        number: u32,
        host: &str,
        requirement: Option<&str>,
    ) {
        settle(&mut self.table, &agent(number), Some(host), group);
        let requirement = requirement.map(label);
        let mobility = self.table.mobility(&agent(number), requirement.as_ref());
        let state = StateName::parse("W.md").expect("a state");
        let (agent, host) = (agent(number), Some(name(host)));
        let request = PermitRequest { agent, state, last_turn: None, host, mobility };
        self.queue.ask(request, Timestamp(1));
    }

    fn admit(&mut self) {
        let admitted = self.queue.admit(&AdmissionLimits {
            permits: 999,
            budget: UNLIMITED,
            warm: &[],
            returning: 0,
            hosts: &NO_OTHER_HOSTS,
            now: Timestamp(1),
        });
        for turn in admitted {
            self.table.begin(&turn.agent);
        }
    }

    fn moves(&self, spare: usize) -> Vec<String> {
        let moves = balance(&self.queue, &self.table, &NO_OTHER_HOSTS, spare);
        let text = |change: &AgentMove| {
            format!("{} {}>{}", change.agent, change.from, change.to.host.as_ref().expect("a host"))
        };
        moves.iter().map(text).collect()
    }
}

#[test]
fn idle_hosts_get_the_agents_that_have_waited_longest() {
    let hosts = [
        sighting("a", 1, &[]),
        sighting("b", 1, &["gpu"]),
        sighting("c", 2, &["gpu"]),
        sighting("d", 1, &[]),
    ];
    let mut cluster = Cluster::new(&hosts);
    for number in 1..=4 {
        cluster.add(number, "a", None);
    }
    for number in 5..=6 {
        cluster.add(number, "b", Some("gpu"));
    }
    cluster.add(7, "a", Some("a"));
    cluster.admit();
    assert_eq!(cluster.moves(9), ["main.6 b>c", "main.2 a>c", "main.3 a>d"]);
    assert_eq!(cluster.moves(1), ["main.6 b>c"]);
    cluster.add(8, "d", None);
    assert_eq!(cluster.moves(9), ["main.6 b>c", "main.2 a>c"], "a host with a line needs none");
    let mut draining = hosts[2].clone();
    draining.standing = HostStanding::Draining;
    let _ = cluster.table.observe(draining);
    assert_eq!(cluster.moves(9), Vec::<String>::new());
}

#[test]
fn agents_of_silent_host_move_while_those_that_began_wait_for_it() {
    let mut cluster = Cluster::new(&[sighting("a", 1, &[]), sighting("b", 1, &[])]);
    for number in 1..=2 {
        cluster.add(number, "a", None);
    }
    cluster.admit();
    let silent = HostSighting { is_alive: false, ..sighting("a", 1, &[]) };
    let changes = cluster.table.observe(silent);
    assert_eq!(changes.permits, [name("a")]);
    cluster.queue.set_permits(Some(&name("a")), 0);
    assert_eq!(cluster.moves(9), ["main.2 a>b"]);
}

#[test]
fn agent_that_shares_its_directory_by_now_stays_and_others_move() {
    let mut cluster = Cluster::new(&[sighting("a", 1, &[]), sighting("b", 1, &[])]);
    cluster.add(1, "a", None);
    cluster.admit();
    let tree = PlacementGroup::Worktree(agent(9));
    cluster.add_to(Some(tree.clone()), 2, "a", None);
    cluster.add(3, "a", None);
    assert_eq!(cluster.moves(9), ["main.2 a>b"]);
    settle(&mut cluster.table, &agent(4), None, Some(tree));
    assert_eq!(cluster.moves(9), ["main.3 a>b"]);
}

#[test]
fn hosts_without_claude_are_the_last_choice_of_runs_that_need_it() {
    let with_claude = |host: &str, slots| {
        let mut sighting = sighting(host, slots, &[]);
        sighting.report.claude = Some("2.1.330".to_owned());
        sighting
    };
    let mut table = HostTable::new(WIRE).starting_claude(true);
    let seen = vec![sighting("a", 8, &[]), with_claude("b", 1), with_claude("c", 1)];
    let _ = table.observe_all(seen);
    let hosts: Vec<String> =
        (1..=4).map(|number| settle(&mut table, &agent(number), None, None)).collect();
    assert_eq!(hosts, ["b", "c", "b", "c"], "however many slots the other one has");
    let _ = table.observe_all(vec![sighting("a", 8, &[])]);
    assert_eq!(settle(&mut table, &agent(5), None, None), "a", "there is no other one");

    let mut table = HostTable::new(WIRE);
    let _ = table.observe_all(vec![sighting("a", 8, &[]), with_claude("b", 1)]);
    assert_eq!(settle(&mut table, &agent(1), None, None), "a", "scripted turns need none");
}
