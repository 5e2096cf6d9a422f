//! The dataspace: the facts that hold, their takers, and steps that run once.

mod appended;
mod forged;
mod killed;
mod model;
mod old;
mod shared;
mod together;
mod torn;
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
        let mut facts = self.space.facts().expect("listed").facts;
        facts.retain(|fact| (&*fact.label, &*fact.key) == (label, key));
        facts.pop()
    }

    /// Returns the steps whose claims are kept, and then the agents whose marks are.
    fn kept(&self) -> Vec<String> {
        let journal = self.space.current().expect("read");
        let agents = journal.state.agents.iter();
        let claims = agents.clone().flat_map(|(agent, steps)| {
            steps.claims.keys().map(move |step| format!("{agent}-{step}"))
        });
        let marks = agents.filter(|(_, steps)| steps.mark.is_some());
        claims.chain(marks.map(|(agent, _)| agent.clone())).collect()
    }

    /// Returns the lines of the journal.
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("facts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Replaces the lines of the journal.
    fn write_lines(&self, lines: &[String]) {
        std::fs::write(self.path("facts"), lines.join("\n") + "\n").expect("written");
    }

    /// Returns the number of changes behind those that the journal begins with.
    fn logged(&self) -> usize {
        let number = |line: &String| line.split(',').nth(1).map(str::to_owned);
        let lines = self.lines();
        let first = lines.first().and_then(number);
        lines.iter().filter(|line| number(line) != first).count()
    }

    /// Returns the dataspace as another process finds it.
    fn reopened(self) -> Self {
        let Self { dir, space } = self;
        Self { dir, space: Dataspace { journal: std::sync::Arc::default(), ..space } }
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
    assert!(first.is_new && place.path("facts").is_file());
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
    assert_eq!(mode(""), 0o700);
    let files = ["facts", "changes", "lock", "engine.json"];
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
    let asking = step("r", 7);
    assert!(place.assert("a", "k", "1", Some(&asking)).is_new);
    let again = place.assert("a", "k", "1", Some(&asking));
    assert!(!again.is_new && again.fact.is_some());
    assert!(place.retract("a", "k", None));
    let again = place.assert("a", "k", "1", Some(&asking));
    assert_eq!(again, AssertionOutcome { fact: None, is_new: false, replaced: None, dropped: 0 });
    place.assert("a", "k", "2", None);
    let again = place.assert("a", "k", "1", Some(&asking));
    assert_eq!(again.fact.map(|fact| fact.value), Some("2".into()));
    assert!(place.assert("a", "k", "1", Some(&step("r", 8))).is_new, "another step");
    assert!(place.assert("a", "k", "2", Some(&step("s", 8))).is_new, "another run");
}

#[test]
fn repeated_step_does_not_retract_newer_fact() {
    let place = Place::with(&[("a", "k", "1")]);
    let asking = step("r", 7);
    assert!(place.retract("a", "k", Some(&asking)) && place.retract("a", "k", Some(&asking)));
    place.assert("a", "k", "1", None);
    assert!(place.retract("a", "k", Some(&asking)), "the same answer");
    assert_eq!(place.holds(), ["a k=1"]);
    assert!(place.retract("a", "k", Some(&step("r", 8))));
    assert!(!place.retract("a", "k", Some(&step("r", 9))));
}

#[test]
fn fact_is_claimed_by_one_step_that_may_repeat_the_claim() {
    let place = Place::with(&[("a", "k", "1"), ("b", "k", "1")]);
    let [a, b] = ["a", "b"].map(|label| place.fact(label, "k").expect("it holds"));
    let (asking, other) = (step("r", 7), step("s", 7));
    assert_eq!(place.space.claimed(&asking).expect("read"), None);
    assert_eq!(place.claim(&a, &asking), Some(a.clone()));
    assert_eq!(place.claim(&a, &other), None);
    for again in [&a, &b] {
        assert_eq!(place.claim(again, &asking), Some(a.clone()), "what it has taken already");
    }
    assert_eq!(place.space.claimed(&asking).expect("read"), Some(a.clone()));
    assert_eq!(place.holds(), ["b k=1"]);
    place.assert("a", "k", "1", None);
    assert_eq!(place.claim(&a, &other), None, "one with another number");
}

#[test]
fn step_records_are_dropped_once_steps_are_settled() {
    let place = Place::with(&[("a", "k", "1"), ("b", "k", "1")]);
    let [a, b] = ["a", "b"].map(|label| place.fact(label, "k").expect("it holds"));
    place.claim(&a, &step("r", 7)).expect("taken");
    place.assert("c", "k", "2", Some(&step("r.1", 9)));
    assert_eq!(place.kept(), ["r~main-7", "r.1~main"]);
    place.assert("c", "k", "1", Some(&step("r", 9)));
    assert_eq!(place.kept(), ["r.1~main", "r~main"]);
    place.claim(&b, &step("r", 10)).expect("taken");
    assert_eq!(place.kept(), ["r~main-10", "r.1~main", "r~main"]);
    place.space.ended(&step("r", 1).run).expect("ended");
    assert_eq!(place.kept(), ["r.1~main"]);
    at(&place.dir.path().join("none")).ended(&step("r", 1).run).expect("nothing is there");
}

#[test]
fn damaged_line_is_warned_of_until_its_fact_is_changed() {
    let place = Place::with(&[("a", "k", "1"), ("a", "l", "1"), ("a", "m", "1"), ("a", "n", "1")]);
    let mut lines = place.lines();
    lines[1] = lines[1].replace("\"1\"", "\"2\"");
    lines[2] = lines[2].replace("\"l\"", "\"x\"").replacen("\"x\"", "\"l\"", 1);
    lines[4] = "{".to_owned();
    place.write_lines(&lines);
    let place = place.reopened();
    let listing = place.space.facts().expect("listed");
    assert_eq!(listing.facts.len(), 1);
    let warned = listing.warnings.join("\n");
    for part in [
        "facts:2: this is not a fact (its checksum is wrong), so it is ignored",
        "facts:3: this is not a fact",
        "facts:5: this is not a fact (it does not end with its checksum)",
        "raymond signal",
    ] {
        assert!(warned.contains(part), "{warned}");
    }
    assert!(place.assert("a", "k", "1", None).is_new);
    assert!(place.retract("a", "l", None));
    assert_eq!(place.space.facts().expect("listed").warnings.len(), 1, "it names no fact");
    let mut place = place;
    place.space.room = 0;
    assert!(place.assert("a", "o", "1", None).is_new);
    assert_eq!(place.holds(), ["a k=1", "a m=1", "a o=1"], "the journal has begun again");
}

#[test]
fn sequence_numbers_continue_in_a_new_journal_without_facts() {
    let mut place = Place::with(&[("a", "k", "1"), ("a", "l", "1")]);
    place.space.room = 0;
    assert!(place.retract("a", "k", None) && place.retract("a", "l", None));
    assert_eq!(place.assert("a", "m", "1", None).fact.map(|fact| fact.seq), Some(5));
    let place = place.reopened();
    assert_eq!(place.assert("a", "n", "1", None).fact.map(|fact| fact.seq), Some(6));
}
