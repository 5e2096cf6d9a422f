//! The store of an earlier raymond: it is taken over as a whole, and that raymond refuses it from then on.

use std::path::{Path, PathBuf};

use super::{Place, step};
use crate::dataspace::{Dataspace, DataspaceWatcher, entries, fact};
use crate::engine_note::EngineNote;
use crate::proof::ProofKey;
use raymond_model::fact::{FactSelection, KnownFacts};

/// Returns a store in which a writer was killed, and whose files are older than its log: `a k` holds with 1, `b k` does
/// not hold.
pub(super) fn killed_store() -> Place {
    let place = Place::new();
    let fact = |key: &str, seq: u64| {
        format!(
            "{{\"label\":\"{key}\",\"key\":\"k\",\"value\":\"{seq}\",\"seq\":{seq},\"source\":\"test\"}}"
        )
    };
    place.write_old("facts/b/k.json", &fact("b", 0));
    place.write_old("claims/x~main-7.json", &fact("x", 0));
    place.write_old("done/x~main.json", "{");
    let log = [
        "{\"generation\":\"x\",\"from\":1,\"boot\":\"another\",\"snapshot\":0}".to_owned(),
        format!("[1,\"a\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("a", 1)),
        "[2,\"b\",\"k\",{\"retracted\":{\"seq\":0}}]\n".to_owned(),
    ];
    place.write_old("changes", &log.join("\n"));
    place
}

/// Copies the store that the last raymond with such stores has written.
fn released() -> Place {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("made");
        for path in entries(from).expect("a fixture") {
            let target = to.join(path.file_name().expect("a name"));
            if path.is_dir() {
                copy(&path, &target);
            } else {
                std::fs::copy(&path, &target).expect("copied");
            }
        }
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let place = Place::new();
    copy(&fixtures.join("facts-1/dataspace"), &place.space.path);
    place
}

impl Place {
    fn write_old(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// Writes a file of a fact with its proof, and returns its text.
    fn write_fact(&self, label: &str, value: &str, seq: u64) -> String {
        let (at, source) = (raymond_model::time::Timestamp(1), "test");
        let what = super::FactStatement { label, key: "k", value, source, at };
        let text = fact::close(&what.numbered(seq), self.space.key.as_ref(), "fact").expect("JSON");
        let text = String::from_utf8(text).expect("text");
        self.write_old(&format!("facts/{label}/k.json"), &text);
        text
    }

    fn files(&self) -> Vec<String> {
        let mut files = entries(&self.space.path).expect("listed");
        files.sort();
        let name = |path: PathBuf| path.file_name()?.to_str().map(str::to_owned);
        files.into_iter().filter_map(name).collect()
    }
}

const NEW_FILES: [&str; 4] = ["changes", "engine.json", "facts", "lock"];

/// Checks that a place has all that the released store has.
fn check_released(place: &Place) {
    let listing = place.space.facts().expect("listed");
    assert_eq!(listing.warnings, Vec::<String>::new());
    let facts = listing.facts.iter().map(|fact| (&*fact.label, &*fact.key, fact.seq));
    let expected = [
        ("a-xb", "ü/\n", 4),
        ("job", "", 6),
        ("long", "k", 3),
        ("made", "k", 13),
        ("plan/ready", "feature-42", 9),
        ("plan/ready", "late", 15),
    ];
    assert_eq!(facts.collect::<Vec<_>>(), expected);
    assert_eq!(listing.facts[1].at.to_string(), "2026-01-15T14:30:22.123Z");
    assert_eq!((&*listing.facts[1].value, listing.facts[2].value.len()), ("two", 24_000));
    let taken = |run: &str, number| {
        let taken = place.space.claimed(&step(run, number)).expect("read");
        taken.map(|fact| (fact.label, fact.value, fact.seq))
    };
    assert_eq!(taken("r", 6), Some(("taken".into(), "by r".into(), 8)));
    assert_eq!(taken("s", 2), None, "a later step has settled it");
    assert_eq!(place.kept(), ["r~main-6", "r~main", "s~main"]);
}

#[test]
fn released_store_is_taken_over() {
    let place = released();
    check_released(&place);
    assert_eq!(place.files(), NEW_FILES);
    let place = place.reopened();
    check_released(&place);
    assert!(place.retract("plan/ready", "gone", Some(&step("r", 5))), "the same answer");
    assert!(!place.assert("plan/ready", "late", "x", Some(&step("s", 3))).is_new);
    let job = place.fact("job", "").expect("it holds");
    assert_eq!(place.claim(&job, &step("t", 1)), Some(job));
    assert_eq!(place.fact("job", "").map(|fact| fact.value), Some("three".to_owned()));
    assert_eq!(place.assert("new", "k", "1", None).fact.map(|fact| fact.seq), Some(17));
}

#[test]
fn released_store_is_read_as_it_is_where_nobody_may_write() {
    let place = released();
    let before = place.files();
    let (state, warnings) = place.space.old_state().expect("read");
    assert_eq!((place.files(), warnings), (before, vec![]));
    place.space.facts().expect("taken over");
    assert_eq!(place.space.current().expect("read").state, state);
}

#[test]
fn released_store_after_a_power_cut_is_taken_over() {
    let place = released();
    let log = std::fs::read_to_string(place.path("changes")).expect("read");
    let boot = log.split("\"boot\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let log = log.replace(boot.expect("a boot"), "another");
    std::fs::write(place.path("changes"), &log).expect("written");
    let old = log.lines().find(|line| line.contains("\"value\":\"first\"")).expect("a fact");
    place.write_old("facts/plan%2Fready/feature-42.json", old);
    let gone = old.replace("feature-42", "gone").replace("\"seq\":1", "\"seq\":2");
    place.write_old("facts/plan%2Fready/gone.json", &gone);
    for lost in ["claims", "done", "facts/plan%2Fready/late.json", "facts/made", "facts/job"] {
        let path = place.path(lost);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .expect("removed");
    }
    // The log has the values behind the taken one, too, as their fact.
    let next = log.split("\"next\":").nth(1).and_then(|rest| rest.strip_suffix("}}]"));
    assert!(next.is_none_or(|next| next.contains("two")));
    check_released(&place);
}

#[test]
fn earlier_raymond_refuses_the_store_with_the_journal() {
    for place in [released(), Place::with(&[("a", "k", "1")])] {
        place.space.facts().expect("listed");
        let refused = EngineNote::of(&place.space.path).expect_err("newer").to_string();
        assert!(refused.contains("engine.json: version 2 is newer than 1"), "{refused}");
        let unread = entries(&place.path("facts")).expect_err("no directory").to_string();
        assert!(unread.contains("facts: cannot read"), "{unread}");
        let header = std::fs::read_to_string(place.path("changes")).expect("read");
        assert!(header.contains("\"boot\":\"a newer raymond\""), "{header}");
    }
    let newer = Place::with(&[("a", "k", "1")]);
    newer.write_old("engine.json", "{\"version\":3,\"engine\":\"\"}");
    let refused = newer.space.retract("a", "k", None).expect_err("newer").to_string();
    assert!(refused.contains("engine.json: version 3 is newer than 2"), "{refused}");
}

#[test]
fn assertion_that_an_earlier_raymond_has_marked_is_made_once() {
    let mark = "{\"step\":7,\"deed\":\"assert\",\"label\":\"b\",\"key\":\"k\",\"seq\":5}";
    for is_made in [true, false] {
        let place = killed_store();
        place.write_old("done/r~main.json", mark);
        if !is_made {
            place.write_old("outgoing/r~main-7.json", "{}");
        }
        let outcome = place.assert("b", "k", "1", Some(&step("r", 7)));
        assert_eq!(outcome.is_new, !is_made);
        place.retract("b", "k", None);
        assert!(!place.assert("b", "k", "1", Some(&step("r", 7))).is_new);
        assert_eq!(place.files(), NEW_FILES);
    }
}

#[test]
fn log_without_changes_is_taken_over_with_its_numbers() {
    let place = killed_store();
    let lines =
        "{\"generation\":\"x\",\"from\":1}\n[1,\"a\",\"k\"]\n[2,\"b\",\"k\"]\n[7,\"b\",\"k\"]\n[8,";
    place.write_old("changes", lines);
    assert_eq!(place.holds(), ["b k=0"]);
    assert_eq!(place.assert("a", "m", "1", None).fact.map(|fact| fact.seq), Some(8));
    let place = Place::new();
    place.write_fact("a", "1", 4);
    assert_eq!(place.holds(), ["a k=1"], "the log is lost");
    assert_eq!(place.assert("a", "m", "1", None).fact.map(|fact| fact.seq), Some(5));
}

#[test]
fn watcher_sees_the_store_that_is_taken_over() {
    let place = killed_store();
    let mut watch = DataspaceWatcher::new(place.space.clone());
    let selection = FactSelection::of_labels(&["a".to_owned(), "b".to_owned()]);
    let mut look = || watch.changes(&selection, &KnownFacts::default()).expect("looked at").changes;
    assert_eq!((look().len(), look().len()), (1, 0));
    assert_eq!(place.files(), NEW_FILES);
}

/// Returns an old store with a key.
fn proven() -> Place {
    let mut place = Place::new();
    place.space = place.space.clone().with_key(&ProofKey::new("k"));
    place.write_old("changes", "{\"generation\":\"x\",\"from\":3,\"boot\":\"another\"}\n");
    for (label, seq) in [("a", 1), ("b", 2)] {
        place.write_fact(label, "1", seq);
    }
    place
}

/// Returns lines that no writer has written.
fn forged() -> Vec<String> {
    let fact = |label: &str, key: &str, seq: u64| {
        format!(
            "{{\"label\":\"{label}\",\"key\":\"{key}\",\"value\":\"evil\",\"seq\":{seq},\"source\":\"x\",\"proof\":\"{}\"}}",
            "0".repeat(64)
        )
    };
    let long = "k".repeat(300);
    let claimer = "{\"run\":\"r\",\"agent\":\"main\",\"step\":7}";
    vec![
        format!("[3,\"a\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("a", "k", 3)),
        format!("[3,\"c\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("c", "k", 3)),
        format!("[3,\"c\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("a", "k", 1)),
        format!("[3,\"c\",\"k\",{{\"claimed\":{{\"fact\":{},\"step\":{claimer}}}}}]", fact("c", "k", 1)),
        format!("[3,\"../../x\",\"{long}\",{{\"retracted\":{{\"seq\":1}}}}]"),
        "[3,\"\",\"k\",{\"retracted\":{\"seq\":1}}]".to_owned(),
        "[3,\"x\",\"k\",{\"retracted\":{\"seq\":1,\"step\":{\"run\":\"../r\",\"agent\":\"main\",\"step\":1}}}]"
            .to_owned(),
        "[3,\"a\",\"k\",{\"none\":{}}]".to_owned(),
        "[3,\"a\",\"k\",{}]".to_owned(),
        format!("[{},\"q\",\"q\",{{\"retracted\":{{\"seq\":1}}}}]", u64::MAX - 2),
        "[18446744073709551615,\"a\",\"k\"]".to_owned(),
        "{}".to_owned(),
        String::new(),
    ]
}

#[test]
fn forged_entry_of_an_old_log_is_not_believed() {
    for line in forged() {
        let place = proven();
        let text = std::fs::read_to_string(place.path("changes")).expect("read");
        place.write_old("changes", &format!("{text}{line}\n"));
        let outcome = place.assert("d", "k", "1", Some(&step("r", 1)));
        assert_eq!(place.holds(), ["a k=1", "b k=1", "d k=1"], "{line}");
        assert!(outcome.fact.is_some_and(|fact| fact.seq <= 4), "{line}");
        assert_eq!(place.space.claimed(&step("r", 7)).expect("read"), None);
    }
}

#[test]
fn invalid_fact_in_an_old_store_stays_and_blocks_no_other() {
    let place = proven();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let victim = elsewhere.path().join("k.json");
    std::fs::write(&victim, "mine").expect("written");
    std::os::unix::fs::symlink(elsewhere.path(), place.path("facts/link")).expect("linked");
    std::os::unix::fs::symlink("loop", place.path("facts/loop")).expect("linked");
    place.write_old("facts/file", "a file");
    std::fs::create_dir_all(place.path("facts/c/k.json/x")).expect("in the way");
    let text = place.write_fact("d", "1", 3);
    place.write_old("facts/d/k.json", &text.replace("\"value\":\"1\"", "\"value\":\"2\""));
    place.write_old("facts/a/copied.json", &place.write_fact("a", "1", 1));
    let (facts, warnings) = place.space.old_facts(&place.path("facts")).expect("read");
    assert_eq!((facts.len(), warnings.len()), (2, 6), "{warnings:?}");
    for why in ["not a directory of facts", "not a plain file", "no proof", "lies elsewhere"] {
        assert!(warnings.iter().any(|warning| warning.contains(why)), "{why}");
    }
    assert!(place.assert("e", "k", "1", None).is_new);
    assert_eq!(place.holds(), ["a k=1", "b k=1", "e k=1"]);
    let left = place.files().into_iter().find(|name| name.starts_with("facts."));
    let left = place.path(&left.expect("what cannot be read"));
    assert!(left.join("d/k.json").is_file() && left.join("link").is_symlink());
    assert_eq!(std::fs::read_to_string(victim).expect("read"), "mine");
    place.reopened().assert("f", "k", "1", None);
}

#[test]
fn copy_of_an_engine_stays_a_copy() {
    let place = killed_store();
    place.write_old("engine.json", "{\"version\":1,\"engine\":\"memory\",\"last\":0}");
    assert_eq!(place.holds(), ["a k=1"]);
    assert_eq!(place.space.engine().expect("read"), Some("memory".to_owned()));
    assert_eq!(place.space.known_changes().expect("read"), 2);
    place.space.retract("a", "k", None).expect_err("it is a copy");
    let place = killed_store();
    place.write_old("engine.json", "{\"version\":1,\"engine\":\"memory\",\"last\":0}");
    place.write_old("changes", "no log\n");
    assert_eq!(place.space.known_changes().expect("read"), 0, "it is copied again");
    let alone = Dataspace::of(&crate::layout::RunsRoot::new(place.dir.path()));
    assert_eq!(alone.facts().expect("listed").facts.len(), 1);
}
