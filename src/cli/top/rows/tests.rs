//! The tree and the list, small and with ten thousand agents.

use super::*;
use crate::cli::top::agents::{Doing, Why};
use crate::domain::apply::tests::scene::{agent_id, state};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;

pub(in crate::cli::top) fn entry(id: &str, name: &str, doing: Doing) -> Entry {
    let over = matches!(doing, Doing::Ended | Doing::Failed);
    Entry {
        id: agent_id(id),
        state: (!over).then(|| state(name)),
        doing,
        since: Some(Timestamp(0)),
        spent: Usd::ZERO,
        ended: over.then_some(0),
    }
}

const PERMIT: Doing = Doing::Waiting(Why::Permit);

/// Each row as `depth id`, or `depth id*count` for many.
pub(in crate::cli::top) fn shown(entries: &[Entry], rows: &[Row]) -> Vec<String> {
    let text = |row: &Row| match row {
        Row::Agent { entry, depth } => format!("{depth} {}", entries[*entry].id),
        Row::Many { entry, depth, count, .. } => format!("{depth} {}*{count}", entries[*entry].id),
    };
    rows.iter().map(text).collect()
}

fn tree(entries: &[Entry]) -> Vec<String> {
    shown(entries, &rows(entries, &Filter::default(), &HashSet::new()))
}

#[test]
fn the_stuck_and_the_busy_come_first_with_their_parents() {
    let entries = [
        entry("main", "A.md", PERMIT),
        entry("main.1", "B.md", PERMIT),
        entry("main.2", "B.md", PERMIT),
        entry("main.2.1", "C.md", Doing::Running),
        entry("main.3", "B.md", Doing::Ended),
        entry("main.3.1", "C.md", Doing::Silent),
        entry("main.10", "B.md", PERMIT),
    ];
    let expected =
        ["0 main", "1 main.3", "2 main.3.1", "1 main.2", "2 main.2.1", "1 main.1", "1 main.10"];
    assert_eq!(tree(&entries), expected);
}

#[test]
fn siblings_that_do_the_same_are_one_row_until_it_is_opened() {
    let mut entries = vec![entry("main", "A.md", PERMIT)];
    for number in 1..=7 {
        entries.push(entry(&format!("main.{number}"), "B.md", PERMIT));
    }
    entries.push(entry("main.3.1", "C.md", PERMIT));
    entries.push(entry("main.8", "C.md", PERMIT));
    entries.push(entry("main.9", "B.md", Doing::Waiting(Why::Backoff(Timestamp(9)))));
    let folded = ["0 main", "1 main.9", "1 main.1*6", "1 main.3", "2 main.3.1", "1 main.8"];
    assert_eq!(tree(&entries), folded, "whoever has children stands alone");

    let rows_of = |opened: &HashSet<Alike>| rows(&entries, &Filter::default(), opened);
    let alike = rows_of(&HashSet::new()).into_iter().find_map(|row| match row {
        Row::Many { alike, .. } => Some(alike),
        Row::Agent { .. } => None,
    });
    let opened: HashSet<Alike> = alike.into_iter().collect();
    let rows = rows_of(&opened);
    assert_eq!(shown(&entries, &rows)[2..5], ["1 main.1*6", "2 main.1", "2 main.2"]);
    assert!(matches!(rows[2], Row::Many { open: true, .. }));
}

#[test]
fn what_has_ended_is_folded_with_all_below_it_but_not_with_what_lives() {
    let mut entries = vec![entry("main", "A.md", Doing::Ended)];
    for number in 1..=6 {
        entries.push(entry(&format!("main.{number}"), "", Doing::Ended));
        entries.push(entry(&format!("main.{number}.1"), "", Doing::Ended));
    }
    entries.push(entry("main.6.2", "B.md", Doing::Running));
    let expected = ["0 main", "1 main.6", "2 main.6.2", "2 main.6.1", "1 main.1*5"];
    assert_eq!(tree(&entries), expected);
}

#[test]
fn those_that_run_are_shown_each() {
    let all: Vec<Entry> =
        (1..=20).map(|n| entry(&format!("main.{n}"), "B.md", Doing::Running)).collect();
    assert_eq!(tree(&all).len(), 20);
}

#[test]
fn a_filter_gives_a_list_by_number() {
    let entries = [
        entry("main", "PLAN.md", PERMIT),
        entry("main.10", "Work.md", PERMIT),
        entry("main.2", "Work.md", PERMIT),
        entry("main.2.1", "Work.md", Doing::Running),
        entry("main.3", "Work.md", Doing::Failed),
    ];
    let list = |text: &str, kind| {
        let filter = Filter { text: text.to_owned(), kind };
        shown(&entries, &rows(&entries, &filter, &HashSet::new()))
    };
    assert_eq!(list("work", None), ["0 main.2.1", "0 main.2", "0 main.10"]);
    assert_eq!(list("main.2", None), ["0 main.2.1", "0 main.2"]);
    assert_eq!(list("", Some(Kind::Waiting)), ["0 main", "0 main.2", "0 main.10"]);
    assert_eq!(list("", Some(Kind::Failed)), ["0 main.3"]);
    assert_eq!(list("plan", Some(Kind::Running)), [""; 0]);
}

#[test]
fn ten_thousand_are_a_handful_of_rows() {
    let mut entries = vec![entry("main", "PLAN.md", PERMIT)];
    for number in 1..10_000 {
        let doing = match number {
            5000..5016 => Doing::Running,
            7777 => Doing::Silent,
            1..3000 => Doing::Ended,
            _ => PERMIT,
        };
        entries.push(entry(&format!("main.{number}"), "WORK.md", doing));
    }
    let rows = tree(&entries);
    assert_eq!(rows.len(), 1 + 1 + 16 + 1 + 1);
    assert_eq!(rows[..3], ["0 main", "1 main.7777", "1 main.5000"]);
    assert_eq!(rows[18..], ["1 main.3000*6983", "1 main.1*2999"]);
}

#[test]
fn a_chain_of_any_length_is_no_trouble() {
    let mut id = "main".to_owned();
    let mut entries = Vec::new();
    for _ in 0..2000 {
        entries.push(entry(&id, "A.md", PERMIT));
        id.push_str(".1");
    }
    assert_eq!(tree(&entries).len(), 2000);
}
