//! The tree and the list, small and with ten thousand agents.

use super::*;
use crate::cli::top::draw::cells;
use crate::domain::agent_status::{AgentStatus, WaitReason};
use crate::domain::money::Usd;
use crate::domain::tests::scene::{Scene, agent_id, state};
use crate::domain::time::Timestamp;
use crate::runtime::observing::agent_entries::{MonitoredRun, TopAgentStatus};

/// Makes an agent that is, or has ended, in the state it began in.
pub(in crate::cli::top) fn entry(id: &str, name: &str, status: TopAgentStatus) -> AgentEntry {
    let over = matches!(status, TopAgentStatus::Finished | TopAgentStatus::Failed);
    AgentEntry {
        id: agent_id(id),
        began: Some(state(name)),
        state: (!over).then(|| state(name)),
        status,
        since: Some(Timestamp(0)),
        spent: Usd::from_dollars(0.01),
        ended: over.then_some(0),
    }
}

const PERMIT: TopAgentStatus = TopAgentStatus::Live(AgentStatus::Waiting(WaitReason::Permit));

/// Returns each row as `depth id`, or `depth id*count` for many.
pub(in crate::cli::top) fn shown(entries: &[AgentEntry], rows: &[TreeRow]) -> Vec<String> {
    let text = |row: &TreeRow| {
        let members = row.of.members();
        let many = if let RowSubject::Many { .. } = row.of {
            format!("*{}", members.len())
        } else {
            String::new()
        };
        format!("{} {}{many}", row.depth, entries[members[0]].id)
    };
    rows.iter().map(text).collect()
}

fn tree(entries: &[AgentEntry]) -> Vec<String> {
    shown(entries, &rows(entries, &AgentFilter::default(), &ExpandedFamilies::default()))
}

/// Makes `main` and a family of `size` agents with the activities that `doing` returns for their numbers.
fn family(size: u32, doing: impl Fn(u32) -> TopAgentStatus) -> Vec<AgentEntry> {
    let main = entry("main", "PLAN.md", PERMIT);
    let workers =
        (1..=size).map(|number| entry(&format!("main.{number}"), "WORK.md", doing(number)));
    std::iter::once(main).chain(workers).collect()
}

#[test]
fn silent_and_running_agents_sort_first_with_their_parents() {
    let entries = [
        entry("main", "A.md", PERMIT),
        entry("main.1", "B.md", PERMIT),
        entry("main.2", "B.md", PERMIT),
        entry("main.2.1", "C.md", TopAgentStatus::Live(AgentStatus::Running)),
        entry("main.3", "B.md", TopAgentStatus::Finished),
        entry("main.3.1", "C.md", TopAgentStatus::Silent),
        entry("main.10", "B.md", PERMIT),
    ];
    let expected =
        ["0 main", "1 main.3", "2 main.3.1", "1 main.2", "2 main.2.1", "1 main.1", "1 main.10"];
    assert_eq!(tree(&entries), expected);
}

#[test]
fn family_is_one_row_until_expanded() {
    let mut entries = family(15, |_| PERMIT);
    entries.push(entry("main.3.1", "C.md", PERMIT));
    entries.push(entry("main.20", "C.md", PERMIT));
    assert_eq!(tree(&entries), ["0 main", "1 main.1*15", "2 main.3.1", "1 main.20"]);

    let mut opened = ExpandedFamilies::default();
    let all = rows(&entries, &AgentFilter::default(), &opened);
    opened.families.extend(all.into_iter().find_map(|row| match row.of {
        RowSubject::Many { family, .. } => Some(family),
        RowSubject::One(_) => None,
    }));
    let now = rows(&entries, &AgentFilter::default(), &opened);
    assert_eq!(
        shown(&entries, &now)[1..6],
        ["1 main.1*15", "2 main.1", "2 main.2", "2 main.3", "3 main.3.1"]
    );
    assert!(matches!(now[1].of, RowSubject::Many { open: true, .. }));
    opened.all = true;
    let each = rows(&entries, &AgentFilter::default(), &opened);
    assert_eq!(shown(&entries, &each)[..4], ["0 main", "1 main.1", "1 main.2", "1 main.3"]);
}

#[test]
fn family_row_shows_states_cost_and_status_counts() {
    let scene = Scene::begin();
    let seen = std::collections::HashMap::new();
    let known = MonitoredRun {
        run: &scene.run,
        held: true,
        is_shared: false,
        seen: &seen,
        now: Timestamp(0),
    };
    let lines = |entries: &[AgentEntry]| {
        let rows = rows(entries, &AgentFilter::default(), &ExpandedFamilies::default());
        let cells = cells(known, entries, &rows[1]);
        format!("{} | {} | {} | {}", cells.name, cells.state, cells.spent, cells.activity)
    };
    let mixed = |number| match number {
        1..=640 => TopAgentStatus::Finished,
        641..=643 => TopAgentStatus::Failed,
        644..=659 => TopAgentStatus::Live(AgentStatus::Running),
        _ => PERMIT,
    };
    let mut entries = family(1000, mixed);
    let expected =
        "  ▸ 1000 agents | WORK.md | $10.00 | 16 running · 341 waiting · 3 failed · 640 finished";
    assert_eq!(lines(&entries), expected);
    entries[900].state = Some(state("NEXT.md"));
    assert!(lines(&entries).contains("| WORK.md, … |"), "{}", lines(&entries));
    let waiting = "  ▸ 20 agents | WORK.md | $0.20 | wait for a free process";
    assert_eq!(lines(&family(20, |_| PERMIT)), waiting);
    let over = "  ▸ 20 agents | WORK.md | $0.20 | finished";
    assert_eq!(lines(&family(20, |_| TopAgentStatus::Finished)), over);
}

#[test]
fn folded_family_shows_first_running_agents_and_filter_shows_all() {
    let all = family(20, |_| TopAgentStatus::Live(AgentStatus::Running));
    assert_eq!(tree(&all).len(), 2 + FAMILY_FOLD_SIZE);
    let filter = AgentFilter { kind: Some(StatusFilter::Running), ..AgentFilter::default() };
    assert_eq!(rows(&all, &filter, &ExpandedFamilies::default()).len(), 20);
}

#[test]
fn filter_lists_matching_agents_in_numeric_order() {
    let entries = [
        entry("main", "PLAN.md", PERMIT),
        entry("main.10", "Work.md", PERMIT),
        entry("main.2", "Work.md", PERMIT),
        entry("main.2.1", "Work.md", TopAgentStatus::Live(AgentStatus::Running)),
        entry("main.3", "Work.md", TopAgentStatus::Failed),
    ];
    let list = |text: &str, kind| {
        let filter = AgentFilter { text: text.to_owned(), kind };
        shown(&entries, &rows(&entries, &filter, &ExpandedFamilies::default()))
    };
    assert_eq!(list("work", None), ["0 main.2.1", "0 main.2", "0 main.10"]);
    assert_eq!(list("main.2", None), ["0 main.2.1", "0 main.2"]);
    assert_eq!(list("", Some(StatusFilter::Waiting)), ["0 main", "0 main.2", "0 main.10"]);
    assert_eq!(list("", Some(StatusFilter::Failed)), ["0 main.3"]);
    assert_eq!(list("plan", Some(StatusFilter::Running)), [""; 0]);
}

#[test]
fn ten_thousand_agents_fold_into_few_rows() {
    let entries = family(9999, |number| match number {
        5000..5010 => TopAgentStatus::Live(AgentStatus::Running),
        7777 => TopAgentStatus::Silent,
        8000 => TopAgentStatus::Failed,
        1..3000 => TopAgentStatus::Finished,
        _ => PERMIT,
    });
    let rows = tree(&entries);
    assert_eq!(rows.len(), 2 + 1 + 10 + 1);
    assert_eq!(rows[..4], ["0 main", "1 main.7777*9999", "2 main.7777", "2 main.5000"]);
    assert_eq!(rows[13], "2 main.8000");
}

#[test]
fn chain_of_2000_descendants_is_listed() {
    let mut id = "main".to_owned();
    let mut entries = Vec::new();
    for _ in 0..2000 {
        entries.push(entry(&id, "A.md", PERMIT));
        id.push_str(".1");
    }
    assert_eq!(tree(&entries).len(), 2000);
}
