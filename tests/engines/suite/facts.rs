//! The log of the changes of facts: one order for all machines. Nobody else uses the engine of such a test.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use raymond::engine::shared_log::RunLease;
use raymond::engine::shared_log::{FactAppend, LogLine};
use raymond::engine::{Engine, EngineError};

use crate::support::{WAIT_TIMEOUT, new_run_id, started_run, take_over};

/// The most changes that are asked for at a time.
const PAGE: usize = 1_000;

fn append(engine: &dyn Engine, after: u64, text: &str) -> FactAppend {
    engine.append_fact_change(None, after, text).expect("an answer")
}

fn texts(engine: &dyn Engine, after: u64) -> Vec<String> {
    let entries = engine.fact_changes(after, PAGE).expect("changes");
    entries.into_iter().map(|entry| entry.text).collect()
}

pub(crate) fn changes_are_read_in_their_order(one: &dyn Engine, other: &dyn Engine) {
    assert_eq!(one.fact_changes(0, PAGE), Ok(Vec::new()));
    for (after, text) in (0..).zip(["a", "b", "c"]) {
        let engine = if after % 2 == 0 { one } else { other };
        assert_eq!(append(engine, after, text), FactAppend::Appended);
    }
    let entry = |seq, text: &str| LogLine { seq, text: text.to_owned() };
    assert_eq!(other.fact_changes(0, 2), Ok(vec![entry(1, "a"), entry(2, "b")]));
    assert_eq!(one.fact_changes(2, 2), Ok(vec![entry(3, "c")]));
    assert_eq!(one.fact_changes(3, 2), Ok(Vec::new()));
}

pub(crate) fn a_change_follows_only_the_last_change(one: &dyn Engine, other: &dyn Engine) {
    assert_eq!(append(one, 0, "a"), FactAppend::Appended);
    assert_eq!(append(other, 0, "b"), FactAppend::Crossed);
    assert_eq!(append(one, 1, "b"), FactAppend::Appended);
    assert_eq!(append(other, 0, "c"), FactAppend::Crossed);
    let error = other.append_fact_change(None, 7, "c").expect_err("there is a gap");
    assert!(matches!(error, EngineError::Damaged { .. }), "{error}");
    assert_eq!(texts(one, 0), ["a", "b"]);
}

pub(crate) fn a_change_is_appended_once(one: &dyn Engine, other: &dyn Engine) {
    assert_eq!(append(one, 0, "a"), FactAppend::Appended);
    assert_eq!(append(one, 0, "a"), FactAppend::Appended, "the answer was lost");
    assert_eq!(append(other, 1, "b"), FactAppend::Appended);
    assert_eq!(append(one, 0, "a"), FactAppend::Appended, "it was cut off, and comes late");
    assert_eq!(append(one, 1, "a"), FactAppend::Crossed, "this is another place");
    assert_eq!(texts(other, 0), ["a", "b"]);
}

pub(crate) fn one_of_many_changes_has_each_place(one: &dyn Engine, other: &dyn Engine) {
    const WRITERS: usize = 6;
    const EACH: usize = 20;
    let write = |engine: &dyn Engine, writer: usize| {
        let mut after = 0;
        for change in 0..EACH {
            let text = format!("{writer}.{change}");
            while append(engine, after, &text) == FactAppend::Crossed {
                let news = engine.fact_changes(after, PAGE).expect("changes");
                after = news.last().map_or(after, |last| last.seq);
            }
            after += 1;
        }
    };
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || write(if writer % 2 == 0 { one } else { other }, writer));
        }
    });
    let written = texts(one, 0);
    assert_eq!(written.len(), WRITERS * EACH);
    assert_eq!(written.iter().collect::<BTreeSet<_>>().len(), WRITERS * EACH, "one came twice");
    for writer in 0..WRITERS {
        let own = written.iter().filter(|text| text.starts_with(&format!("{writer}.")));
        let expected: Vec<String> = (0..EACH).map(|change| format!("{writer}.{change}")).collect();
        assert!(own.eq(expected.iter()), "the changes of {writer} are in its order");
    }
}

pub(crate) fn changes_are_kept_byte_by_byte(one: &dyn Engine, other: &dyn Engine) {
    let large = "ü\\\"\u{1F600}".repeat(300_000);
    for (after, text) in (0..).zip(["", "a\nb\r\n", " \t", "\u{7f}'%$1", &large]) {
        assert_eq!(append(one, after, text), FactAppend::Appended);
        assert!(texts(other, after) == [text], "change {} is another one", after + 1);
    }
}

pub(crate) fn a_reader_is_woken_by_a_change(one: &dyn Engine, other: &dyn Engine) {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let start = Instant::now();
            while other.fact_changes(0, 1).expect("changes").is_empty() {
                assert!(start.elapsed() < WAIT_TIMEOUT, "it never found anything");
                other.wait_for_fact_changes(0, WAIT_TIMEOUT).expect("a wait");
            }
            start.elapsed()
        });
        assert_eq!(append(one, 0, "a"), FactAppend::Appended);
        let elapsed = waiter.join().expect("it was woken");
        assert!(elapsed < Duration::from_secs(20), "it was woken after {elapsed:?}");
    });
    let start = Instant::now();
    other.wait_for_fact_changes(0, WAIT_TIMEOUT).expect("there is one");
    assert!(start.elapsed() < WAIT_TIMEOUT / 2);
    other.wait_for_fact_changes(1, Duration::from_millis(300)).expect("it ends in time");
}

pub(crate) fn a_lost_lease_changes_no_fact(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let made = one.append_fact_change(Some(&lease), 0, "a");
    assert_eq!(made, Ok(FactAppend::Appended));
    let crossed = one.append_fact_change(Some(&lease), 0, "b");
    assert_eq!(crossed, Ok(FactAppend::Crossed));
    let new = take_over(other, &lease);
    for (after, text) in [(0, "a"), (1, "b")] {
        let error = one.append_fact_change(Some(&lease), after, text).expect_err("it is lost");
        assert!(matches!(error, EngineError::TakenOver { .. }), "{error}");
    }
    let made = other.append_fact_change(Some(&new), 1, "c");
    assert_eq!(made, Ok(FactAppend::Appended));
    let nobody = RunLease { run: new_run_id(), epoch: 1 };
    let error = one.append_fact_change(Some(&nobody), 2, "d").expect_err("no run");
    assert!(matches!(error, EngineError::NoSuchRun { .. }), "{error}");
    assert_eq!(texts(one, 0), ["a", "c"]);
}
