//! Values that wait behind others: they are taken in their order, each once, also after a kill or a power cut.

use super::super::{Dataspace, FactStatement, InvalidFact};
use super::killed::{carry_out, dies_at, points_in};
use super::torn::cut_power;
use super::{Place, step};
use crate::Error;
use raymond_model::time::Timestamp;

fn append(space: &Dataspace, value: &str) -> Result<usize, Error> {
    let (label, key, source, at) = ("a", "k", "test", Timestamp(1));
    space.append(FactStatement { label, key, value, source, at }).map(|appended| appended.before)
}

/// Returns a place in which the values 1, 2 and 3 wait.
fn place() -> Place {
    let place = Place::new();
    for (value, before) in [("1", 0), ("2", 1), ("3", 2)] {
        assert_eq!(append(&place.space, value).expect("appended"), before);
    }
    place
}

/// Takes all values, each with a step of its own.
fn take_all(place: &Place) -> Vec<String> {
    let mut taken = Vec::new();
    while let Some(fact) = place.fact("a", "k") {
        let number = 100 + taken.len() as u64;
        let claimed = place.claim(&fact, &step("other", number)).expect("it holds");
        assert_eq!(claimed, fact);
        taken.push(claimed.value);
    }
    taken
}

#[test]
fn values_are_taken_in_their_order() {
    let place = place();
    assert_eq!(place.holds(), ["a k=1"], "the oldest holds");
    let first = place.fact("a", "k").expect("it holds");
    assert_eq!(place.claim(&first, &step("r", 1)), Some(first.clone()));
    assert_eq!(place.claim(&first, &step("r", 1)), Some(first.clone()), "it has it already");
    assert_eq!(place.claim(&first, &step("s", 1)), None, "it is taken");
    append(&place.space, "2").expect("appended");
    assert_eq!(take_all(&place), ["2", "3", "2"]);
    assert!(place.holds().is_empty());
}

#[test]
fn replaced_or_retracted_fact_loses_values_behind_it() {
    let place = place();
    let asserted = place.assert("a", "k", "1", None);
    assert_eq!((asserted.is_new, asserted.dropped), (false, 0));
    let asserted = place.assert("a", "k", "new", None);
    assert_eq!((asserted.replaced.map(|fact| fact.value), asserted.dropped), (Some("1".into()), 2));
    assert_eq!(take_all(&place), ["new"]);
    let place = self::place();
    assert!(place.retract("a", "k", None));
    assert!(place.holds().is_empty());
}

#[test]
fn too_many_values_are_refused() {
    let place = place();
    let large = "x".repeat(600 * 1024);
    append(&place.space, &large).expect("appended");
    let full = append(&place.space, &large).expect_err("too long together");
    assert!(matches!(full, Error::Unfit(InvalidFact::Full { .. })), "{full}");
    assert_eq!(take_all(&place).len(), 4);
}

#[test]
fn values_survive_power_cut() {
    let place = place();
    let first = place.fact("a", "k").expect("it holds");
    place.claim(&first, &step("r", 1));
    append(&place.space, "4").expect("appended");
    cut_power(&place);
    assert_eq!(take_all(&place), ["2", "3", "4"]);
}

#[test]
fn value_is_taken_once_however_its_taker_is_killed() {
    let points = points_in(place, "claim");
    assert!(points.contains(&("dataspace.noted", 1)), "{points:?}");
    for (point, time) in points {
        let place = place();
        assert!(dies_at(&place, "claim", point, time));
        assert_eq!(carry_out(&place.space, "claim"), "1", "{point}, {time}");
        assert_eq!(take_all(&place), ["2", "3"], "{point}, {time}");
    }
}

#[test]
fn killed_append_leaves_all_values_whole() {
    for (point, time) in points_in(place, "append") {
        let place = place();
        assert!(dies_at(&place, "append", point, time));
        let mut taken = take_all(&place);
        taken.retain(|value| value != "4");
        assert_eq!(taken, ["1", "2", "3"], "{point}, {time}");
    }
}
