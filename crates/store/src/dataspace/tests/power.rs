//! A power cut: the log is as it was flushed, and the files that it names are as old as can be.

use super::super::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use super::{Place, step};
use crate::dataspace::write::ChangeLogContent;

/// Cuts the power: the log is of another boot, and each file that it names is gone, or has its oldest content.
pub(super) fn cut_power(place: &Place) {
    let Ok(Some(log)) = ChangeLogContent::read(&place.path("changes")) else { return };
    let mut header = log.header.clone();
    header.boot = Some("another".to_owned());
    let mut text = serde_json::to_vec(&header).expect("a header");
    text.push(b'\n');
    text.extend_from_slice(&log.lines);
    std::fs::write(place.path("changes"), text).expect("written");
    let lines = || log.lines.split(|&byte| byte == b'\n');
    let entries: Vec<ChangeLogEntry> =
        lines().filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let before = lines().filter_map(|line| serde_json::from_slice::<ProvenFact>(line).ok());
    let changed = entries.iter().filter_map(|entry| match &entry.3 {
        Some(LoggedChange::Asserted { fact, .. } | LoggedChange::Claimed { fact, .. }) => {
            Some(fact.clone())
        }
        _ => None,
    });
    let oldest: Vec<ProvenFact> = before.chain(changed).collect();
    for ChangeLogEntry(seq, label, key, _) in &entries {
        let Ok(path) = place.space.fact(label, key) else { continue };
        let oldest =
            oldest.iter().find(|fact| (&fact.value.label, &fact.value.key) == (label, key));
        match oldest.filter(|_| seq % 2 == 0) {
            // What is no file stays.
            Some(fact) => drop(place.space.put(fact)),
            None => drop(std::fs::remove_file(&path)),
        }
    }
    for step in entries.iter().filter_map(ChangeLogEntry::step) {
        for path in [place.space.mark_of(step), place.space.claim_of(step)] {
            super::super::step::remove(&path).expect("removed");
        }
    }
}

/// Returns the facts that hold, and the files of steps.
fn state(place: &Place) -> (Vec<String>, Vec<String>) {
    let mut kept = place.kept();
    kept.sort();
    (place.holds(), kept)
}

#[test]
fn power_cut_loses_no_logged_change() {
    let place = Place::with(&[("a", "k", "1"), ("b", "k", "1"), ("c", "k", "1"), ("d", "k", "1")]);
    let c = place.fact("c", "k").expect("it holds");
    let [asserts, claims, retracts] = [7, 8, 9].map(|number| step("r", number));
    let other = step("s", 1);
    place.assert("a", "k", "2", None);
    place.assert("e", "k", "1", Some(&asserts));
    place.retract("b", "k", None);
    place.claim(&c, &claims).expect("taken");
    place.assert("c", "k", "again", Some(&other));
    place.retract("d", "k", Some(&retracts));
    place.assert("d", "k", "again", None);
    let mut before = state(&place);
    assert_eq!(before.0, ["a k=2", "c k=again", "d k=again", "e k=1"]);
    for read_first in [true, false] {
        let new = place.space.all_facts().expect("listed").facts;
        cut_power(&place);
        let old = place.space.all_facts().expect("listed").facts;
        assert_ne!(old, new, "they are as before");
        if read_first {
            let fact = place.fact("a", "k");
            assert_eq!(fact.map(|fact| fact.value), Some("2".into()), "a reader has it all again");
        }
        assert!(!place.assert("c", "k", "again", Some(&other)).is_new);
        assert_eq!(state(&place).0, before.0);
        assert_eq!(place.logged(), 0, "it has begun anew");
        assert!(place.retract("d", "k", Some(&retracts)), "the same answer");
        assert_eq!(state(&place).0, before.0);
        place.assert("a", "k", &format!("read first: {read_first}"), None);
        before = state(&place);
    }
    assert_eq!(place.claim(&c, &step("t", 1)), None, "it was taken");
}

#[test]
fn claim_and_marks_come_back_until_their_run_has_ended() {
    let place = Place::with(&[("a", "k", "1"), ("b", "k", "1")]);
    let a = place.fact("a", "k").expect("it holds");
    let own = step("r", 7);
    place.claim(&a, &own).expect("taken");
    place.assert("c", "k", "1", Some(&step("r.1", 3)));
    cut_power(&place);
    assert_eq!(place.space.claimed(&own).expect("read"), None);
    assert_eq!(place.claim(&a, &own), Some(a.clone()), "the same step again");
    place.retract("b", "k", Some(&step("r", 8)));
    place.space.settled(&step("r", 9)).expect("settled");
    place.space.ended(&own.run).expect("ended");
    let before = state(&place);
    assert_eq!(before.1, ["r.1~main.json"]);
    cut_power(&place);
    assert_eq!(state(&place).0, before.0);
    place.retract("none", "k", None);
    assert_eq!(state(&place), before, "nothing of the run that has ended");
    assert!(place.retract("c", "k", Some(&own)), "its id may be used again");
}

#[test]
fn log_of_unknown_boot_is_applied_by_next_writer() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1")]);
    cut_power(&place);
    let text = std::fs::read_to_string(place.path("changes")).expect("read");
    let text = text.replace("\"boot\":\"another\",", "");
    std::fs::write(place.path("changes"), text).expect("written");
    assert!(place.space.facts().expect("listed").facts.len() < 2, "readers do not know");
    place.assert("a", "m", "1", None);
    assert_eq!(place.holds(), ["a k=1", "a l=1", "a m=1"]);
}
