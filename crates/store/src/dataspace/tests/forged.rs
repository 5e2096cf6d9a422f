//! Forged lines of the journal: none is believed, and none is in the way.

use super::{Place, at, step};
use crate::dataspace::journal::{LoggedChange, NamedChange};
use crate::proof::ProofKey;
use crate::record::frame;

fn place() -> Place {
    let mut place = Place::new();
    place.space = place.space.clone().with_key(&ProofKey::new("k"));
    place.assert("a", "k", "1", None);
    place.assert("b", "k", "1", None);
    place
}

/// Returns a change by somebody who has another key, or none.
fn by_other(seq: u64, (label, key): (&str, &str), change: LoggedChange) -> [String; 2] {
    let change = NamedChange::new(label, key, change);
    let other = ProofKey::new("other");
    [None, Some(&other)].map(|key| frame(seq, &change, key).expect("a line"))
}

/// Returns lines that no writer has written.
fn forged(place: &Place) -> Vec<String> {
    let state = place.space.current().expect("read").state.clone();
    let mut fact = state.held("a", "k").cloned().expect("it holds");
    let retracted = || LoggedChange::Retracted { seq: 1, step: None };
    let mut lines = place.lines();
    lines.push(lines[1].replace("\"seq\":1,", "\"seq\":3,"));
    lines.extend(["{}", "x", "\0\0", ""].map(str::to_owned));
    for seq in [3, 3_000, u64::MAX] {
        lines.extend(by_other(seq, ("a", "k"), retracted()));
        lines.extend(by_other(seq, ("q", "q"), retracted()));
        fact.value = "evil".to_owned();
        fact.seq = seq;
        let asserted = LoggedChange::Asserted { fact: fact.clone(), step: None };
        lines.extend(by_other(seq, ("a", "k"), asserted.clone()));
        lines.extend(by_other(seq, ("c", "k"), asserted));
        let step = step("r", 7);
        let claimed = LoggedChange::Claimed { fact: fact.clone(), step, next: None };
        lines.extend(by_other(seq, ("a", "k"), claimed));
        let run = super::step("r", 1).run;
        lines.extend(by_other(seq, ("", ""), LoggedChange::RunEnded { run }));
    }
    lines
}

#[test]
fn forged_line_is_not_believed() {
    for line in forged(&place()) {
        let place = place();
        let mut lines = place.lines();
        let is_replayed = lines.last() == Some(&line);
        lines.push(line.clone());
        place.write_lines(&lines);
        let place = place.reopened();
        let listing = place.space.facts().expect("listed");
        assert_eq!(
            (listing.facts.len(), listing.warnings.len()),
            (2, usize::from(!is_replayed)),
            "{line}"
        );
        place.assert("d", "k", "1", Some(&step("r", 1)));
        let facts = place.space.facts().expect("listed").facts;
        let facts: Vec<_> =
            facts.iter().map(|fact| (&*fact.label, &*fact.value, fact.seq)).collect();
        assert_eq!(facts, [("a", "1", 1), ("b", "1", 2), ("d", "1", 3)], "{line}");
        assert_eq!(place.space.claimed(&step("r", 7)).expect("read"), None);
    }
}

#[test]
fn unsound_change_with_a_proof_is_not_believed() {
    let place = place();
    let fact =
        place.space.current().expect("read").state.held("a", "k").cloned().expect("it holds");
    let long = "k".repeat(300);
    let retracted = || LoggedChange::Retracted { seq: 1, step: None };
    let asserted = || LoggedChange::Asserted { fact: fact.clone(), step: None };
    let names = [("c", "k", asserted()), ("../x", &*long, retracted()), ("", "k", retracted())];
    for (label, key, change) in names {
        let change = NamedChange::new(label, key, change);
        let mut lines = place.lines();
        lines.push(frame(3, &change, place.space.key.as_ref()).expect("a line"));
        place.write_lines(&lines);
        assert_eq!(place.space.facts().expect("listed").facts.len(), 2);
        lines.pop();
        place.write_lines(&lines);
    }
    assert_eq!(place.holds(), ["a k=1", "b k=1"]);
}

#[test]
fn facts_of_another_user_are_kept_in_a_new_journal() {
    let mut place = place();
    let trusted = place.space.clone();
    place.space = at(place.dir.path()).with_key(&ProofKey::new("other"));
    place.space.room = 0;
    let listing = place.space.facts().expect("listed");
    assert!(listing.facts.is_empty() && listing.warnings.len() == 3, "{listing:?}");
    assert!(listing.warnings[1].contains("it has no proof that you or your runs wrote it"));
    assert!(place.assert("a", "l", "theirs", None).is_new);
    assert!(place.assert("a", "m", "theirs", None).is_new);
    place.space = trusted;
    let place = place.reopened();
    let values = place.space.facts().expect("listed").facts;
    assert_eq!(values.iter().map(|fact| &*fact.label).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn journal_must_be_a_plain_file() {
    let place = place();
    std::fs::remove_file(place.path("facts")).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", place.path("facts")).expect("linked");
    let error = place.space.facts().expect_err("a link").to_string();
    assert!(error.contains("facts: cannot open: it is a symbolic link"), "{error}");
    place.space.retract("a", "k", None).expect_err("a link");
}

#[test]
fn end_of_a_run_without_steps_waits_for_no_writer() {
    let place = place();
    let lock = std::fs::File::open(place.path("lock")).expect("opened");
    lock.lock().expect("locked");
    place.space.ended(&step("r", 1).run).expect("nothing to do");
}
