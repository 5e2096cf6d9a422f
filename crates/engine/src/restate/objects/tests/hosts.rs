//! Tests of the decisions of a host.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::host;
use super::super::run_calls::{RunAnswer, RunCall};
use super::super::state::decided;
use super::{TestRun, begin, by, reply, send, texts};
use crate::restate::objects::state::ObjectEffect;
use crate::restate::objects::state::{HostCall, HostLook, HostObjectAnswer};
use raymond_model::host::HostStanding;

#[test]
fn host_keeps_its_epoch_for_the_same_worker_alone() {
    let mut values = BTreeMap::new();
    let mut call =
        |call: &HostCall| decided(&mut values, |state| host::decide("h", call, 5, state)).0;
    let register = |worker: &str| HostCall::Register {
        worker: worker.to_owned(),
        report: json!({}),
        silence_ms: 0,
    };
    let beat = |epoch| HostCall::Heartbeat { epoch, report: json!({}) };
    assert_eq!(call(&HostCall::Mail), HostObjectAnswer::Done);
    assert_eq!(call(&HostCall::Remove), HostObjectAnswer::NoSuchHost);
    assert_eq!(call(&register("w")), epoch(1, 1));
    assert_eq!(call(&register("w")), epoch(1, 1));
    assert_eq!(call(&register("x")), epoch(2, 2));
    assert_eq!(call(&beat(1)), HostObjectAnswer::Fenced);
    assert_eq!(call(&HostCall::SetStanding(HostStanding::Draining)), epoch(2, 2));
    assert_eq!(call(&beat(2)), HostObjectAnswer::Standing(HostStanding::Draining));
    assert_eq!(call(&HostCall::SetStanding(HostStanding::Lost)), epoch(3, 4));
    assert_eq!(call(&HostCall::SetStanding(HostStanding::Lost)), epoch(3, 4));
    assert_eq!(call(&beat(3)), HostObjectAnswer::Fenced);
    let draining = HostCall::SetStanding(HostStanding::Draining);
    assert_eq!(call(&draining), epoch(4, 4), "its runs take it for lost in epoch 3");
    assert_eq!(call(&register("x")), epoch(4, 4));
    assert_eq!(call(&HostCall::Remove), epoch(5, 6));
    assert_eq!(call(&beat(4)), HostObjectAnswer::Fenced);
    assert_eq!(call(&register("x")), epoch(6, 6));
}

fn epoch(epoch: u64, oldest_valid: u64) -> HostObjectAnswer {
    HostObjectAnswer::Epoch { epoch, oldest_valid, runs: Vec::new() }
}

#[test]
fn runs_of_a_host_are_notified_which_of_its_epochs_are_over() {
    let mut values = BTreeMap::new();
    let mut call =
        |call: &HostCall| decided(&mut values, |state| host::decide("h", call, 5, state));
    let add = HostCall::AddRun { run: "r".to_owned() };
    assert_eq!(call(&add).1, [], "it was never served");
    let (worker, report) = ("w".to_owned(), json!({}));
    call(&HostCall::Register { worker, report, silence_ms: 0 });
    let (answer, effects) = call(&HostCall::SetStanding(HostStanding::Lost));
    let runs = texts(&["r"]);
    assert_eq!(answer, HostObjectAnswer::Epoch { epoch: 2, oldest_valid: 3, runs });
    let fence = RunCall::Fence { host: "h".to_owned(), oldest_valid: 3 };
    assert_eq!(effects, [ObjectEffect::RunSoon("r".to_owned(), fence.clone())]);
    let add = HostCall::AddRun { run: "s".to_owned() };
    assert_eq!(call(&add).1, [ObjectEffect::RunSoon("s".to_owned(), fence.clone())]);

    let mut run = TestRun::begun();
    run.deed(1, send("r/a"));
    assert_eq!(run.call(&fence), RunAnswer::Done);
    let late = RunCall::Fence { host: "h".to_owned(), oldest_valid: 2 };
    assert_eq!(run.call(&late), RunAnswer::Done);
    let requests = RunCall::Requests { by: by(2), received: vec![], is_first: true, limit: 9 };
    for call in [begin("r/a"), reply("r/a"), requests] {
        assert_eq!(run.call(&call), RunAnswer::Fenced);
    }
    let begin = RunCall::Begin { by: by(3), keys: texts(&["r/a"]) };
    assert_eq!(run.call(&begin), RunAnswer::Begun(vec![false]), "it is for an earlier epoch");
}

#[test]
fn host_of_another_worker_is_taken_once_that_is_silent() {
    let mut values = BTreeMap::new();
    let mut register = |worker: &str, now| {
        let (worker, report) = (worker.to_owned(), json!({}));
        let call = HostCall::Register { worker, report, silence_ms: 6_000 };
        decided(&mut values, |state| host::decide("h", &call, now, state)).0
    };
    assert_eq!(register("w", 10_000), epoch(1, 1));
    assert_eq!(register("x", 15_999), HostObjectAnswer::Taken);
    assert_eq!(register("w", 12_000), epoch(1, 1), "it is its own");
    assert_eq!(register("x", 18_000), epoch(2, 2));
}

#[test]
fn clock_that_goes_back_gives_no_negative_silence() {
    let mut values = BTreeMap::new();
    let (worker, report) = ("w".to_owned(), json!({ "slots": 1 }));
    let register = HostCall::Register { worker, report, silence_ms: 0 };
    decided(&mut values, |state| host::decide("h", &register, 60_000, state));
    for (now, silent) in [(60_500, 500), (1_000, 0)] {
        let state = decided(&mut values, |state| host::look(&HostLook::State, now, state)).0;
        let HostObjectAnswer::State { silent_ms, .. } = state else { panic!("{state:?}") };
        assert_eq!(silent_ms, silent);
    }
}
