//! The dataspace against a model of it.
//!
//! Facts are asserted, retracted and taken, in any order, by any step, and a watcher looks at any time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::DataspaceWatcher;
use super::torn::cut_power;
use super::{Place, facts, step};
use raymond_model::fact::{Fact, FactChange, FactSelection};

const LABELS: [&str; 3] = ["a", "b/c", "d"];
const KEYS: [&str; 3] = ["", "k", "l m"];

/// An operation on a dataspace: its fact and its value.
#[derive(Debug, Clone)]
enum Deed {
    Assert { name: (usize, usize), value: u8, is_step: bool, again: bool },
    Retract { name: (usize, usize), is_step: bool, again: bool },
    Claim { name: (usize, usize), stale: bool },
    Look { labels: [bool; 3] },
    Forget,
    CutPower,
}

type Model = BTreeMap<(String, String), Fact>;

fn deeds() -> impl Strategy<Value = Deed> {
    let name = || (0..LABELS.len(), 0..KEYS.len());
    prop_oneof![
        4 => (name(), 0u8..3, any::<bool>(), any::<bool>())
            .prop_map(|(name, value, is_step, again)| Deed::Assert { name, value, is_step, again }),
        2 => (name(), any::<bool>(), any::<bool>())
            .prop_map(|(name, is_step, again)| Deed::Retract { name, is_step, again }),
        2 => (name(), any::<bool>()).prop_map(|(name, stale)| Deed::Claim { name, stale }),
        3 => any::<[bool; 3]>().prop_map(|labels| Deed::Look { labels }),
        1 => Just(Deed::Forget),
        1 => Just(Deed::CutPower),
    ]
}

fn names((label, key): (usize, usize)) -> (String, String) {
    (LABELS[label].to_owned(), KEYS[key].to_owned())
}

/// Runs an operation on both, twice if asked for.
fn carry_out(place: &Place, model: &mut Model, deed: &Deed, number: u64) {
    let asking = step("r", number);
    match deed {
        Deed::Assert { name, value, is_step, again } => {
            let (label, key) = names(*name);
            let asking = is_step.then_some(&asking);
            let value = value.to_string();
            let before = model.get(&(label.clone(), key.clone())).cloned();
            let outcome = place.assert(&label, &key, &value, asking);
            let fact = outcome.fact.expect("it holds");
            assert_eq!(outcome.is_new, before.as_ref().is_none_or(|fact| fact.value != value));
            if !outcome.is_new {
                assert_eq!(Some(&fact), before.as_ref());
            }
            let last = model.values().map(|fact| fact.seq).max().unwrap_or(0);
            assert!(!outcome.is_new || fact.seq > last, "numbers rise");
            if *again {
                assert!(!place.assert(&label, &key, &value, asking).is_new);
            }
            model.insert((label, key), fact);
        }
        Deed::Retract { name, is_step, again } => {
            let (label, key) = names(*name);
            let asking = is_step.then_some(&asking);
            let had = model.remove(&(label.clone(), key.clone())).is_some();
            assert_eq!(place.retract(&label, &key, asking), had);
            if *again {
                assert_eq!(place.retract(&label, &key, asking), had && asking.is_some());
            }
        }
        Deed::Claim { name, stale } => {
            let name = names(*name);
            let Some(mut fact) = model.get(&name).cloned() else { return };
            if *stale {
                fact.seq += 1000;
                assert_eq!(place.claim(&fact, &asking), None);
            } else {
                assert_eq!(place.claim(&fact, &asking), model.remove(&name));
                assert_eq!(place.claim(&fact, &asking), Some(fact.clone()), "the same step again");
                assert_eq!(place.claim(&fact, &step("other", number)), None);
            }
        }
        Deed::Look { .. } | Deed::Forget | Deed::CutPower => {}
    }
}

/// Looks, and learns the changes; the watched facts are then known as they are.
fn look(watch: &mut DataspaceWatcher, known: &mut Model, model: &Model, labels: [bool; 3]) {
    let chosen = LABELS.iter().zip(labels).filter(|(_, is_chosen)| *is_chosen);
    let labels: BTreeSet<String> = chosen.map(|(&label, _)| label.to_owned()).collect();
    let before = facts(known.values());
    let news = watch.changes(&FactSelection::of_labels(&labels), &before).expect("looked at");
    assert_eq!(news.warnings, Vec::<String>::new());
    for change in news.changes {
        assert!(before.is_news(&change), "{change:?}");
        match change {
            FactChange::Asserted(fact) => {
                known.insert((fact.label.clone(), fact.key.clone()), fact);
            }
            FactChange::Retracted { label, key } => drop(known.remove(&(label, key))),
        }
    }
    let of_labels = |facts: &Model| {
        let facts = facts.values().filter(|fact| labels.contains(&fact.label));
        facts.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_labels(known), of_labels(model));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn dataspace_and_watcher_match_the_model(
        deeds in proptest::collection::vec(deeds(), 1..40),
        room in 0u64..4000,
    ) {
        let mut place = Place::new();
        place.space.room = room;
        let (mut model, mut known) = (Model::new(), Model::new());
        let mut watch = DataspaceWatcher::new(place.space.clone());
        for (number, deed) in deeds.iter().enumerate() {
            carry_out(&place, &mut model, deed, number as u64 + 1);
            match deed {
                Deed::Look { labels } => look(&mut watch, &mut known, &model, *labels),
                Deed::Forget => watch = DataspaceWatcher::new(place.space.clone()),
                Deed::CutPower => {
                    cut_power(&place);
                    place = place.reopened();
                    watch = DataspaceWatcher::new(place.space.clone());
                }
                _ => {}
            }
            let listing = place.space.facts().expect("listed");
            prop_assert_eq!(&listing.facts, &model.values().cloned().collect::<Vec<_>>());
            let other = super::at(place.dir.path()).facts().expect("listed");
            prop_assert_eq!(other, listing, "another process reads the same");
        }
        look(&mut watch, &mut known, &model, [true; 3]);
    }
}
