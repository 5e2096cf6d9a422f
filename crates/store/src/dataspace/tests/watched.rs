//! The watcher: new facts, facts to look at again, and looks that cost nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

use super::super::{DataspaceWatcher, FactChanges};
use super::{Place, at, facts, step};
use raymond_model::fact::{Fact, FactChange, FactPattern, FactSelection, KnownFacts};

/// A watcher that knows all changes it was told.
struct Watcher {
    watch: DataspaceWatcher,
    known: Vec<Fact>,
}

impl Watcher {
    fn of(place: &Place) -> Self {
        Self { watch: DataspaceWatcher::new(place.space.clone()), known: Vec::new() }
    }

    fn facts(&self) -> KnownFacts {
        facts(self.known.iter())
    }

    /// Returns the changes among the facts of these labels, as `+label key=value` and `-label key`.
    #[track_caller]
    fn changes(&mut self, labels: &[&str]) -> Vec<String> {
        let labels: BTreeSet<String> = labels.iter().map(|&label| label.to_owned()).collect();
        let FactChanges { changes, warnings } = self
            .watch
            .changes(&FactSelection::of_labels(&labels), &self.facts())
            .expect("looked at");
        let mut text: Vec<String> = changes.iter().map(|change| self.learn(change)).collect();
        text.extend(warnings.into_iter().map(|_| "warned".to_owned()));
        text
    }

    fn learn(&mut self, change: &FactChange) -> String {
        let (label, key) = match change {
            FactChange::Asserted(Fact { label, key, .. })
            | FactChange::Retracted { label, key } => (label, key),
        };
        self.known.retain(|fact| (&fact.label, &fact.key) != (label, key));
        if let FactChange::Asserted(fact) = change {
            self.known.push(fact.clone());
            return format!("+{label} {key}={}", fact.value);
        }
        format!("-{label} {key}")
    }
}

const NONE: [&str; 0] = [];

#[test]
fn each_change_is_reported_once() {
    let place = Place::new();
    let mut watcher = Watcher::of(&place);
    assert_eq!(watcher.changes(&["a"]), NONE);
    assert!(!place.space.path.exists(), "who watches makes nothing");
    place.assert("a", "k", "1", None);
    place.assert("b", "k", "1", None);
    assert_eq!(watcher.changes(&["a"]), ["+a k=1"]);
    assert_eq!(watcher.changes(&["a"]), NONE);
    place.assert("a", "k", "2", None);
    place.assert("a", "l", "1", None);
    place.assert("a", "k", "3", None);
    assert_eq!(watcher.changes(&["a"]), ["+a l=1", "+a k=3"]);
    place.retract("a", "l", None);
    let fact = place.fact("a", "k").expect("it holds");
    place.claim(&fact, &step("r", 1)).expect("taken");
    assert_eq!(watcher.changes(&["a"]), ["-a k", "-a l"]);
    assert_eq!(watcher.changes(&["a", "b"]), ["+b k=1"], "a new label: all of it");
    place.assert("a", "k", "4", None);
    assert_eq!(watcher.changes(&["b"]), NONE);
    assert_eq!(watcher.changes(&["a", "b"]), ["+a k=4"], "not watched meanwhile");
    place.retract("a", "k", None);
    assert_eq!(watcher.changes(&["a", "b"]), ["-a k"], "not watched meanwhile");
    place.assert("a", "k", "5", None);
    assert_eq!(
        watcher.changes(&["a", "b c"]),
        ["+a k=5", "warned"],
        "what is no label harms no other"
    );
    assert_eq!(watcher.changes(&["a", "b c"]), NONE);
}

#[test]
fn resumed_run_is_notified_of_changes_it_missed() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1")]);
    let mut first = Watcher::of(&place);
    first.changes(&["a"]);
    place.retract("a", "k", None);
    place.assert("a", "l", "2", None);
    let mut next =
        Watcher { watch: DataspaceWatcher::new(place.space.clone()), known: first.known };
    assert_eq!(next.changes(&["a"]), ["-a k", "+a l=2"]);
    std::fs::remove_dir_all(&place.space.path).expect("removed");
    assert_eq!(next.changes(&["a"]), ["-a l"]);
    assert_eq!(next.changes(&["a"]), NONE);
    place.assert("a", "l", "2", None);
    assert_eq!(next.changes(&["a"]), ["+a l=2"]);
}

#[test]
fn new_generation_of_changes_file_loses_no_change() {
    let mut place = Place::new();
    place.space.room = 100;
    let mut watcher = Watcher::of(&place);
    let mut generations = BTreeSet::new();
    for number in 0..50 {
        let value = number.to_string();
        place.assert("a", "k", &value, None);
        if number % 7 == 0 {
            place.retract("a", "k", None);
            watcher.changes(&["a"]);
            assert_eq!(watcher.known, []);
        } else if number % 3 == 0 {
            watcher.changes(&["a"]);
            assert_eq!(watcher.known[0].value, value);
        }
        let changes = place.path("facts").metadata().expect("there");
        assert!(changes.len() < 1000);
        generations.insert(changes.ino());
    }
    assert!(generations.len() > 1);
}

#[test]
fn change_is_seen_while_a_writer_holds_the_lock() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1")]);
    let mut watcher = Watcher::of(&place);
    assert_eq!(watcher.changes(&["a"]), ["+a k=1", "+a l=1"]);
    place.retract("a", "k", None);
    let writer = File::options().append(true).open(place.path("lock")).expect("opened");
    writer.lock().expect("locked");
    assert_eq!(watcher.changes(&["a"]), ["-a k"]);
    drop(writer);
    assert_eq!(watcher.changes(&["a"]), NONE);
}

#[test]
fn torn_line_is_awaited_and_damaged_line_is_warned_of() {
    let place = Place::with(&[("a", "k", "1")]);
    let mut watcher = Watcher::of(&place);
    watcher.changes(&["a"]);
    let text = std::fs::read_to_string(place.path("facts")).expect("read");
    let other = at(place.dir.path());
    let line = crate::record::frame(
        2,
        &crate::dataspace::journal::NamedChange::new(
            "a",
            "k",
            crate::dataspace::journal::LoggedChange::Retracted { seq: 1, step: None },
        ),
        None,
    );
    let line = line.expect("a line") + "\n";
    std::fs::write(place.path("facts"), format!("{text}{}", "x".repeat(line.len()))).expect("torn");
    assert_eq!(watcher.changes(&["a"]), NONE);
    std::fs::write(place.path("facts"), format!("{text}{line}")).expect("written");
    assert_eq!(watcher.changes(&["a"]), ["-a k"]);
    std::fs::write(place.path("facts"), format!("{text}{line}no line\n")).expect("damaged");
    assert_eq!(watcher.changes(&["a"]), ["warned"]);
    assert_eq!(watcher.changes(&["a"]), NONE);
    assert!(other.facts().expect("listed").warnings[0].contains("facts:4: this is not a fact"));
    assert!(place.assert("a", "k", "2", None).is_new);
    assert_eq!(watcher.changes(&["a"]), ["+a k=2", "warned"]);
}

#[test]
fn only_selected_facts_are_reported_and_another_payload_retracts_them() {
    let mut place = Place::with(&[("a", "k", "no"), ("a", "l", "yes"), ("a", "m", "no")]);
    for room in [u64::MAX, 0] {
        place.space.room = room;
        place.assert("b", "k", &room.to_string(), None);
        let mut watcher = Watcher::of(&place);
        let mut yes = FactSelection::default();
        yes.add("a", FactPattern { key: None, value: Some("yes".to_owned()) });
        let look = |watcher: &mut Watcher, selection: &FactSelection| {
            let news = watcher.watch.changes(selection, &watcher.facts()).expect("looked at");
            assert_eq!(news.warnings, Vec::<String>::new());
            news.changes.iter().map(|change| watcher.learn(change)).collect::<Vec<_>>()
        };
        assert_eq!(look(&mut watcher, &yes), ["+a l=yes"]);
        place.assert("a", "k", "yes", None);
        assert_eq!(look(&mut watcher, &yes), ["+a k=yes"]);
        place.assert("a", "k", "no", None);
        place.assert("a", "m", "neither", None);
        assert_eq!(look(&mut watcher, &yes), ["-a k"]);
        let mut more = yes.clone();
        more.add("a", FactPattern { key: Some("m".to_owned()), value: None });
        assert_eq!(look(&mut watcher, &more), ["+a m=neither"], "it is selected from now on");
        let keys = |keys: &[&str]| {
            let mut all = FactSelection::default();
            for key in keys {
                all.add("a", FactPattern { key: Some((*key).to_owned()), value: None });
            }
            all
        };
        let mut keyed = Watcher::of(&place);
        assert_eq!(look(&mut keyed, &keys(&["m", "gone"])), ["+a m=neither"]);
        place.assert("a", "gone", "came", None);
        place.assert("a", "n", "", None);
        assert_eq!(look(&mut keyed, &keys(&["gone", "k"])), ["-a m", "+a k=no", "+a gone=came"]);
        place.retract("a", "gone", None);
        assert_eq!(look(&mut keyed, &keys(&["gone"])), ["-a gone", "-a k"]);
        place.retract("a", "n", None);
        let mut next =
            Watcher { watch: DataspaceWatcher::new(place.space.clone()), known: watcher.known };
        assert_eq!(look(&mut next, &yes), ["-a m"], "it was known before");
        assert_eq!(look(&mut next, &yes), NONE);
        place.assert("a", "m", "no", None);
    }
}
