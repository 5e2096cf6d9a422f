//! Forged entries of the change log, and other things in the places of facts: none is believed, and none is in the way.

use super::power::cut_power;
use super::{Place, step};
use crate::proof::ProofKey;

fn place() -> Place {
    let mut place = Place::new();
    place.space = place.space.clone().with_key(&ProofKey::new("k"));
    place.assert("a", "k", "1", None);
    place.assert("b", "k", "1", None);
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
    let own = "{\"run\":\"r\",\"agent\":\"main\",\"step\":7}";
    let mut lines = vec![
        format!("[3,\"a\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("a", "k", 3)),
        format!("[3,\"c\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("c", "k", 3)),
        format!("[3,\"c\",\"k\",{{\"asserted\":{{\"fact\":{}}}}}]", fact("a", "k", 1)),
        format!("[3,\"c\",\"k\",{{\"claimed\":{{\"fact\":{},\"step\":{own}}}}}]", fact("c", "k", 1)),
        format!("[3,\"../../x\",\"{long}\",{{\"retracted\":{{\"seq\":1}}}}]"),
        "[3,\"\",\"k\",{\"retracted\":{\"seq\":1}}]".to_owned(),
        "[3,\"x\",\"k\",{\"retracted\":{\"seq\":1,\"step\":{\"run\":\"../r\",\"agent\":\"main\",\"step\":1}}}]"
            .to_owned(),
        "[3,\"a\",\"k\",{\"none\":{}}]".to_owned(),
        "[3,\"a\",\"k\",{}]".to_owned(),
        "[18446744073709551615,\"a\",\"k\"]".to_owned(),
        "{}".to_owned(),
        String::new(),
    ];
    lines.push(lines.concat());
    lines
}

#[test]
fn forged_entry_is_not_believed() {
    for line in forged() {
        for cut in [false, true] {
            let place = place();
            let text = std::fs::read_to_string(place.path("changes")).expect("read");
            std::fs::write(place.path("changes"), format!("{text}{line}\n")).expect("written");
            if cut && !line.ends_with("\"k\"]") {
                cut_power(&place);
            }
            place.assert("d", "k", "1", Some(&step("r", 1)));
            assert_eq!(place.holds(), ["a k=1", "b k=1", "d k=1"], "{line} {cut}");
            for label in ["a", "b", "d"] {
                assert_eq!(place.fact(label, "k").map(|fact| fact.value), Some("1".into()));
            }
            assert_eq!(place.space.claimed(&step("r", 7)).expect("read"), None);
        }
    }
}

#[test]
fn forged_fact_in_front_of_changes_is_read_from_its_file() {
    let mut place = place();
    place.space.room = 0;
    place.assert("c", "k", "1", None);
    let changes = place.path("changes");
    let text = std::fs::read_to_string(&changes).expect("read");
    assert!(text.lines().nth(1).expect("a fact").starts_with('{'), "{text}");
    std::fs::write(&changes, text.replacen("\"value\":\"1\"", "\"value\":\"2\"", 1))
        .expect("forged");
    for label in ["a", "b"] {
        assert_eq!(place.fact(label, "k").map(|fact| fact.value), Some("1".into()));
    }
}

#[test]
fn blocked_place_of_a_fact_blocks_no_other_change() {
    let place = place();
    std::fs::create_dir_all(place.path("facts/c/k.json/x")).expect("in the way");
    let what = super::FactStatement {
        label: "c",
        key: "k",
        value: "1",
        source: "test",
        at: raymond_model::time::Timestamp(1),
    };
    for _ in 0..2 {
        place.space.assert(what, None).expect_err("a directory is in the way");
    }
    assert!(place.assert("d", "k", "1", None).is_new);
    cut_power(&place);
    place.assert("e", "k", "1", None);
    let listing = place.space.facts().expect("listed");
    assert_eq!((listing.facts.len(), listing.warnings.len()), (4, 1), "{listing:?}");
    assert_eq!(place.space.labelled("c").expect("listed").facts, []);
}

#[test]
fn label_whose_directory_is_a_link_or_a_file_is_left_alone_and_blocks_no_other() {
    let mut place = place();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let victim = elsewhere.path().join("k.json");
    std::fs::write(&victim, "mine").expect("written");
    std::fs::remove_dir_all(place.path("facts/a")).expect("removed");
    std::os::unix::fs::symlink(elsewhere.path(), place.path("facts/a")).expect("linked");
    std::os::unix::fs::symlink("loop", place.path("facts/loop")).expect("linked");
    std::fs::remove_dir_all(place.path("facts/b")).expect("removed");
    std::fs::write(place.path("facts/b"), "a file").expect("written");
    let text = std::fs::read_to_string(place.path("changes")).expect("read");
    let retraction = "[3,\"a\",\"k\",{\"retracted\":{\"seq\":1}}]\n";
    std::fs::write(place.path("changes"), format!("{text}{retraction}")).expect("forged");
    assert!(place.assert("c", "k", "1", None).is_new);
    place.space.retract("a", "k", None).expect_err("it is a link");
    place.space.room = 0;
    assert!(place.assert("d", "k", "1", None).is_new, "the log begins anew");
    cut_power(&place);
    let listing = place.space.facts().expect("listed");
    assert_eq!(listing.facts.len(), 2, "{listing:?}");
    assert_eq!(listing.warnings.len(), 3, "{listing:?}");
    assert!(place.assert("e", "k", "1", None).is_new);
    assert_eq!(std::fs::read_to_string(victim).expect("read"), "mine");
}

#[test]
fn forged_number_leaves_numbers_to_others() {
    let place = place();
    let text = std::fs::read_to_string(place.path("changes")).expect("read");
    let forged = format!("[{},\"q\",\"q\",{{\"retracted\":{{\"seq\":1}}}}]\n", u64::MAX - 2);
    std::fs::write(place.path("changes"), format!("{text}{forged}")).expect("forged");
    place.assert("c", "k", "1", None);
    assert_eq!(place.fact("c", "k").map(|fact| fact.seq), Some(3));
}

#[test]
fn end_of_a_run_without_files_waits_for_no_writer() {
    let place = place();
    let lock = std::fs::File::open(place.path("lock")).expect("opened");
    lock.lock().expect("locked");
    place.space.ended(&step("r", 1).run).expect("nothing to do");
}
