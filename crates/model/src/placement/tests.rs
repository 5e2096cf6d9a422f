//! Tests of placement: where agents go, what they wait for, and what follows when a host goes.

mod hosts;
mod model;
mod simulation;

use super::*;
use crate::host::{HostEpoch, HostReport};
use crate::worktree_snapshot::WorkingDir;

const WIRE: u32 = 3;

fn name(text: &str) -> HostName {
    HostName::parse(text).expect("a host")
}

fn label(text: &str) -> HostLabel {
    HostLabel::parse(text).expect("a label")
}

fn agent(number: u32) -> AgentId {
    AgentId::main().child(number)
}

/// Returns a host that is active and alive, in its first epoch.
fn sighting(host: &str, slots: u32, labels: &[&str]) -> HostSighting {
    let report = HostReport {
        start: String::new(),
        slots,
        room: None,
        labels: labels.iter().map(|text| label(text)).collect(),
        busy: 0,
        sessions: 0,
        raymond: "1.0.0".to_owned(),
        wire: WIRE,
        claude: None,
        takes_runs: false,
        timeout_ms: None,
    };
    let (epoch, standing) = (HostEpoch(1), HostStanding::Active);
    HostSighting { host: name(host), epoch, standing, is_alive: true, report }
}

fn table(hosts: &[HostSighting]) -> HostTable {
    let mut table = HostTable::new(WIRE);
    let changes = table.observe_all(hosts.to_vec());
    assert_eq!(changes.lost, []);
    table
}

/// Places an agent and assigns it; returns its host.
fn settle(
    table: &mut HostTable,
    agent: &AgentId,
    requirement: Option<&str>,
    group: Option<PlacementGroup>,
) -> String {
    let requirement = requirement.map(label);
    let home = table.place(requirement.as_ref(), group.as_ref()).expect("a host");
    let host = home.host.expect("not here");
    let placed = PlacedAgent { agent: agent.clone(), host: host.clone(), epoch: home.epoch };
    assert!(table.assign(placed, group));
    host.to_string()
}

fn why_not(table: &HostTable, requirement: Option<&str>) -> String {
    let requirement = requirement.map(label);
    table.place(requirement.as_ref(), None).expect_err("no host").to_string()
}

fn lost(changes: &HostChanges) -> Vec<(&str, bool)> {
    changes.lost.iter().map(|agent| (agent.placed.agent.as_str(), agent.has_started)).collect()
}

#[test]
fn agents_go_to_the_host_with_the_fewest_agents_per_slot() {
    let mut table = table(&[sighting("b", 1, &[]), sighting("a", 1, &[]), sighting("c", 4, &[])]);
    let hosts: Vec<String> =
        (1..=12).map(|number| settle(&mut table, &agent(number), None, None)).collect();
    assert_eq!(hosts.concat(), "cccabccccabc");
    table.end(&agent(4));
    assert_eq!(settle(&mut table, &agent(13), None, None), "a");
    assert_eq!((table.agents_at(&name("a")), table.agents_at(&name("c"))), (2, 8));
}

#[test]
fn labels_and_names_of_hosts_limit_the_choice() {
    let mut table = table(&[sighting("a", 9, &[]), sighting("b", 1, &["gpu", "big"])]);
    for number in 1..=3 {
        assert_eq!(settle(&mut table, &agent(number), Some("gpu"), None), "b");
    }
    assert_eq!(settle(&mut table, &agent(4), Some("a"), None), "a");
    assert_eq!(settle(&mut table, &agent(5), Some("b"), None), "b");
    let _ = table.observe(sighting("b", 1, &["big"]));
    assert!(why_not(&table, Some("gpu")).starts_with("no host has the label gpu; start"));
    assert_eq!(settle(&mut table, &agent(6), Some("big"), None), "b");
}

#[test]
fn unplaced_agent_says_what_it_waits_for() {
    let with = |change: &dyn Fn(&mut HostSighting)| {
        ["a", "b"].map(|host| {
            let mut changed = sighting(host, 2, &["gpu"]);
            change(&mut changed);
            changed
        })
    };
    let gpu = Some("gpu");
    assert!(why_not(&table(&[]), None).starts_with("the engine has no hosts; start"));
    assert!(why_not(&table(&[sighting("a", 1, &[])]), gpu).contains("no host has the label gpu"));
    let draining = with(&|host| host.standing = HostStanding::Draining);
    assert_eq!(why_not(&table(&draining), gpu), "all hosts with the label gpu are draining");
    let silent = with(&|host| host.is_alive = false);
    assert_eq!(why_not(&table(&silent), None), "no host is alive");
    let lost = with(&|host| host.standing = HostStanding::Lost);
    assert_eq!(why_not(&table(&lost), Some("b")), "all hosts with the label b are lost");
    let without_slots = with(&|host| host.report.slots = 0);
    assert_eq!(why_not(&table(&without_slots), None), "no host has slots");
    let newer = with(&|host| host.report.wire = 4);
    let text = why_not(&table(&newer), gpu);
    assert!(
        text.starts_with("host a speaks version 4 of the messages, this raymond speaks 3"),
        "{text}"
    );
    let old = with(&|host| host.report.claude = Some("2.1.100".to_owned()));
    let text = why_not(&table(&old), gpu);
    assert!(text.starts_with("host a has Claude Code 2.1.100, but the oldest"), "{text}");
    let mut mixed = with(&|host| host.is_alive = false).to_vec();
    mixed.extend([HostSighting { host: name("c"), ..draining[0].clone() }]);
    mixed.extend([HostSighting { host: name("d"), ..newer[0].clone() }]);
    assert_eq!(
        why_not(&table(&mixed), gpu),
        "no host with the label gpu takes agents: 1 is draining, 1 speaks another version of the messages, 2 are not alive"
    );
}

#[test]
fn agents_of_one_directory_share_a_host() {
    let mut table = table(&[sighting("a", 2, &[]), sighting("b", 2, &["gpu"])]);
    let tree = PlacementGroup::Worktree(agent(1));
    assert_eq!(settle(&mut table, &agent(1), None, Some(tree.clone())), "a");
    assert!(table.may_move(&agent(1)), "it is alone, and nothing is begun");
    table.begin(&agent(1));
    for number in 1..=4 {
        assert_eq!(settle(&mut table, &agent(1).child(number), None, Some(tree.clone())), "a");
    }
    assert_eq!(settle(&mut table, &agent(2), None, None), "b");
    table.end(&agent(1));
    assert!(!table.may_move(&agent(1).child(1)), "its directory is there");
    let elsewhere = table.place(Some(&label("gpu")), Some(&tree)).expect_err("it is at a");
    assert!(elsewhere.to_string().contains("on host a, which does not have the label gpu"));
    let mut draining = sighting("a", 2, &[]);
    draining.standing = HostStanding::Draining;
    let _ = table.observe(draining);
    assert_eq!(settle(&mut table, &agent(1).child(5), None, Some(tree.clone())), "a");
    assert_eq!(table.lose(&name("a")).lost.len(), 5);
    for number in 1..=5 {
        assert_eq!(settle(&mut table, &agent(1).child(number), None, Some(tree.clone())), "b");
    }
    for number in 1..=5 {
        table.end(&agent(1).child(number));
    }
    assert_eq!(table.place(Some(&label("gpu")), Some(&tree)).expect("b").host, Some(name("b")));
}

#[test]
fn run_directory_binds_its_agents_unless_all_hosts_share_it() {
    let here = WorkingDir::default();
    assert_eq!(PlacementGroup::of(&here, false), Some(PlacementGroup::RunDirectory));
    assert_eq!(PlacementGroup::of(&here, true), None);
    let tree = WorkingDir { tree: Some(agent(2)), ..here };
    assert_eq!(PlacementGroup::of(&tree, true), Some(PlacementGroup::Worktree(agent(2))));
}

#[test]
fn placed_agent_is_recorded_by_its_host_and_epoch() {
    let placed = PlacedAgent { agent: agent(1), host: name("a"), epoch: HostEpoch(7) };
    let json = r#"{"agent":"main.1","host":"a","epoch":7}"#;
    assert_eq!(serde_json::to_string(&placed).expect("JSON"), json);
    assert_eq!(serde_json::from_str::<PlacedAgent>(json).expect("a record"), placed);
    assert_eq!(serde_json::to_string(&Home::default()).expect("JSON"), "{}");
    assert!(serde_json::from_str::<Home>("{}").expect("a home").is_here());
    let home = serde_json::to_string(&placed.home()).expect("JSON");
    assert_eq!(home, r#"{"host":"a","epoch":7}"#);
}
