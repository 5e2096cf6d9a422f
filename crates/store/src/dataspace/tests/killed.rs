//! A writer that is killed at every possible point, and the same step again.

use super::super::{Dataspace, DataspaceStep, DataspaceWatcher, FactStatement};
use super::old::killed_store;
use super::together::{child, given, tell};
use super::{Place, step};
use crate::fault::POINTS;
use raymond_model::fact::{FactSelection, KnownFacts};

/// The operation of a step; `a k` holds before it.
const DEEDS: [&str; 6] = ["assert", "replace", "retract", "claim", "signal", "unsignal"];

/// The facts that are left when a step has run.
const LEFT: [&[&str]; 6] = [&["a k=1", "b k=1"], &["a k=2"], &[], &[], &["a k=1", "c k=1"], &[]];

fn own_step() -> DataspaceStep {
    step("r", 7)
}

/// Runs a step; returns its outcome.
pub(super) fn carry_out(space: &Dataspace, deed: &str) -> String {
    let statement = |label, value| FactStatement {
        label,
        key: "k",
        value,
        source: "test",
        at: raymond_model::time::Timestamp(1),
    };
    let asserted = |statement, step| {
        let assertion = space.assert(statement, step).expect("asserted");
        assertion.fact.map(|fact| fact.value).unwrap_or_default()
    };
    match deed {
        "assert" => asserted(statement("b", "1"), Some(&own_step())),
        "replace" => asserted(statement("a", "2"), Some(&own_step())),
        "signal" => asserted(statement("c", "1"), None),
        "retract" => space.retract("a", "k", Some(&own_step())).expect("retracted").to_string(),
        "append" => {
            let appended = space.append(statement("a", "4")).expect("appended");
            appended.fact.value
        }
        "unsignal" => space.retract("a", "k", None).map(|_| String::new()).expect("retracted"),
        _ => {
            let fact = space.claim("a", "k", 1, &own_step()).expect("tried");
            fact.map(|fact| fact.value).unwrap_or_default()
        }
    }
}

#[test]
fn helper_process_performs_given_operation() {
    if let Some((space, deed)) = given() {
        carry_out(&space, &deed);
    }
}

/// Kills a process that runs a step when it reaches a point for the `time`th time; returns whether it did.
pub(super) fn dies_at(place: &Place, deed: &str, point: &str, time: u32) -> bool {
    let mut command = child("killed::helper_process_performs_given_operation");
    command.env("RAYMOND_FAILPOINT", format!("{point}:{time}"));
    let status = tell(&mut command, place, deed).status().expect("ended");
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(killed || status.success(), "{deed}, {point}, {time}: {status}");
    killed
}

/// Returns the points that a step reaches in places like this, each with a count from 1.
pub(super) fn points_in(place: fn() -> Place, deed: &str) -> Vec<(&'static str, u32)> {
    let deadly = |&(point, time): &(&str, u32)| dies_at(&place(), deed, point, time);
    let points = POINTS.into_iter().filter(|point| {
        ["dataspace.", "replace.", "migrate."].iter().any(|points| point.starts_with(points))
    });
    points
        .flat_map(|point| {
            (1..=6).map(move |time| (point, time)).take_while(deadly).collect::<Vec<_>>()
        })
        .collect()
}

fn points(deed: &str) -> Vec<(&'static str, u32)> {
    points_in(|| Place::with(&[("a", "k", "1")]), deed)
}

#[test]
fn step_repeated_after_kill_in_migration_gives_same_result() {
    for (deed, left) in DEEDS.into_iter().zip(LEFT) {
        let points = points_in(killed_store, deed);
        for point in [
            ("migrate.noted", 1),
            ("migrate.aside", 1),
            ("migrate.begun", 1),
            ("migrate.removed", 3),
            ("replace.written", 3),
            ("dataspace.noted", 1),
        ] {
            assert!(points.contains(&point), "{deed}: {points:?}");
        }
        for (point, time) in points {
            let place = killed_store();
            assert!(dies_at(&place, deed, point, time));
            let before = place.holds();
            carry_out(&place.space, deed);
            assert_eq!(place.holds(), left, "{deed}, {point}, {time}");
            assert!(before == ["a k=1"] || before == left, "{deed}, {point}, {time}: {before:?}");
        }
    }
}

#[test]
fn step_repeated_after_kill_at_any_point_gives_same_result() {
    for (deed, left) in DEEDS.into_iter().zip(LEFT) {
        let whole = Place::with(&[("a", "k", "1")]);
        let outcome = carry_out(&whole.space, deed);
        assert_eq!(whole.holds(), left, "{deed}");
        let points = points(deed);
        for point in ["dataspace.written", "dataspace.noted", "dataspace.applied"] {
            assert!(points.contains(&(point, 1)), "{deed}: {points:?}");
        }
        for (point, time) in points {
            let place = Place::with(&[("a", "k", "1")]);
            assert!(dies_at(&place, deed, point, time));
            assert_eq!(carry_out(&place.space, deed), outcome, "{deed}, {point}, {time}");
            assert_eq!(place.holds(), left, "{deed}, {point}, {time}");
        }
    }
}

#[test]
fn change_left_by_killed_writer_is_seen_once_next_writer_makes_it() {
    for (point, time) in points("assert") {
        let place = Place::with(&[("a", "k", "1")]);
        assert!(dies_at(&place, "assert", point, time));
        let mut watch = DataspaceWatcher::new(place.space.clone());
        let selection = FactSelection::of_labels(&["b".to_owned()]);
        let mut look = || {
            let changes = watch.changes(&selection, &KnownFacts::default()).expect("looked at");
            changes.changes.len()
        };
        let seen = look();
        carry_out(&place.space, "assert");
        assert!(seen + look() > 0, "{point}, {time}");
    }
}

/// Between the two runs another agent takes the asserted fact, or asserts the retracted one.
#[test]
fn step_repeated_after_kill_leaves_newer_changes_alone() {
    for (point, time) in points("assert") {
        let place = Place::with(&[("a", "k", "1")]);
        assert!(dies_at(&place, "assert", point, time));
        let was_there = place.fact("b", "k");
        let mut times = 0;
        if let Some(fact) = &was_there {
            times += usize::from(place.claim(fact, &step("other", 1)).is_some());
        }
        carry_out(&place.space, "assert");
        times += usize::from(place.fact("b", "k").is_some());
        assert_eq!(times, 1, "{point}, {time}");
    }
    for (point, time) in points("retract") {
        let place = Place::with(&[("a", "k", "1")]);
        assert!(dies_at(&place, "retract", point, time));
        let was_logged = place.logged() > 1;
        place.assert("a", "k", "since", None);
        carry_out(&place.space, "retract");
        assert_eq!(place.fact("a", "k").is_some(), was_logged, "{point}, {time}");
    }
}
