//! Tests of the decisions, without a server.

use std::collections::BTreeMap;
use std::time::Duration;

use raymond_model::host::{HostEpoch, HostName};

use super::run;
use super::run_calls::{
    CarriedRequest, FactChangeCall, LeasedDeed, RunAnswer, RunCall, RunLook, RunTopic, SenderNumber,
};
use super::state::{FACTS, HostCall, IndexCall, IndexedRun, ObjectEffect, decided};
use crate::shared_log::{HostClaim, HostReply, Withdrawal};

mod answers;
mod hosts;
mod mail;
mod queues;

/// A run with all its values at hand.
#[derive(Default)]
struct TestRun {
    values: BTreeMap<String, Vec<u8>>,
    effects: Vec<ObjectEffect>,
}

impl TestRun {
    fn begun() -> Self {
        let mut run = Self::default();
        assert_eq!(run.call(&create(&["first"])), RunAnswer::Epoch(1));
        run.effects.clear();
        run
    }

    fn call(&mut self, call: &RunCall) -> RunAnswer {
        let (answer, effects) = decided(&mut self.values, |state| run::decide("r", call, state));
        self.effects.extend(effects);
        answer
    }

    fn deed(&mut self, epoch: u64, deed: LeasedDeed) -> RunAnswer {
        self.call(&RunCall::Leased { epoch, deed })
    }

    fn look(&mut self, look: &RunLook) -> RunAnswer {
        decided(&mut self.values, |state| run::look(look, state)).0
    }

    fn append(&mut self, epoch: u64, first: u64, lines: &[&str]) -> RunAnswer {
        self.deed(epoch, LeasedDeed::Append { first, lines: texts(lines) })
    }

    fn lines(&mut self, after: u64) -> Vec<String> {
        match self.look(&RunLook::Lines { after, limit: usize::MAX }) {
            RunAnswer::Lines { lines, .. } => lines,
            other => panic!("{other:?}"),
        }
    }

    /// Lets the time of the newest lease run out.
    fn run_out(&mut self) {
        let last = self.effects.iter().rev().find_map(|effect| match effect {
            ObjectEffect::CallSelfAfter(call, _) => Some(call.clone()),
            _ => None,
        });
        self.call(&last.expect("a lease"));
    }
}

fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn create(lines: &[&str]) -> RunCall {
    let (terms, holder) = ("{}".to_owned(), "here".to_owned());
    RunCall::Create { terms, holder, lease_ms: 6_000, lines: texts(lines) }
}

fn claim(holder: &str) -> RunCall {
    RunCall::Claim { holder: holder.to_owned(), lease_ms: 6_000 }
}

fn send(key: &str) -> LeasedDeed {
    let request = CarriedRequest {
        key: key.to_owned(),
        host: "h".to_owned(),
        host_epoch: 1,
        body: format!("do {key}"),
    };
    LeasedDeed::Send { requests: vec![request], by: number(1), is_again: false }
}

fn number(number: u64) -> SenderNumber {
    SenderNumber { sender: "here".to_owned(), number }
}

fn by(epoch: u64) -> HostClaim {
    HostClaim { host: HostName::parse("h").expect("a name"), epoch: HostEpoch(epoch) }
}

fn begin(key: &str) -> RunCall {
    RunCall::Begin { by: by(1), keys: texts(&[key]) }
}

fn reply(key: &str) -> RunCall {
    let replies = vec![HostReply { key: key.to_owned(), body: format!("done {key}") }];
    RunCall::Reply { by: by(1), replies }
}

#[test]
fn run_is_created_once_and_indexed_before_it_is_answered() {
    let mut run = TestRun::default();
    assert_eq!(run.call(&claim("here")), RunAnswer::NoSuchRun);
    assert_eq!(run.call(&create(&["a", "b"])), RunAnswer::Epoch(1));
    let index = IndexCall::SetRun { run: "r".to_owned(), state: IndexedRun::Held };
    let lease = ObjectEffect::CallSelfAfter(RunCall::RunOut { lease: 1 }, Duration::from_secs(6));
    assert_eq!(run.effects, [ObjectEffect::Index(index), lease]);
    assert_eq!(run.call(&create(&["a", "b"])), RunAnswer::Epoch(1));
    assert_eq!(run.call(&create(&["a", "c"])), RunAnswer::RunExists);
    assert_eq!(run.call(&create(&["a", "b", "c"])), RunAnswer::RunExists);
}

#[test]
fn lease_runs_out_unless_it_was_renewed() {
    let mut run = TestRun::default();
    run.call(&create(&["a"]));
    let first = RunCall::RunOut { lease: 1 };
    assert_eq!(run.deed(1, LeasedDeed::Renew { lease_ms: 6_000 }), RunAnswer::Done);
    run.call(&first);
    let held = RunAnswer::Supervised { holder: "here".to_owned() };
    assert_eq!(run.call(&claim("there")), held);
    run.run_out();
    let left = RunAnswer::Summary { last: 1, holder: None, has_ended: false, is_abandoned: true };
    assert_eq!(run.look(&RunLook::Summary), left);
    assert_eq!(run.call(&claim("there")), RunAnswer::Epoch(2));
    assert_eq!(run.append(1, 2, &["late"]), RunAnswer::TakenOver);
    assert_eq!(run.append(2, 2, &["b"]), RunAnswer::Done);
}

#[test]
fn log_of_several_chunks_is_appended_once_and_read_in_any_part() {
    let mut run = TestRun::begun();
    let long = "x".repeat(20_000);
    let all: Vec<String> =
        (2..=200).map(|seq| if seq % 50 == 0 { long.clone() } else { format!("l{seq}") }).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for part in [&all[..3], &all[..63], &all[..64], &all[..], &all[10..150]] {
        let first = 2 + u64::from(std::ptr::eq(&raw const part[0], &raw const all[10])) * 10;
        assert_eq!(run.append(1, first, part), RunAnswer::Done);
    }
    for after in [0_usize, 1, 62, 63, 64, 65, 199, 200] {
        let lines = run.lines(after as u64);
        let expected = [&["first"], &all[..]].concat();
        assert_eq!(lines, expected[after..], "after {after}");
    }
    for (first, lines) in [(202, ["y"]), (0, ["y"]), (70, ["y"])] {
        let RunAnswer::Unfit { why } = run.append(1, first, &lines) else { panic!("{first}") };
        assert!(why.contains("record"), "{why}");
    }
    assert_eq!(run.lines(0).len(), 200);
    let page = run.look(&RunLook::Lines { after: 60, limit: 10 });
    assert_eq!(page, RunAnswer::Lines { lines: texts(&all[59..69]), last: 200 });
}

#[test]
fn append_rewrites_only_the_last_chunk() {
    let mut run = TestRun::begun();
    let all: Vec<String> = (0..640).map(|number| format!("{number}")).collect();
    run.deed(1, LeasedDeed::Append { first: 2, lines: all });
    let before = run.values.clone();
    run.append(1, 642, &["one more"]);
    let changed: Vec<&String> = run
        .values
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, _)| key)
        .collect();
    assert_eq!(changed, ["chunk/10", "head"]);
}

impl TestRun {
    fn run_out_and_claim(&mut self) {
        self.deed(1, LeasedDeed::Renew { lease_ms: 0 });
        assert_eq!(self.call(&claim("there")), RunAnswer::Epoch(2));
    }
}

#[test]
fn waiters_of_a_run_wait_behind_what_they_have_seen() {
    let mut run = TestRun::begun();
    let to_wait = |run: &mut TestRun, topic, seen| {
        decided(&mut run.values, |state| run::to_wait(topic, seen, state)).0
    };
    assert_eq!(to_wait(&mut run, RunTopic::Mail, 0), Ok(0));
    assert!(to_wait(&mut run, RunTopic::Lines, 0).is_err());
    let behind = to_wait(&mut run, RunTopic::Lines, 1).expect("it waits");
    let watch = |awakeable: &str, topic, seen| RunCall::Watch {
        awakeable: awakeable.to_owned(),
        topic,
        seen,
    };
    run.call(&watch("line", RunTopic::Lines, behind));
    run.call(&watch("mail", RunTopic::Mail, 0));
    run.append(1, 2, &["b"]);
    run.call(&watch("late", RunTopic::Lines, behind));
    let woken: Vec<_> =
        run.effects.iter().filter(|effect| matches!(effect, ObjectEffect::Wake(..))).collect();
    assert_eq!(woken.len(), 2, "{woken:?}");
    assert!(!format!("{woken:?}").contains("mail"), "{woken:?}");
    assert!(to_wait(&mut run, RunTopic::Lines, 1).is_err());
}

#[test]
fn change_of_facts_follows_the_last_change_or_crosses() {
    let mut values = BTreeMap::new();
    let mut append = |after, text: &str| {
        let change = FactChangeCall { after, text: text.to_owned() };
        let call = RunCall::AppendFact { change };
        decided(&mut values, |state| run::decide(FACTS, &call, state)).0
    };
    assert_eq!((append(0, "a"), append(1, "b")), (RunAnswer::Done, RunAnswer::Done));
    assert_eq!((append(0, "a"), append(1, "b")), (RunAnswer::Done, RunAnswer::Done), "again");
    assert_eq!((append(0, "c"), append(1, "a")), (RunAnswer::Crossed, RunAnswer::Crossed));
    assert!(matches!(append(3, "d"), RunAnswer::Unfit { .. }));
    let read = RunLook::Lines { after: 0, limit: 9 };
    let found = decided(&mut values, |state| run::look(&read, state)).0;
    assert_eq!(found, RunAnswer::Lines { lines: texts(&["a", "b"]), last: 2 });
}

#[test]
fn change_of_facts_needs_the_newest_lease() {
    let mut run = TestRun::begun();
    let change = || FactChangeCall { after: 0, text: "a".to_owned() };
    let deed = || LeasedDeed::ChangeFact { change: change() };
    assert_eq!(run.deed(1, deed()), RunAnswer::Done);
    assert_eq!(run.deed(2, deed()), RunAnswer::TakenOver);
    let refused = run.call(&RunCall::AppendFact { change: change() });
    assert!(matches!(refused, RunAnswer::Unfit { .. }), "a run is not a log of facts");
}
