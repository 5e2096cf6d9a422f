//! A power cut or a killed writer: what was acknowledged is there, and a torn line behind it is cut off.

use super::{Place, step};
use std::io::Write;

/// Cuts the power while a change is appended: a part of its line is there.
pub(super) fn cut_power(place: &Place) {
    let Ok(mut file) = std::fs::File::options().append(true).open(place.path("facts")) else {
        return;
    };
    file.write_all(b"{\"format\":2,\"seq\":9,\"label\":\"a\",\"key\"").expect("written");
}

#[test]
fn power_cut_loses_no_acknowledged_change() {
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
    let (holds, kept, whole) = (place.holds(), place.kept(), place.lines());
    assert_eq!(holds, ["a k=2", "c k=again", "d k=again", "e k=1"]);
    cut_power(&place);
    let mut place = place.reopened();
    assert_eq!((place.holds(), place.kept()), (holds.clone(), kept.clone()), "readers see no part");
    assert!(place.retract("d", "k", Some(&retracts)), "the same answer");
    assert!(!place.assert("c", "k", "again", Some(&other)).is_new);
    assert_eq!((place.holds(), place.lines()), (holds.clone(), whole), "it is cut off");
    place.space.room = 0;
    assert!(!place.assert("c", "k", "again", Some(&other)).is_new);
    assert_eq!(place.logged(), 0, "the journal has begun again");
    let place = place.reopened();
    assert_eq!((place.holds(), place.kept()), (holds, kept));
    assert!(place.retract("d", "k", Some(&retracts)), "the same answer");
    assert_eq!(place.claim(&c, &step("t", 1)), None, "it was taken");
}

#[test]
fn claim_and_marks_are_kept_until_their_run_has_ended() {
    let mut place = Place::with(&[("a", "k", "1"), ("b", "k", "1")]);
    let a = place.fact("a", "k").expect("it holds");
    let asking = step("r", 7);
    place.claim(&a, &asking).expect("taken");
    place.assert("c", "k", "1", Some(&step("r.1", 3)));
    cut_power(&place);
    place = place.reopened();
    assert_eq!(place.claim(&a, &asking), Some(a.clone()), "the same step again");
    place.retract("b", "k", Some(&step("r", 8)));
    place.space.ended(&asking.run).expect("ended");
    assert_eq!(place.kept(), ["r.1~main"]);
    cut_power(&place);
    place = place.reopened();
    assert_eq!(place.kept(), ["r.1~main"], "nothing of the run that has ended");
    assert!(place.retract("c", "k", Some(&asking)), "its id may be used again");
}

#[test]
fn newer_line_is_refused_and_kept_torn_or_not() {
    let place = Place::with(&[("a", "k", "1")]);
    let whole = place.lines().join("\n") + "\n";
    for newer in ["{\"format\":3,\"seq\":2,\"x\":1}\n", "{\"format\":3,\"seq\":2,\"x\""] {
        let text = whole.clone() + newer;
        std::fs::write(place.path("facts"), &text).expect("written");
        let errors = [
            place.space.facts().map(drop).expect_err("newer"),
            place.space.retract("a", "k", None).map(drop).expect_err("newer"),
        ];
        for error in errors.map(|error| error.to_string()) {
            assert!(error.contains("facts: version 3 is newer than 2"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(place.path("facts")).expect("read"), text);
    }
}

#[test]
fn journal_that_outgrows_its_limit_begins_again_and_the_limit_grows_with_the_facts() {
    let mut place = Place::with(&[("long", "k", &"x".repeat(5_000))]);
    place.space.room = 200;
    let mut headers = std::collections::BTreeSet::new();
    for number in 0..200 {
        place.assert("a", "k", &number.to_string(), None);
        assert!(place.path("facts").metadata().expect("there").len() < 12_000);
        headers.insert(place.lines()[0].clone());
    }
    assert!((3..15).contains(&headers.len()), "{headers:?}");
    assert_eq!(place.holds().len(), 2);
}

#[test]
fn torn_line_is_cut_off_however_long_it_is() {
    let place = Place::with(&[("a", "k", "1")]);
    let whole = std::fs::read(place.path("facts")).expect("read");
    let line = place.lines().pop().expect("a change");
    for torn in ["", "{", "{\"format\":2", &line, &"x".repeat(100_000)] {
        std::fs::write(place.path("facts"), [&whole[..], torn.as_bytes()].concat()).expect("torn");
        assert_eq!(place.holds(), ["a k=1"], "{torn}");
        assert!(!place.retract("a", "none", None));
        assert_eq!(std::fs::read(place.path("facts")).expect("read"), whole, "{torn}");
    }
    assert_eq!(place.assert("a", "l", "1", None).fact.map(|fact| fact.seq), Some(2));
}
