//! Reads that the change log answers, and what an earlier raymond has left.

use super::super::FactListing;
use super::{Place, step};

/// Returns the facts of a label as `key=value`.
#[track_caller]
fn labelled(place: &Place, label: &str) -> Vec<String> {
    let FactListing { facts, warnings } = place.space.labelled(label).expect("listed");
    assert_eq!(warnings, Vec::<String>::new());
    facts.into_iter().map(|fact| format!("{}={}", fact.key, fact.value)).collect()
}

#[test]
fn facts_of_a_label_are_read_from_the_log_and_unknown_ones_from_files() {
    let mut place =
        Place::with(&[("a", "k", "1"), ("a", "l", "1"), ("a", "m", "1"), ("b", "k", "1")]);
    let file = |key: &str| place.path(&format!("facts/a/{key}.json"));
    std::fs::write(file("k"), "nobody reads this").expect("written");
    std::fs::remove_file(file("l")).expect("removed by hand");
    let text = std::fs::read_to_string(file("m")).expect("read");
    std::fs::write(file("n"), text.replace("\"m\"", "\"n\"")).expect("put there by hand");
    assert_eq!(labelled(&place, "a"), ["k=1", "m=1", "n=1"]);
    assert_eq!(labelled(&place, "c"), Vec::<String>::new());
    let fact = place.fact("a", "k").expect("the log says so");
    assert_eq!(place.claim(&fact, &step("r", 1)), None, "its file does not");
    place.assert("b", "l", "1", None);
    assert_eq!(
        place.space.labelled("a").expect("listed").warnings.len(),
        1,
        "it is looked at again"
    );
    place.assert("a", "k", "2", None);
    place.space.room = 0;
    place.assert("b", "k", "2", None);
    place.assert("b", "k", "3", None);
    assert_eq!(place.logged(), 2, "all others are in front of them");
    assert_eq!(labelled(&place, "a"), ["k=2", "m=1", "n=1"]);
    std::fs::write(place.path("facts/b/k.json"), "{").expect("damaged");
    assert_eq!(place.space.labelled("b").expect("listed").warnings.len(), 1, "the last is read");
}

#[test]
fn long_fact_is_left_to_its_file() {
    let mut place = Place::with(&[("a", "k", &"\u{1}".repeat(100_000)), ("a", "l", "1")]);
    place.space.room = 0;
    place.assert("b", "k", "1", None);
    assert!(place.path("changes").metadata().expect("there").len() < 2000);
    assert_eq!(place.holds().len(), 3);
    assert_eq!(labelled(&place, "a").len(), 2);
}

#[test]
fn assertion_that_an_earlier_raymond_has_marked_is_made_once() {
    let place = Place::with(&[("a", "k", "1")]);
    let (own, draft) = (step("r", 7), place.path("outgoing/r~main-7.json"));
    for folder in ["done", "outgoing"] {
        std::fs::create_dir_all(place.path(folder)).expect("made");
    }
    let mark = "{\"step\":7,\"deed\":\"assert\",\"label\":\"b\",\"key\":\"k\",\"seq\":5}";
    std::fs::write(place.path("done/r~main.json"), mark).expect("written");
    assert!(!place.assert("b", "k", "1", Some(&own)).is_new, "it was made, and taken");
    std::fs::write(&draft, "{}").expect("written");
    assert!(place.assert("b", "k", "1", Some(&own)).is_new, "it is still to be made");
    assert!(!draft.exists());
    place.retract("b", "k", None);
    assert!(!place.assert("b", "k", "1", Some(&own)).is_new);
}

#[test]
fn log_of_an_earlier_raymond_begins_anew_with_all_facts() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1")]);
    let lines =
        "{\"generation\":\"x\",\"from\":1}\n[1,\"a\",\"k\"]\n[2,\"a\",\"l\"]\n[7,\"a\",\"l\"]\n";
    std::fs::write(place.path("changes"), lines).expect("written");
    std::fs::write(place.path("lock"), "").expect("written");
    assert_eq!(labelled(&place, "a"), ["k=1", "l=1"]);
    assert_eq!(place.assert("a", "m", "1", None).fact.map(|fact| fact.seq), Some(8));
    let text = std::fs::read_to_string(place.path("changes")).expect("read");
    assert_eq!((text.lines().count(), place.logged()), (4, 1), "{text}");
    assert_eq!(labelled(&place, "a"), ["k=1", "l=1", "m=1"]);
}
