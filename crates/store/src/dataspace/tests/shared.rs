//! Dataspaces of several machines that share one log of changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use raymond_model::log_line::LogLine;

use super::{Place, step};
use crate::Error;
use crate::dataspace::journal::FactJournal;
use crate::dataspace::{Dataspace, DataspaceStep};
use crate::layout::RunsRoot;
use crate::proof::ProofKey;
use crate::shared_copy::SharedFacts;

/// A log of changes in memory.
#[derive(Debug, Default)]
struct MemoryLog {
    texts: Mutex<Vec<String>>,
    is_away: AtomicBool,
    /// The number of appends whose answers are lost.
    lost: AtomicUsize,
}

impl MemoryLog {
    fn reach(&self) -> Result<(), Error> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Error::Unreached("the log is away".to_owned()));
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.texts.lock().expect("texts").len()
    }
}

impl SharedFacts for MemoryLog {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<LogLine>, Error> {
        self.reach()?;
        let texts = self.texts.lock().expect("texts");
        let numbered = texts.iter().zip(1..).filter(|(_, number)| *number > after);
        let change = |(text, seq): (&String, u64)| LogLine { seq, text: text.clone() };
        Ok(numbered.map(change).take(limit).collect())
    }

    fn append(&self, after: u64, text: &str) -> Result<bool, Error> {
        self.reach()?;
        let mut texts = self.texts.lock().expect("texts");
        let is_last = texts.len() as u64 == after;
        if is_last {
            texts.push(text.to_owned());
            if self.lost.load(Ordering::Relaxed) > 0 {
                self.lost.fetch_sub(1, Ordering::Relaxed);
                return Err(Error::Unreached("the answer is lost".to_owned()));
            }
        }
        Ok(is_last
            || texts.get(usize::try_from(after).expect("an index")) == Some(&text.to_owned()))
    }
}

/// A machine with a key of its own.
struct SharingMachine {
    place: Place,
}

fn machine(log: &Arc<MemoryLog>, key: &str) -> SharingMachine {
    let dir = tempfile::tempdir().expect("a directory");
    let space = Dataspace::of(&RunsRoot::new(dir.path())).with_key(&ProofKey::new(key));
    let space = space.shared_by(log.clone());
    SharingMachine { place: Place { dir, space } }
}

impl SharingMachine {
    fn holds(&self) -> Vec<String> {
        self.place.space.pull().expect("pulled");
        self.place.holds()
    }

    /// Returns the machine after everything on it was lost.
    fn lost(self, log: &Arc<MemoryLog>, key: &str) -> Self {
        drop(self);
        machine(log, key)
    }
}

fn two() -> (Arc<MemoryLog>, SharingMachine, SharingMachine) {
    let log = Arc::new(MemoryLog::default());
    let (a, b) = (machine(&log, "a"), machine(&log, "b"));
    (log, a, b)
}

#[test]
fn facts_are_the_same_on_all_machines() {
    let (log, a, b) = two();
    let asserted = a.place.assert("job", "1", "x", None).fact.expect("a fact");
    assert_eq!(b.holds(), ["job 1=x"]);
    assert_eq!(b.place.fact("job", "1"), Some(asserted));
    assert!(!b.place.assert("job", "1", "x", None).is_new);
    let replacing = b.place.assert("job", "1", "y", None);
    assert_eq!(replacing.replaced.expect("a fact").value, "x");
    assert_eq!(a.holds(), ["job 1=y"]);
    assert!(a.place.retract("job", "1", None) && !b.place.retract("job", "1", None));
    assert_eq!((a.holds(), b.holds(), log.len()), (vec![], vec![], 3));
    assert_eq!(b.place.logged(), 2, "{:?}", b.place.lines());
}

#[test]
fn one_machine_takes_a_fact() {
    let (_log, a, b) = two();
    let fact = a.place.assert("job", "1", "x", None).fact.expect("a fact");
    assert_eq!(b.holds(), ["job 1=x"]);
    let (asking, other) = (step("r", 1), step("s", 1));
    assert_eq!(b.place.claim(&fact, &other), Some(fact.clone()));
    assert_eq!(a.place.claim(&fact, &asking), None);
    assert_eq!(a.holds(), Vec::<String>::new());
}

#[test]
fn many_machines_take_each_fact_once() {
    let log = Arc::new(MemoryLog::default());
    let first = machine(&log, "first");
    let facts: Vec<_> = (0..40)
        .map(|key| first.place.assert("job", &key.to_string(), "", None).fact.expect("a fact"))
        .collect();
    let takers: Vec<_> = (0..4).map(|name| (machine(&log, &name.to_string()), name)).collect();
    let taken: Vec<_> = std::thread::scope(|scope| {
        let take = |(taker, name): &(SharingMachine, i32)| {
            let claim =
                |(number, fact)| taker.place.claim(fact, &step(&format!("r{name}"), number));
            (1..).zip(&facts).filter_map(claim).map(|fact| fact.key).collect::<Vec<_>>()
        };
        let threads: Vec<_> = takers.iter().map(|taker| scope.spawn(move || take(taker))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!((taken.len(), taken.iter().collect::<BTreeSet<_>>().len()), (40, 40));
    assert_eq!(first.holds(), Vec::<String>::new());
}

#[test]
fn step_that_another_machine_repeats_changes_nothing_again() {
    let (log, a, b) = two();
    b.place.assert("old", "1", "", None);
    b.place.assert("job", "1", "first", None);
    assert_eq!(a.holds(), ["job 1=first", "old 1="]);
    a.place.assert("made", "1", "x", Some(&step("r", 1)));
    assert_eq!(b.holds(), ["job 1=first", "made 1=x", "old 1="]);
    b.place.retract("made", "1", None);
    let repeated = b.place.assert("made", "1", "x", Some(&step("r", 1)));
    assert!(!repeated.is_new && repeated.fact.is_none(), "{repeated:?}");
    assert!(a.place.retract("old", "1", Some(&step("r", 2))));
    b.place.assert("old", "1", "again", None);
    assert!(b.place.retract("old", "1", Some(&step("r", 2))), "the same answer");
    let fact = b.place.fact("job", "1").expect("a fact");
    assert_eq!(a.place.claim(&fact, &step("r", 3)), Some(fact.clone()));
    b.place.assert("job", "1", "second", None);
    let before = log.len();
    assert_eq!(b.place.claim(&fact, &step("r", 3)), Some(fact.clone()));
    let b = b.lost(&log, "b");
    assert_eq!(b.place.claim(&fact, &step("r", 3)), Some(fact));
    assert_eq!(b.holds(), ["job 1=second", "old 1=again"]);
    assert_eq!(log.len(), before);
}

#[test]
fn end_of_a_run_is_the_end_of_its_marks_everywhere() {
    let (log, a, b) = two();
    let run = step("r", 1).run;
    a.place.assert("made", "1", "x", Some(&step("r", 1)));
    assert_eq!(b.holds(), ["made 1=x"]);
    assert_eq!(b.place.kept(), ["r~main"]);
    a.place.space.ended(&run).expect("ended");
    assert_eq!((b.holds(), b.place.kept()), (vec!["made 1=x".to_owned()], vec![]));
    let before = log.len();
    b.place.space.ended(&run).expect("nothing to do");
    assert_eq!(log.len(), before);
}

#[test]
fn waiting_values_are_in_one_order() {
    let (_log, a, b) = two();
    let append = |machine: &SharingMachine, value| {
        let at = raymond_model::time::Timestamp(1);
        let what = super::FactStatement { label: "job", key: "", value, source: "test", at };
        machine.place.space.append(what).expect("appended").before
    };
    assert_eq!((append(&a, "1"), append(&b, "2"), append(&a, "3")), (0, 1, 2));
    let mut values = Vec::new();
    for (number, machine) in (1..).zip([&b, &a, &b]) {
        machine.holds();
        let fact = machine.place.fact("job", "").expect("a fact");
        values.extend(machine.place.claim(&fact, &step("r", number)).map(|fact| fact.value));
    }
    assert_eq!(values, ["1", "2", "3"]);
}

#[test]
fn damaged_or_forged_copy_is_made_again() {
    let (log, a, b) = two();
    for key in ["1", "2", "3"] {
        a.place.assert("job", key, "x", None);
    }
    a.place.retract("job", "2", None);
    assert_eq!(b.holds(), ["job 1=x", "job 3=x"]);
    let journal = b.place.path("facts");
    let forged = |from: &str, to: &str| {
        let text = std::fs::read_to_string(&journal).expect("read");
        std::fs::write(&journal, text.replacen(from, to, 1)).expect("forged");
        *b.place.space.unread() = FactJournal::default();
    };
    let damages: [&dyn Fn(); 5] = [
        &|| std::fs::remove_file(&journal).expect("removed"),
        &|| std::fs::write(&journal, "x\n").expect("written"),
        &|| forged("\"key\":\"3\"", "\"key\":\"7\""),
        &|| {
            a.place.assert("job", "9", "x", None);
            a.place.retract("job", "9", None);
            assert_eq!(b.holds().len(), 2);
            let mut lines = b.place.lines();
            lines.remove(lines.len() - 2);
            b.place.write_lines(&lines);
        },
        &|| std::fs::remove_dir_all(b.place.dir.path().join("dataspace")).expect("removed"),
    ];
    for damage in damages {
        damage();
        assert_eq!(b.holds(), ["job 1=x", "job 3=x"]);
        assert!(!b.place.assert("job", "1", "x", None).is_new);
    }
    log.texts.lock().expect("texts").truncate(2);
    assert_eq!(b.holds(), ["job 1=x", "job 2=x"], "the log was put back to an earlier state");
}

#[test]
fn copy_is_not_changed_alone() {
    let (_log, a, _b) = two();
    a.place.assert("job", "1", "x", None);
    let alone = Dataspace::of(&RunsRoot::new(a.place.dir.path())).with_key(&ProofKey::new("a"));
    assert_eq!(alone.facts().expect("listed").facts.len(), 1);
    let error = alone.retract("job", "1", None).expect_err("it is a copy");
    assert!(matches!(error, Error::SharedFacts { .. }), "{error}");
    alone.ended(&step("r", 1).run).expect("nothing to do");
    let copy = Place::with(&[("own", "1", "x")]);
    let shared = copy.space.clone().shared_by(Arc::new(MemoryLog::default()));
    let error = shared.retract("own", "1", None).expect_err("it is no copy");
    assert!(matches!(error, Error::ForeignFacts { .. }), "{error}");
    assert_eq!(copy.holds(), ["own 1=x"]);
}

#[test]
fn caller_that_cannot_be_interrupted_gets_the_error() {
    let (log, a, _b) = two();
    log.is_away.store(true, Ordering::Relaxed);
    let error = a.place.space.retract("job", "1", None).expect_err("away");
    assert!(matches!(error, Error::Unreached(_)), "{error}");
    log.is_away.store(false, Ordering::Relaxed);
    assert_eq!((a.holds(), log.len()), (vec![], 0));
}

#[test]
fn caller_that_can_be_interrupted_waits() {
    let (log, a, b) = two();
    let fact = b.place.assert("job", "1", "x", None).fact.expect("a fact");
    let ends = Arc::new(AtomicBool::new(false));
    let patient = a.place.space.clone().until(ends.clone());
    log.lost.store(1, Ordering::Relaxed);
    let taken = patient.claim("job", "1", fact.seq, &step("r", 1)).expect("taken");
    assert_eq!((taken, log.len()), (Some(fact), 2), "the answer was lost, and the fact taken once");
    log.is_away.store(true, Ordering::Relaxed);
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| patient.retract("job", "1", None));
        ends.store(true, Ordering::Relaxed);
        waiting.join().expect("no panic")
    });
    assert!(matches!(waiting, Err(Error::Io { .. })), "{waiting:?}");
}

#[test]
fn change_that_cannot_be_read_is_named() {
    let (log, a, _b) = two();
    a.place.assert("job", "1", "x", None);
    for (text, why) in [
        ("{\"version\":9}", "has version 9"),
        ("nothing", "expected a JSON value"),
        (
            "{\"version\":1,\"id\":\"x\",\"label\":\"a b\",\"key\":\"\",\"change\":{\"retracted\":{\"seq\":1}}}",
            "not a change of a fact",
        ),
    ] {
        log.texts.lock().expect("texts").push(text.to_owned());
        let error = a.place.space.pull().expect_err("it cannot be read").to_string();
        assert!(
            error.contains("change 2 of the facts in memory") && error.contains(why),
            "{error}"
        );
        log.texts.lock().expect("texts").pop();
    }
}

#[test]
fn long_log_is_pulled_in_parts() {
    let (_log, a, b) = two();
    let small = Dataspace { room: 2_000, ..b.place.space.clone() };
    a.place.assert("job", "first", "x", None);
    small.pull().expect("pulled");
    for number in 0..2_500_u32 {
        let step = DataspaceStep { step: u64::from(number) + 1, ..step("r", 1) };
        a.place.assert("job", "k", &number.to_string(), Some(&step));
    }
    small.pull().expect("pulled");
    assert_eq!(b.holds(), ["job first=x", "job k=2499"]);
    assert_eq!(small.known_changes().expect("read"), 2_501);
}
