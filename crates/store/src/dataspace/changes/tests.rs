//! Tests of the change log's file: its numbers, its limit, and what is no line of it.

use super::*;
use crate::dataspace::write::{ChangeLogContent, lines};

const ROOM: u64 = 200;

/// Opens the log as a writer does that has lost nothing; without one it begins behind 7.
fn open(path: &Path) -> ChangeLog {
    match ChangeLog::open(path).expect("opened") {
        Some(log) if log.last != LastLine::Damaged && !log.is_full(ROOM) => log,
        Some(log) if log.last != LastLine::Damaged => {
            ChangeLog::begin(path, log.next, std::iter::empty()).expect("begun")
        }
        _ => ChangeLog::begin(path, 8, std::iter::empty()).expect("begun"),
    }
}

fn change(seq: u64) -> ChangeLogEntry {
    ChangeLogEntry(seq, "l".into(), "k\n".into(), None)
}

fn note(path: &Path) -> u64 {
    let mut log = open(path);
    let entry = change(log.next);
    log.append(path, &entry).expect("noted");
    entry.0
}

/// Returns the changes as a watcher reads them behind the header.
fn all(path: &Path) -> Option<Vec<(String, String)>> {
    let file = File::open(path).expect("opened");
    let length = file.metadata().expect("there").len();
    let start = header(&file).expect("read").map_or(0, |(_, start)| start);
    lines(&file, start, length).expect("read").map(|lines| lines.changes)
}

#[test]
fn numbering_continues_after_last_complete_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("changes");
    assert_eq!(note(&path), 8);
    let text = std::fs::read(&path).expect("read");
    let torn_entry = format!("[9,\"l\",\"{}", "x".repeat(100_000));
    for torn in ["", "[9,\"l\"", "[9,\"l\",\"k\"]", &torn_entry] {
        std::fs::write(&path, [&text[..], torn.as_bytes()].concat()).expect("torn");
        assert_eq!(all(&path).expect("whole lines"), [("l".into(), "k\n".into())], "{torn}");
        let log = open(&path);
        assert_eq!((log.next, log.entries().expect("read")), (9, vec![change(8)]), "{torn}");
        assert_eq!(std::fs::read(&path).expect("read"), text, "{torn}");
    }
    let header = text.split_inclusive(|&byte| byte == b'\n').next().expect("a header");
    for damaged in [
        &b"\0\0\0\n"[..],
        b"",
        b"{}\n",
        b"[8,\"l\",\"k\"]\n",
        &[header, b"[18446744073709551615,\"l\",\"k\"]\n"].concat(),
        &[header, b"x\n"].concat(),
        b"{\"generation\":\"x\",\"from\":3,\"snapshot\":1000}\n",
        b"{\"generation\":\"x\",\"from\":3,\"snapshot\":18446744073709551615}\n",
    ] {
        std::fs::write(&path, damaged).expect("damaged");
        assert_eq!(open(&path).next, 8, "it begins anew");
    }
}

#[test]
fn changes_file_that_outgrows_its_limit_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("changes");
    let mut generations = std::collections::BTreeSet::new();
    for seq in 8..80 {
        assert_eq!(note(&path), seq);
        let text = std::fs::read_to_string(&path).expect("read");
        assert!(text.len() < 500, "{text}");
        generations.insert(text.lines().next().unwrap_or_default().to_owned());
        let log = ChangeLog::open(&path).expect("opened").expect("a log");
        assert_eq!(log.entries().expect("read").last(), Some(&change(seq)));
    }
    assert!(generations.len() > 5);
}

#[test]
fn invalid_line_makes_changes_unreadable() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("changes");
    std::fs::write(&path, "{}\nxx\n").expect("written");
    assert_eq!(all(&path), None);
}

#[test]
fn changes_of_earlier_raymond_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("changes");
    std::fs::write(&path, "{\"generation\":\"x\",\"from\":3}\n[3,\"l\",\"k\\n\"]\n")
        .expect("written");
    let log = open(&path);
    assert_eq!((log.next, log.entries().expect("read")), (4, vec![change(3)]));
    assert!(!log.header.is_of_this_boot() && !log.header.is_of_other_boot());
}

#[test]
fn limit_grows_with_the_facts_that_the_file_begins_with() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("changes");
    let fact = [b'x'; 1000];
    let mut log = ChangeLog::begin(&path, 1, [&fact[..]].into_iter()).expect("begun");
    assert_eq!(log.header.snapshot, 1001);
    let mut count = 0;
    while !log.is_full(ROOM) {
        log.touch(&path, "l", "k").expect("noted");
        count += 1;
    }
    assert!(count > 20, "{count}");
    let content = ChangeLogContent::read(&path).expect("read").expect("a log");
    assert_eq!(content.end, path.metadata().expect("there").len());
}
