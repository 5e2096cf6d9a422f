//! The dataspace: the facts that hold, their takers, and steps that run once.

mod appended;
mod forged;
mod killed;
mod logged;
mod model;
mod power;
mod shared;
mod together;
mod watched;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{AssertionOutcome, Dataspace, DataspaceStep, FactStatement};
use crate::layout::RunsRoot;
use raymond_model::fact::{Fact, KnownFacts};
use raymond_model::id::{AgentId, RunId};

/// A dataspace that goes away with the test.
struct Place {
    dir: tempfile::TempDir,
    space: Dataspace,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let space = at(dir.path());
        Self { dir, space }
    }

    fn with(facts: &[(&str, &str, &str)]) -> Self {
        let place = Self::new();
        for (label, key, value) in facts {
            place.assert(label, key, value, None);
        }
        place
    }

    #[track_caller]
    fn assert(
        &self,
        label: &str,
        key: &str,
        value: &str,
        step: Option<&DataspaceStep>,
    ) -> AssertionOutcome {
        let what = FactStatement {
            label,
            key,
            value,
            source: "test",
            at: raymond_model::time::Timestamp(1),
        };
        self.space.assert(what, step).expect("asserted")
    }

    #[track_caller]
    fn retract(&self, label: &str, key: &str, step: Option<&DataspaceStep>) -> bool {
        self.space.retract(label, key, step).expect("retracted")
    }

    #[track_caller]
    fn claim(&self, fact: &Fact, step: &DataspaceStep) -> Option<Fact> {
        self.space.claim(&fact.label, &fact.key, fact.seq, step).expect("tried")
    }

    /// Returns the facts that hold, as `label key=value`.
    #[track_caller]
    fn holds(&self) -> Vec<String> {
        let listing = self.space.facts().expect("listed");
        assert_eq!(listing.warnings, Vec::<String>::new());
        let text = |fact: Fact| format!("{} {}={}", fact.label, fact.key, fact.value);
        listing.facts.into_iter().map(text).collect()
    }

    fn fact(&self, label: &str, key: &str) -> Option<Fact> {
        let mut facts = self.space.labelled(label).expect("listed").facts;
        facts.retain(|fact| fact.key == key);
        facts.pop()
    }

    /// Returns the files of steps.
    fn kept(&self) -> Vec<String> {
        let folders = ["claims", "outgoing", "done"].map(|folder| self.path(folder));
        let entries = folders.iter().flat_map(|folder| super::entries(folder).expect("listed"));
        let name = |path: PathBuf| path.file_name()?.to_str().map(str::to_owned);
        entries.filter_map(name).collect()
    }

    /// Returns the number of changes in the log.
    fn logged(&self) -> usize {
        let text = std::fs::read_to_string(self.path("changes")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with('[')).count()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.space.path.join(name)
    }
}

fn at(path: &std::path::Path) -> Dataspace {
    Dataspace::of(&RunsRoot::new(path))
}

fn step(run: &str, step: u64) -> DataspaceStep {
    let run = RunId::parse(run).expect("an id");
    DataspaceStep { run, agent: AgentId::main(), step }
}

/// Returns facts as a run would know them.
fn facts<'a>(all: impl Iterator<Item = &'a Fact>) -> KnownFacts {
    let mut labels = BTreeMap::<&str, BTreeMap<&str, _>>::new();
    for fact in all {
        labels.entry(&fact.label).or_default().insert(&fact.key, fact);
    }
    let text = serde_json::to_string(&labels).expect("facts");
    serde_json::from_str(&text).expect("facts")
}

#[test]
fn fact_holds_until_retracted_and_last_value_wins() {
    let place = Place::new();
    assert_eq!(place.holds(), Vec::<String>::new());
    assert!(!place.retract("a/b", "k", None));
    assert!(!place.space.path.exists(), "who only looks makes nothing");
    let first = place.assert("a/b", "k", "1", None);
    assert_eq!(first.fact.as_ref().map(|fact| fact.seq), Some(1));
    assert!(first.is_new && place.path("facts/a%2Fb/k.json").is_file());
    let again = place.assert("a/b", "k", "1", None);
    assert_eq!((again.fact, again.is_new), (first.fact, false));
    assert!(place.assert("a/b", "k", "2", None).is_new);
    place.assert("a/b", "", "3", None);
    place.assert("a", "ü/\n", "4", None);
    assert_eq!(place.holds(), ["a ü/\n=4", "a/b =3", "a/b k=2"]);
    assert_eq!(place.fact("a/b", "").map(|fact| fact.seq), Some(3));
    assert!(place.retract("a/b", "k", None) && !place.retract("a/b", "k", None));
    assert_eq!(place.holds(), ["a ü/\n=4", "a/b =3"]);
}

#[test]
fn dataspace_files_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with(&[("a", "k", "1")]);
    place.assert("a", "l", "1", Some(&step("r", 7)));
    let mode = |name: &str| {
        let metadata = place.path(name).metadata().expect("there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(["", "facts", "facts/a", "done"].map(mode), [0o700; 4]);
    let files = ["facts/a/k.json", "changes", "lock", "done/r~main.json"];
    assert_eq!(files.map(mode), [0o600; 4]);
}

#[test]
fn invalid_fact_is_refused_and_creates_nothing() {
    let place = Place::new();
    let (long, large) = ("k".repeat(201), "v".repeat(1024 * 1024 + 1));
    for (label, key, value) in
        [("", "k", "v"), ("a b", "k", "v"), ("a", &long, "v"), ("a", "k", &large)]
    {
        let what = FactStatement {
            label,
            key,
            value,
            source: "test",
            at: raymond_model::time::Timestamp(1),
        };
        place.space.assert(what, None).expect_err("unfit");
    }
    assert!(!place.space.path.exists());
}

#[test]
fn repeated_step_asserts_fact_only_once() {
    let place = Place::new();
    let own = step("r", 7);
    assert!(place.assert("a", "k", "1", Some(&own)).is_new);
    let again = place.assert("a", "k", "1", Some(&own));
    assert!(!again.is_new && again.fact.is_some());
    assert!(place.retract("a", "k", None));
    let again = place.assert("a", "k", "1", Some(&own));
    assert_eq!(again, AssertionOutcome { fact: None, is_new: false, replaced: None, dropped: 0 });
    place.assert("a", "k", "2", None);
    let again = place.assert("a", "k", "1", Some(&own));
    assert_eq!(again.fact.map(|fact| fact.value), Some("2".into()));
    assert!(place.assert("a", "k", "1", Some(&step("r", 8))).is_new, "another step");
    assert!(place.assert("a", "k", "2", Some(&step("s", 8))).is_new, "another run");
}

#[test]
fn repeated_step_does_not_retract_newer_fact() {
    let place = Place::with(&[("a", "k", "1")]);
    let own = step("r", 7);
    assert!(place.retract("a", "k", Some(&own)) && place.retract("a", "k", Some(&own)));
    place.assert("a", "k", "1", None);
    assert!(place.retract("a", "k", Some(&own)), "the same answer");
    assert_eq!(place.holds(), ["a k=1"]);
    assert!(place.retract("a", "k", Some(&step("r", 8))));
    assert!(!place.retract("a", "k", Some(&step("r", 9))));
}

#[test]
fn fact_is_claimed_by_one_step_that_may_repeat_the_claim() {
    let place = Place::with(&[("a", "k", "1"), ("b", "k", "1")]);
    let [a, b] = ["a", "b"].map(|label| place.fact(label, "k").expect("it holds"));
    let (own, other) = (step("r", 7), step("s", 7));
    assert_eq!(place.space.claimed(&own).expect("read"), None);
    assert_eq!(place.claim(&a, &own), Some(a.clone()));
    assert_eq!(place.claim(&a, &other), None);
    for again in [&a, &b] {
        assert_eq!(place.claim(again, &own), Some(a.clone()), "what it has taken already");
    }
    assert_eq!(place.space.claimed(&own).expect("read"), Some(a.clone()));
    assert_eq!(place.holds(), ["b k=1"]);
    place.assert("a", "k", "1", None);
    assert_eq!(place.claim(&a, &other), None, "one with another number");
}

#[test]
fn step_records_are_removed_once_steps_are_settled() {
    let place = Place::with(&[("a", "k", "1"), ("b", "k", "1")]);
    let [a, b] = ["a", "b"].map(|label| place.fact(label, "k").expect("it holds"));
    place.claim(&a, &step("r", 7)).expect("taken");
    place.claim(&b, &step("r", 10)).expect("taken");
    place.assert("c", "k", "1", Some(&step("r", 9)));
    place.assert("c", "k", "2", Some(&step("r.1", 9)));
    std::fs::create_dir(place.path("outgoing")).expect("made");
    std::fs::write(place.path("outgoing/r~main-8.json"), "{").expect("left by an earlier raymond");
    let all = ["r~main-10.json", "r~main-7.json", "r~main-8.json", "r.1~main.json", "r~main.json"];
    let kept = || {
        let mut kept = place.kept();
        kept.sort_by_key(|name| all.iter().position(|one| one == name));
        kept
    };
    assert_eq!(kept(), all);
    place.space.settled(&step("r", 9)).expect("settled");
    assert_eq!(kept(), ["r~main-10.json", "r.1~main.json", "r~main.json"]);
    place.space.settled(&step("r", 10)).expect("settled");
    assert_eq!(kept(), ["r~main-10.json", "r.1~main.json"]);
    place.space.ended(&step("r", 1).run).expect("ended");
    assert_eq!(kept(), ["r.1~main.json"]);
    at(&place.dir.path().join("none")).ended(&step("r", 1).run).expect("nothing is there");
}

#[test]
fn damaged_fact_file_is_warned_of_and_can_be_replaced() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1"), ("a", "m", "1")]);
    let file = |key: &str| place.path(&format!("facts/a/{key}.json"));
    std::fs::write(file("k"), "{").expect("damaged");
    std::fs::copy(file("m"), file("l")).expect("it says another key");
    let listing = place.space.facts().expect("listed");
    assert_eq!(listing.facts.len(), 1);
    let warned = listing.warnings.join("\n");
    for part in [
        "facts/a/k.json: this is not a fact",
        "facts/a/l.json: this is not a fact",
        "raymond signal",
    ] {
        assert!(warned.contains(part), "{warned}");
    }
    assert!(place.assert("a", "k", "1", None).is_new);
    assert!(place.retract("a", "l", None));
    assert_eq!(place.holds(), ["a k=1", "a m=1"]);
}

#[test]
fn sequence_numbers_continue_after_changes_file_is_lost() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1")]);
    std::fs::remove_file(place.path("changes")).expect("lost");
    assert_eq!(place.assert("a", "m", "1", None).fact.map(|fact| fact.seq), Some(3));
}
